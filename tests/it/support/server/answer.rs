//! One command to a server, and its answer.

use std::io::{self, BufRead, BufReader, Read, Write};

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Error(String),
    List(Vec<Answer>),
    Nil,
    Number(i64),
    /// A status such as `OK`, or a bulk string.
    Text(String),
}

/// One command and its answer. Trusts the server's lengths: it is one that we started.
pub(super) fn ask<S: Read + Write>(
    stream: &mut BufReader<S>,
    words: &[&str],
) -> io::Result<Answer> {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request += &format!("${}\r\n{word}\r\n", word.len());
    }
    stream.get_mut().write_all(request.as_bytes())?;
    read_answer(stream).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => {
            io::Error::new(io::ErrorKind::TimedOut, "the server did not answer")
        }
        _ => error,
    })
}

fn read_answer(stream: &mut impl BufRead) -> io::Result<Answer> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let Some(line) = line.strip_suffix("\r\n") else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let (kind, rest) = line.split_at_checked(1).ok_or_else(malformed)?;
    let number = || rest.parse::<i64>().map_err(|_| malformed());
    Ok(match kind {
        "+" => Answer::Text(rest.to_owned()),
        "-" => Answer::Error(rest.to_owned()),
        ":" => Answer::Number(number()?),
        "$" | "*" if rest == "-1" => Answer::Nil,
        "$" => {
            let length = usize::try_from(number()?).map_err(|_| malformed())?;
            let mut bytes = vec![0; length + 2];
            stream.read_exact(&mut bytes)?;
            Answer::Text(String::from_utf8_lossy(&bytes[..length]).into_owned())
        }
        "*" => Answer::List(
            (0..number()?)
                .map(|_| read_answer(stream))
                .collect::<io::Result<_>>()?,
        ),
        _ => return Err(malformed()),
    })
}

pub(super) fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not an answer in RESP2")
}
