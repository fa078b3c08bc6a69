//! How the embedded node writes a reply: one function per RESP2 type, and the error texts that need
//! composing or have many users.
//!
//! All of them append to a buffer that the caller keeps, so that the steady state allocates
//! nothing.

use std::fmt::Display;
use std::io::Write;

/// The error for a script that was given too little.
pub(super) const NO_ARGUMENT: &str =
    "ERR Lua redis lib command arguments must be strings or integers";
/// The error for what should be a number and is not, or does not fit.
pub(super) const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
/// The error for a command that needs memory when there is none.
pub(super) const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";
/// The error for a write to a replica.
pub(super) const READ_ONLY: &str = "READONLY You can't write against a read only replica.";

/// The error for options that make no sense.
pub(super) const SYNTAX: &str = "ERR syntax error";
/// The error for a command that is for values of another kind.
pub(super) const WRONG_TYPE: &str =
    "WRONGTYPE Operation against a key holding the wrong kind of value";

/// `+text`.
pub(super) fn simple(out: &mut Vec<u8>, text: &str) {
    line(out, '+', text);
}

/// `-text`; the text opens with the error's code.
pub(super) fn error(out: &mut Vec<u8>, text: &str) {
    line(out, '-', text);
}

/// `:number`.
pub(super) fn integer(out: &mut Vec<u8>, number: impl Display) {
    line(out, ':', number);
}

/// `$length`, then the bytes.
pub(super) fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    line(out, '$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// The null bulk string: no such key, or a condition that was not met.
pub(super) fn null(out: &mut Vec<u8>) {
    line(out, '$', -1);
}

/// The bulk string, or the null one.
pub(super) fn bulk_or_null(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => bulk(out, bytes),
        None => null(out),
    }
}

/// `*length`; the elements follow.
pub(super) fn array(out: &mut Vec<u8>, length: usize) {
    line(out, '*', length);
}

fn line(out: &mut Vec<u8>, kind: char, content: impl Display) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "{kind}{content}\r\n");
}

/// The error for a command with too few or too many arguments. Servers name the command in lower
/// case.
pub(super) fn wrong_arity(out: &mut Vec<u8>, command: &str) {
    error(
        out,
        &format!(
            "ERR wrong number of arguments for '{}' command",
            command.to_lowercase()
        ),
    );
}

/// The error for a command that the server does not have. Servers repeat the arguments, too.
pub(super) fn unknown_command(out: &mut Vec<u8>, name: &[u8]) {
    error(
        out,
        &format!("ERR unknown command '{}'", name.escape_ascii()),
    );
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
            integer(&mut out, number);
            assert_eq!(out, bytes.as_bytes());
        }
    }

    #[test]
    fn the_name_of_an_unknown_command_does_not_break_the_reply() {
        let mut out = Vec::new();
        unknown_command(&mut out, b"FO\0O\r\nx");
        assert_eq!(out, b"-ERR unknown command 'FO\\x00O\\r\\nx'\r\n");
    }
}
