//! RESP2, the protocol that Redis and Valkey speak: encode a command, decode a reply from a growing
//! buffer.
//!
//! Commands go out as arrays of bulk strings and nothing else. Replies come in as any of the five
//! RESP2 types, split by the network wherever it pleases. [`decode`] keeps no state and never
//! allocates: it begins with the first byte of a reply each time. What it looks at again is bounded
//! by the limits: an array holds 64 numbers and strings at most, and a declared length is a number
//! to compare, not bytes to look at. A complete reply is a [`Reply`] that borrows from the buffer.
//!
//! Parsing is strict. Off-by-one replies are a class of security holes in Redis clients, and all of
//! them begin with a parser that carried on after a byte it did not expect. Here such a byte is a
//! [`ProtocolError`], after which the connection is of no more use. RESP3 types are among those
//! bytes: this library never asks for RESP3. Nor does it ask for arrays that hold anything but
//! numbers and bulk strings.

use crate::algorithm::digits;
use crate::fault::protocol_error::ProtocolError;
use std::fmt;

/// Longest line (simple string, error, number or length) without its CRLF. Redis itself stops
/// reading at 64 KiB.
pub const MAX_LINE: usize = 64 * 1024;
/// Longest bulk string that is read. The longest reply this library asks for is `INFO`, of a few
/// kilobytes; the value of a key may be longer, and is dropped.
pub const MAX_BULK: usize = 1024 * 1024;
/// Most elements of one array. No reply that this library asks for has more than a handful.
pub const MAX_ARRAY: usize = 64;
/// Longest number or length: a minus and 19 digits.
const MAX_NUMBER: usize = 20;
/// Longest reply as a whole, so that the other limits cannot multiply.
pub const MAX_REPLY: usize = 2 * 1024 * 1024;

/// Appends one command to `out`: an array of bulk strings.
pub fn encode(out: &mut Vec<u8>, arguments: &[&[u8]]) {
    begin(out, arguments.len());
    arguments.iter().for_each(|argument| push(out, argument));
}

/// Begins a command with so many arguments.
#[inline]
pub(super) fn begin(out: &mut Vec<u8>, arguments: usize) {
    push_header(out, b'*', arguments);
}

/// Appends one argument.
#[inline]
pub(super) fn push(out: &mut Vec<u8>, argument: &[u8]) {
    push_joined(out, &[argument]);
}

/// Appends one argument that these parts make up.
#[inline]
pub(super) fn push_joined(out: &mut Vec<u8>, parts: &[&[u8]]) {
    push_header(out, b'$', parts.iter().map(|part| part.len()).sum());
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.extend_from_slice(b"\r\n");
}

/// One reply, borrowed from the buffer it was read from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reply<'b> {
    /// `*`: an array, or `None` for the null array.
    Array(Option<Elements<'b>>),
    /// `$`: a binary string, or `None` for the null string.
    Bulk(Option<&'b [u8]>),
    /// `-`: an error. Its text comes from the server and may echo what we sent: never show it.
    Error(&'b [u8]),
    /// `:`: a signed 64-bit number.
    Integer(i64),
    /// `+`: a short status such as `OK`.
    Simple(&'b [u8]),
}

/// Shows the type and the size only: a reply may echo an owner token or a password.
impl fmt::Debug for Reply<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Array(None) => f.write_str("Array(null)"),
            Reply::Array(Some(elements)) => write!(f, "Array({} elements)", elements.left),
            Reply::Bulk(None) => f.write_str("Bulk(null)"),
            Reply::Bulk(Some(bytes)) => write!(f, "Bulk({} bytes)", bytes.len()),
            Reply::Error(text) => write!(f, "Error({} bytes)", text.len()),
            Reply::Integer(number) => write!(f, "Integer({number})"),
            Reply::Simple(text) => write!(f, "Simple({} bytes)", text.len()),
        }
    }
}

/// The elements of an array, read one by one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Elements<'b> {
    left: usize,
    bytes: &'b [u8],
}

impl<'b> Iterator for Elements<'b> {
    type Item = Reply<'b>;

    fn next(&mut self) -> Option<Reply<'b>> {
        if self.left == 0 {
            return None;
        }
        let (element, length) = value(self.bytes, true).ok()??;
        self.left -= 1;
        self.bytes = &self.bytes[length..];
        Some(element)
    }
}

/// A reply and its length in bytes, or `None` while it is incomplete; or the first rule of RESP2
/// that the bytes break.
type Decoded<'b> = Result<Option<(Reply<'b>, usize)>, ProtocolError>;

/// The reply that `buffer` begins with and its length in bytes, or `None` while it is incomplete.
///
/// # Errors
/// The first rule of RESP2 that the bytes break. The connection is of no use after it.
#[inline]
pub fn decode(buffer: &[u8]) -> Decoded<'_> {
    match common(buffer) {
        None => value(buffer, false),
        common => Ok(common),
    }
}

/// The replies that every lock and release brings, at a glance.
fn common(buffer: &[u8]) -> Option<(Reply<'_>, usize)> {
    match buffer {
        [b'+', b'O', b'K', b'\r', b'\n', ..] => Some((Reply::Simple(&buffer[1..3]), 5)),
        [b'$', b'-', b'1', b'\r', b'\n', ..] => Some((Reply::Bulk(None), 5)),
        [b':', digit @ b'0'..=b'9', b'\r', b'\n', ..] => {
            Some((Reply::Integer(i64::from(digit - b'0')), 4))
        }
        _ => None,
    }
}

/// The value that `buffer` begins with, which is an element of an array if so.
fn value(buffer: &[u8], is_element: bool) -> Decoded<'_> {
    let kind = match buffer.first() {
        None => return Ok(None),
        Some(b'*') if is_element => return Err(ProtocolError::TooDeep),
        Some(b'+' | b'-') if is_element => return Err(ProtocolError::UnexpectedReply),
        Some(kind @ (b'*' | b'+' | b'-' | b':' | b'$')) => kind,
        Some(_) => return Err(ProtocolError::UnknownType),
    };
    let Some(line) = line(buffer)? else {
        return Ok(None);
    };
    let begin = 1 + line.len() + 2;
    let reply = match kind {
        b'+' => Reply::Simple(line),
        b'-' => Reply::Error(line),
        b':' => Reply::Integer(digits::integer(line).ok_or(ProtocolError::BadNumber)?),
        b'$' => match parse_length(line, MAX_BULK, ProtocolError::BulkTooLong)? {
            None => Reply::Bulk(None),
            Some(length) => return bulk(buffer, begin, begin + length),
        },
        _ => match parse_length(line, MAX_ARRAY, ProtocolError::ArrayTooLong)? {
            None => Reply::Array(None),
            Some(count) => return array(buffer, begin, count),
        },
    };
    Ok(Some((reply, begin)))
}

fn bulk(buffer: &[u8], begin: usize, end: usize) -> Decoded<'_> {
    // A wrong line end is an error as soon as it is seen, so that a server cannot keep us waiting
    // for its second half.
    match buffer.get(end..) {
        None | Some([] | [b'\r']) => Ok(None),
        Some([b'\r', b'\n', ..]) => Ok(Some((Reply::Bulk(Some(&buffer[begin..end])), end + 2))),
        Some(_) => Err(ProtocolError::MissingCrlf),
    }
}

fn array(buffer: &[u8], begin: usize, left: usize) -> Decoded<'_> {
    let mut end = begin;
    for _ in 0..left {
        let Some((_, length)) = value(&buffer[end..], true)? else {
            return Ok(None);
        };
        end += length;
        if end > MAX_REPLY {
            return Err(ProtocolError::ReplyTooLong);
        }
    }
    let bytes = &buffer[begin..end];
    Ok(Some((Reply::Array(Some(Elements { left, bytes })), end)))
}

/// The line that follows the type, without its CRLF, or `None` while the CRLF has not come.
fn line(buffer: &[u8]) -> Result<Option<&[u8]>, ProtocolError> {
    let (limit, too_long) = match buffer[0] {
        b'+' | b'-' => (MAX_LINE, ProtocolError::LineTooLong),
        _ => (MAX_NUMBER, ProtocolError::BadNumber),
    };
    let body = &buffer[1..];
    let mut bytes = body.iter().take(limit + 1);
    match bytes.position(|byte| matches!(byte, b'\r' | b'\n')) {
        None if body.len() > limit => Err(too_long),
        None => Ok(None),
        Some(end) => match body[end..] {
            [b'\r'] => Ok(None),
            [b'\r', b'\n', ..] => Ok(Some(&body[..end])),
            _ => Err(ProtocolError::MissingCrlf),
        },
    }
}

/// A length: digits, or `-1` for null. No other negative number is one.
fn parse_length(
    line: &[u8],
    limit: usize,
    too_long: ProtocolError,
) -> Result<Option<usize>, ProtocolError> {
    if line == b"-1" {
        return Ok(None);
    }
    match digits::canonical(line) {
        Some(length) if length <= limit as u64 => Ok(Some(length as usize)),
        Some(_) => Err(too_long),
        None => Err(ProtocolError::BadNumber),
    }
}

/// `*3\r\n` or `$40\r\n`: this runs for every argument of every command, and most are short.
fn push_header(out: &mut Vec<u8>, kind: u8, length: usize) {
    match length {
        0..10 => out.extend_from_slice(&[kind, b'0' + length as u8, b'\r', b'\n']),
        10..100 => out.extend_from_slice(&[
            kind,
            b'0' + (length / 10) as u8,
            b'0' + (length % 10) as u8,
            b'\r',
            b'\n',
        ]),
        _ => {
            out.push(kind);
            out.extend_from_slice(decimal(length as u64, &mut [0; 20]));
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// A number in decimal, written at the end of `digits`.
pub fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[start..];
        }
    }
}

#[cfg(test)]
mod tests;
