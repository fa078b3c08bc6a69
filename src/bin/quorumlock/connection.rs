//! A connection to one node that asks what a lock client never does: blocking, one thread, arrays
//! that are longer than those that the library's codec reads.
//!
//! No text of a server is shown: it is the server's to choose, and may repeat what it was sent.
//! Errors are classified by the library.

use quorumlock::algorithm::digits;
use quorumlock::algorithm::time::Human;
use quorumlock::protocol::error_reply::ErrorReply;
use quorumlock::protocol::resp;
use quorumlock::{Builder, Cause, Error, NodeStream, Phase};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::{Duration, Instant};

/// How long a node has to connect and to answer a question that is no lock: more than an attempt
/// has, because a slow answer is one.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Deepest array in an array.
const DEEPEST: usize = 4;
/// Most bytes of one reply. `SCAN` answers in parts.
const LONGEST_REPLY: usize = 64 << 20;

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
pub(crate) struct Connection(BufReader<Incoming>);

/// What a node sends, within the limits of one reply.
struct Incoming {
    stream: NodeStream,
    deadline: Instant,
    room: usize,
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.room == 0 || Instant::now() > self.deadline {
            return Err(io::Error::other(Cause::TimedOut));
        }
        let count = self.stream.read(buffer)?;
        self.room = self.room.saturating_sub(count);
        Ok(count)
    }
}

impl Connection {
    /// Connects to the node of this index and logs in.
    pub(crate) fn open(builder: &Builder, index: usize) -> Result<Connection, Trouble> {
        let incoming = Incoming {
            stream: builder.open(index, TIMEOUT)?,
            deadline: Instant::now(),
            room: 0,
        };
        Ok(Connection(BufReader::new(incoming)))
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
        self.0.get_mut().stream.write_all(&flight)?;
        let receive = |_| {
            let incoming = self.0.get_mut();
            incoming.deadline = Instant::now() + TIMEOUT;
            incoming.room = LONGEST_REPLY;
            receive(&mut self.0, DEEPEST)
        };
        (0..commands.len()).map(receive).collect()
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

/// The next reply, with so many arrays in each other at most.
fn receive(replies: &mut impl BufRead, depth: usize) -> Result<Value, Trouble> {
    let malformed = || Trouble::at_ask(Cause::Protocol);
    let mut line = Vec::new();
    replies.read_until(b'\n', &mut line)?;
    let (kind, text) = match line.as_slice() {
        [kind, text @ .., b'\r', b'\n'] => (kind, text),
        [.., b'\n'] => return Err(malformed()),
        _ => return Err(Trouble::at_ask(Cause::Closed)),
    };
    let number = || digits::integer(text).ok_or_else(malformed);
    let length = || usize::try_from(number()?).map_err(|_| malformed());
    Ok(match kind {
        b'+' => Value::Bulk(text.to_vec()),
        b'-' => Value::Error(ErrorReply::read(text)),
        b':' => Value::Integer(number()?),
        b'$' | b'*' if text == b"-1" => Value::Nil,
        b'$' => {
            let mut bytes = vec![0; length()?.min(LONGEST_REPLY) + 2];
            replies.read_exact(&mut bytes)?;
            let value = bytes.strip_suffix(b"\r\n").ok_or_else(malformed)?;
            Value::Bulk(value.to_vec())
        }
        b'*' => {
            let depth = depth.checked_sub(1).ok_or_else(malformed)?;
            let values = (0..length()?).map(|_| receive(replies, depth));
            Value::Array(values.collect::<Result<_, _>>()?)
        }
        _ => return Err(malformed()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_however_they_are_split() {
        let bytes = b"*3\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n:7\r\n$-1\r\n+OK\r\n";
        let whole = bytes.len() - 5;
        for length in 0..whole {
            let trouble = receive(&mut &bytes[..length], DEEPEST).unwrap_err();
            assert_eq!(trouble.to_string(), Cause::Closed.to_string(), "{length}");
        }
        let inner = Value::Array(vec![Value::Bulk(b"a".to_vec()), Value::Integer(7)]);
        let value = Value::Array(vec![Value::Bulk(b"0".to_vec()), inner, Value::Nil]);
        let mut rest = bytes.as_slice();
        assert_eq!(receive(&mut rest, DEEPEST).unwrap(), value);
        assert_eq!(rest, b"+OK\r\n");
        for malformed in [
            "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
            "?\r\n",
            "+OK\n",
            "$1\r\nabc",
            "$-2\r\n",
            ":1x\r\n",
        ] {
            let trouble = receive(&mut malformed.as_bytes(), DEEPEST).unwrap_err();
            assert_eq!(trouble.to_string(), "no reply in RESP2", "{malformed}");
        }
    }

    #[test]
    fn the_text_of_an_error_is_not_kept() {
        let value = receive(&mut b"-NOPERM hunter2\r\n".as_slice(), 0).unwrap();
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
