//! How the embedded node writes a reply: one function per RESP2 type, and the error texts that need
//! composing or have many users.
//!
//! All of them append to a buffer that the caller keeps, so that the steady state allocates
//! nothing.

use super::config::ServerKind;
use std::fmt::Display;
use std::io::Write;

/// The longest part of an unknown command, and of its arguments together, that a server repeats in
/// its error.
const ECHO_LIMIT: usize = 128;

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

/// The error for a command that the server does not have.
///
/// Servers compose it with C string functions: it repeats at most [`ECHO_LIMIT`] bytes of the
/// arguments, each ends at its first zero byte, and line breaks become spaces. The quotes differ.
pub(super) fn unknown_command(out: &mut Vec<u8>, arguments: &[&[u8]], kind: ServerKind) {
    let Some((&name, rest)) = arguments.split_first() else {
        return;
    };
    let (quote, end) = if kind == ServerKind::Redis62 {
        (b'`', b"`, ".as_slice())
    } else {
        (b'\'', b"' ".as_slice())
    };
    out.extend_from_slice(b"-ERR unknown command ");
    out.push(quote);
    push_c_string(out, name, ECHO_LIMIT);
    out.push(quote);
    out.extend_from_slice(b", with args beginning with: ");
    let echo_start = out.len();
    for argument in rest {
        let echoed = out.len() - echo_start;
        if echoed >= ECHO_LIMIT {
            break;
        }
        out.push(quote);
        push_c_string(out, argument, ECHO_LIMIT - echoed);
        out.extend_from_slice(end);
    }
    out.extend_from_slice(b"\r\n");
}

fn push_c_string(out: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    let printable = bytes.iter().take(limit).take_while(|&&byte| byte != 0);
    out.extend(printable.map(|&byte| {
        if matches!(byte, b'\r' | b'\n') {
            b' '
        } else {
            byte
        }
    }));
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
    fn unknown_commands_are_repeated_in_part() {
        let cases = [
            (vec!["FOO"], "FOO", String::new()),
            (vec!["foo", "a", "b"], "foo", "'a' 'b' ".to_owned()),
            (vec!["FO\0O\r\nx", "a\nb"], "FO", "'a b' ".to_owned()),
            (
                vec!["FOO", &"y".repeat(200), "b"],
                "FOO",
                format!("'{}' ", "y".repeat(128)),
            ),
            (
                ["FOO"].into_iter().chain(["foo"; 40]).collect(),
                "FOO",
                format!("{}'fo' ", "'foo' ".repeat(21)),
            ),
        ]
        .map(|(words, name, echo)| (words.join(" ").into_bytes(), name, echo));
        for (request, name, echo) in cases {
            let words: Vec<&[u8]> = request.split(|&byte| byte == b' ').collect();
            let mut out = Vec::new();
            unknown_command(&mut out, &words, ServerKind::Redis);
            let expected =
                format!("-ERR unknown command '{name}', with args beginning with: {echo}\r\n");
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
