//! What the embedded node replies, how it writes that, and the error texts that have many users.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;

/// The error for a script that was given too little.
pub(super) const NO_ARGUMENT: Failure =
    Cow::Borrowed("ERR Lua redis lib command arguments must be strings or integers");
/// The error for what should be a number and is not, or does not fit.
pub(super) const NOT_AN_INTEGER: Failure =
    Cow::Borrowed("ERR value is not an integer or out of range");

/// The error for options that make no sense.
pub(super) const SYNTAX: Failure = Cow::Borrowed("ERR syntax error");
/// The error for a command that is for values of another kind.
pub(super) const WRONG_TYPE: Failure =
    Cow::Borrowed("WRONGTYPE Operation against a key holding the wrong kind of value");

/// An error reply; the text opens with the error's code. A script that comes to no answer has one
/// of a command inside it, or what the server reports about the script itself.
pub(super) type Failure = Cow<'static, str>;

/// What becomes of a command or a script.
pub(super) type Answer = Result<Reply, Failure>;

/// What a command or a script replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Array(Vec<Reply>),
    Bulk(Vec<u8>),
    /// Several replies, one after the other.
    Each(Vec<Reply>),
    Error(Failure),
    Integer(i64),
    /// The null bulk string: no such key, or a condition that was not met.
    Null,
    Simple(&'static str),
}

impl Reply {
    pub(super) fn bulk(bytes: impl Into<Vec<u8>>) -> Reply {
        Reply::Bulk(bytes.into())
    }

    /// How many there are.
    pub(super) fn count(count: usize) -> Reply {
        Reply::Integer(count as i64)
    }

    /// A fence, as scripts return it.
    pub(super) fn fence(fence: u64) -> Reply {
        Reply::bulk(fence.to_string())
    }

    /// Appends it to a buffer, in RESP2.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Reply::Array(parts) => {
                line(out, '*', parts.len());
                parts.iter().for_each(|part| part.write(out));
            }
            Reply::Bulk(bytes) => {
                line(out, '$', bytes.len());
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Reply::Each(replies) => replies.iter().for_each(|reply| reply.write(out)),
            Reply::Error(text) => line(out, '-', text),
            Reply::Integer(number) => line(out, ':', number),
            Reply::Null => line(out, '$', -1),
            Reply::Simple(text) => line(out, '+', text),
        }
    }
}

fn line(out: &mut Vec<u8>, kind: char, content: impl Display) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "{kind}{content}\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_either_sign() {
        for (number, bytes) in [
            (0i64, ":0\r\n"),
            (-1, ":-1\r\n"),
            (i64::MIN, ":-9223372036854775808\r\n"),
        ] {
            let mut out = Vec::new();
            Reply::Integer(number).write(&mut out);
            assert_eq!(out, bytes.as_bytes());
        }
    }
}
