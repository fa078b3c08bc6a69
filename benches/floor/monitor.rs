//! How many commands clients send to a server, those that its scripts run left out.

use crate::server::Server;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

/// What the server reports for a command that a script runs: `1700000000.000000 [0 lua] "set" …`.
const BY_A_SCRIPT: &str = " lua] ";

/// Does something. Returns the result, and how many commands clients have sent to the server meanwhile. Costs the
/// server time: rates are not to be measured inside.
pub(crate) fn commands_during<R>(server: &Server, action: impl FnOnce() -> R) -> (R, usize) {
    let mut stream = TcpStream::connect(server.address()).expect("a server");
    stream.write_all(b"MONITOR\r\n").expect("a server that reads");
    let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
    lines.next().expect("a reply").expect("a server that replies");
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            lines.map_while(Result::ok).filter(|line| line.starts_with('+') && !line.contains(BY_A_SCRIPT)).count()
        });
        let result = action();
        stream.shutdown(Shutdown::Both).expect("a connection");
        (result, reader.join().expect("a count"))
    })
}
