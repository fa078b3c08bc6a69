//! Other clients that keep a server busy: they send more than it can do, in pipelines, until their
//! time is over.
//!
//! Each waits for the answers to one batch before it sends the next, so that the flood ends when it
//! is to end and does not run on from what has piled up.

use crate::prelude::*;
use std::io::{BufRead, Write};

const CLIENTS: usize = 4;
/// Commands of a batch: scripts that only take time, and values that only take space, and that for
/// a moment.
const SCRIPTS: usize = 10;
const VALUES: usize = 100;

/// Floods the server at this port, and returns how many commands it answered.
pub(crate) fn flood(port: u16, time: Duration) -> usize {
    let until = Instant::now() + time;
    let answered = at_once(CLIENTS, |_| send(port, until).unwrap_or(0));
    answered.into_iter().sum()
}

fn send(port: u16, until: Instant) -> std::io::Result<usize> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    let mut batch = String::new();
    for _ in 0..SCRIPTS {
        push(
            &mut batch,
            &["EVAL", "for i = 1, 100000 do end return 1", "0"],
        );
    }
    let value = "x".repeat(1024);
    for index in 0..VALUES {
        push(
            &mut batch,
            &["SET", &format!("flood {index}"), &value, "PX", "100"],
        );
    }
    let mut stream = BufReader::new(stream);
    let mut answered = 0;
    let mut line = String::new();
    while Instant::now() < until {
        stream.get_mut().write_all(batch.as_bytes())?;
        for _ in 0..SCRIPTS + VALUES {
            line.clear();
            stream.read_line(&mut line)?;
            answered += 1;
        }
    }
    Ok(answered)
}

fn push(batch: &mut String, words: &[&str]) {
    *batch += &format!("*{}\r\n", words.len());
    for word in words {
        *batch += &format!("${}\r\n{word}\r\n", word.len());
    }
}
