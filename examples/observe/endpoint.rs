//! The one page that a metrics server asks for, over `std::net`.

use quorumlock::Counters;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// How long a client may take to send its request, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers each request, one after the other, for as long as the program runs.
pub(crate) fn serve(listener: &TcpListener, counters: &Counters) {
    for stream in listener.incoming() {
        // A client that goes away in the middle is no concern of this program.
        let _ = stream.and_then(|stream| answer(&stream, counters));
    }
}

fn answer(mut stream: &TcpStream, counters: &Counters) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = String::new();
    let mut lines = BufReader::new(stream);
    lines.read_line(&mut request)?;
    // The headers end with an empty line.
    let mut header = String::new();
    while lines.read_line(&mut header)? > 2 {
        header.clear();
    }
    let (status, text) = match request.starts_with("GET /metrics ") {
        true => ("200 OK", counters.prometheus_text()),
        false => ("404 Not Found", String::new()),
    };
    let length = text.len();
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n"
    )?;
    write!(stream, "Connection: close\r\n\r\n{text}")
}
