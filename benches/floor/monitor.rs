//! How many commands clients send to a server, those that its scripts run left out.

use crate::server::Server;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

/// What the server reports for a command that a script runs: `1700000000.000000 [0 lua] "set" …`.
const BY_A_SCRIPT: &str = " lua] ";
/// What a client asks once a second, and on each new connection, however often it wants a lock: a
/// look at the node.
const LOOK: [&str; 3] = ["\"INFO\"", "\"TIME\"", "\"quorumlock-node:"];

/// Does something. Returns the result, and how many commands but looks clients have sent to the
/// server meanwhile. Costs the server time: rates are not to be measured inside.
pub(crate) fn commands_during<R>(server: &Server, action: impl FnOnce() -> R) -> (R, usize) {
    let mut stream = TcpStream::connect(server.address()).expect("a server");
    stream
        .write_all(b"MONITOR\r\n")
        .expect("a server that reads");
    let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
    lines
        .next()
        .expect("a reply")
        .expect("a server that replies");
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let is_look = |line: &String| LOOK.iter().any(|look| line.contains(look));
            let counts = |line: &String| {
                line.starts_with('+') && !line.contains(BY_A_SCRIPT) && !is_look(line)
            };
            lines.map_while(Result::ok).filter(counts).count()
        });
        let result = action();
        stream.shutdown(Shutdown::Both).expect("a connection");
        (result, reader.join().expect("a count"))
    })
}
