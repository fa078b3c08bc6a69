//! A connection to one node that asks what a lock client never does: blocking, one thread, RESP by
//! the library's codec.
//!
//! No text of a server is shown: it is the server's to choose, and may repeat what it was sent.
//! Errors are classified by the library.

use quorumlock::algorithm::time::Human;
use quorumlock::protocol::error_reply::ErrorReply;
use quorumlock::protocol::resp::{self, Reply};
use quorumlock::{Builder, Cause, Error, NodeStream, Phase};
use std::fmt;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// How long a node has to connect and to answer a question that is no lock: more than an attempt
/// has, because a slow answer is one.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Deepest array in an array.
const DEEPEST: usize = 4;
/// Most bytes of one reply. `SCAN` answers in parts.
const LONGEST_REPLY: usize = 64 << 20;
/// How much is read at once.
const CHUNK: usize = 16 << 10;

/// A reply, with what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Array(Vec<Value>),
    Bulk(Vec<u8>),
    /// Never its text.
    Error(ErrorReply),
    Integer(i64),
    Nil,
}

/// Why a node could not be asked.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub(crate) step: Step,
    what: String,
}

/// How far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Resolve,
    Connect,
    Tls,
    LogIn,
    Ask,
}

impl Value {
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Value::Bulk(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }

    pub(crate) fn array(self) -> Option<Vec<Value>> {
        match self {
            Value::Array(values) => Some(values),
            _ => None,
        }
    }

    /// The reply to this command, unless it is an error.
    pub(crate) fn accepted(self, command: &str) -> Result<Value, Trouble> {
        match self {
            Value::Error(refusal) => Err(Trouble::refused(command, refusal.cause)),
            value => Ok(value),
        }
    }

    /// The number that this command replies.
    pub(crate) fn integer(self, command: &str) -> Result<i64, Trouble> {
        match self.accepted(command)? {
            Value::Integer(number) => Ok(number),
            _ => Err(Trouble::unexpected(command)),
        }
    }

    /// The microseconds of a reply to `TIME`. None of a number that is no time.
    pub(crate) fn micros(self) -> Option<u64> {
        let parts = self.array()?;
        let number = |index: usize| parts.get(index).and_then(Value::text)?.parse::<u64>().ok();
        number(0)?.checked_mul(1_000_000)?.checked_add(number(1)?)
    }
}

/// An open connection, logged in.
pub(crate) struct Connection {
    stream: NodeStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects to the node of this index and logs in.
    pub(crate) fn open(builder: &Builder, index: usize) -> Result<Connection, Trouble> {
        Ok(Connection {
            stream: builder.open(index, TIMEOUT)?,
            buffer: Vec::new(),
        })
    }

    /// Asks one command.
    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> Result<Value, Trouble> {
        let mut values = self.ask_all(&[words])?;
        values
            .pop()
            .ok_or_else(|| Trouble::new(Step::Ask, "no reply"))
    }

    /// Asks several commands in one flight.
    pub(crate) fn ask_all<'w>(
        &mut self,
        commands: &[impl AsRef<[&'w [u8]]>],
    ) -> Result<Vec<Value>, Trouble> {
        let mut flight = Vec::new();
        commands
            .iter()
            .for_each(|words| resp::encode(&mut flight, words.as_ref()));
        self.stream.write_all(&flight)?;
        (0..commands.len()).map(|_| self.receive()).collect()
    }

    /// The next reply. It may take as long as the node has to answer.
    fn receive(&mut self) -> Result<Value, Trouble> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let parsed =
                parse(&self.buffer, DEEPEST).map_err(|()| Trouble::at_ask(Cause::Protocol))?;
            if let Some((value, length)) = parsed {
                self.buffer.drain(..length);
                return Ok(value);
            }
            if self.buffer.len() > LONGEST_REPLY || Instant::now() > deadline {
                return Err(Trouble::at_ask(Cause::TimedOut));
            }
            let begin = self.buffer.len();
            self.buffer.resize(begin + CHUNK, 0);
            let read = self.stream.read(&mut self.buffer[begin..]);
            self.buffer
                .truncate(begin + read.as_ref().copied().unwrap_or_default());
            if read? == 0 {
                return Err(Trouble::at_ask(Cause::Closed));
            }
        }
    }
}

impl Trouble {
    pub(crate) fn new(step: Step, what: impl fmt::Display) -> Trouble {
        Trouble {
            step,
            what: what.to_string(),
        }
    }

    /// What ended a question.
    fn at_ask(cause: Cause) -> Trouble {
        match cause {
            Cause::TimedOut => Trouble::new(
                Step::Ask,
                format_args!("no reply within {}", Human(TIMEOUT)),
            ),
            Cause::Protocol => Trouble::new(Step::Ask, "no reply in RESP2"),
            // After its handshake is over, a server of TLS 1.3 may report that it does not accept
            // the client.
            Cause::Tls(_) => Trouble::new(Step::Tls, cause),
            _ => Trouble::new(Step::Ask, cause),
        }
    }

    /// The node does not do this for our user, or at present.
    pub(crate) fn refused(command: &str, cause: impl fmt::Display) -> Trouble {
        Trouble::new(Step::Ask, format_args!("{command}: {cause}"))
    }

    pub(crate) fn unexpected(command: &str) -> Trouble {
        Trouble::refused(command, "an unexpected reply")
    }
}

/// What a connection that could not be made has come to.
impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        let Some(fault) = error.causes().first() else {
            return Trouble::new(Step::Connect, error);
        };
        let cause = fault.cause();
        let step = match (fault.phase(), cause) {
            (Phase::Resolve, _) => return Trouble::new(Step::Resolve, "host name: not found"),
            (Phase::Connect, Cause::TimedOut) => {
                return Trouble::new(Step::Connect, "no connection in time");
            }
            (Phase::Connect, _) => Step::Connect,
            (Phase::Handshake, Cause::NotTls | Cause::Tls(_) | Cause::TimedOut) => Step::Tls,
            (Phase::Handshake, _) => Step::LogIn,
            _ => return Trouble::at_ask(cause),
        };
        Trouble::new(step, cause)
    }
}

/// What has ended a connection.
impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
        Trouble::at_ask(cause.copied().unwrap_or(Cause::Closed))
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// The value that the bytes begin with and its length; none while it is incomplete. Arrays may be
/// longer than those that a lock client expects, so they are taken apart here, and what they hold
/// by the library.
fn parse(bytes: &[u8], depth: usize) -> Result<Option<(Value, usize)>, ()> {
    if bytes.first() != Some(&b'*') {
        let decoded = resp::decode(bytes).map_err(drop)?;
        return Ok(decoded.map(|(reply, length)| (scalar(reply), length)));
    }
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
        return Ok(None);
    };
    let count: i64 = std::str::from_utf8(&bytes[1..end])
        .map_err(drop)?
        .parse()
        .map_err(drop)?;
    let mut values = Vec::new();
    let mut at = end + 2;
    if count < 0 {
        return Ok(Some((Value::Nil, at)));
    }
    for _ in 0..count {
        let Some((value, length)) = parse(&bytes[at..], depth.checked_sub(1).ok_or(())?)? else {
            return Ok(None);
        };
        values.push(value);
        at += length;
    }
    Ok(Some((Value::Array(values), at)))
}

fn scalar(reply: Reply<'_>) -> Value {
    match reply {
        Reply::Bulk(Some(bytes)) | Reply::Simple(bytes) => Value::Bulk(bytes.to_vec()),
        Reply::Error(text) => Value::Error(ErrorReply::read(text)),
        Reply::Integer(number) => Value::Integer(number),
        Reply::Array(_) | Reply::Bulk(None) => Value::Nil,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_however_they_are_split() {
        let bytes = b"*3\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n:7\r\n$-1\r\n+OK\r\n";
        let whole = bytes.len() - 5;
        for length in 0..whole {
            assert_eq!(parse(&bytes[..length], DEEPEST), Ok(None), "{length}");
        }
        let inner = Value::Array(vec![Value::Bulk(b"a".to_vec()), Value::Integer(7)]);
        let value = Value::Array(vec![Value::Bulk(b"0".to_vec()), inner, Value::Nil]);
        assert_eq!(parse(bytes, DEEPEST), Ok(Some((value, whole))));
        assert_eq!(
            parse(b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", DEEPEST),
            Err(())
        );
        assert_eq!(parse(b"?", DEEPEST), Err(()));
    }

    #[test]
    fn the_text_of_an_error_is_not_kept() {
        let (value, _) = parse(b"-NOPERM hunter2\r\n", 0).unwrap().unwrap();
        assert!(!format!("{value:?}").contains("hunter2"));
        assert!(matches!(
            value,
            Value::Error(ErrorReply {
                cause: Cause::NoPermission,
                ..
            })
        ));
    }
}
