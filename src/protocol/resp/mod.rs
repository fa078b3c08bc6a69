//! RESP2, the protocol that Redis and Valkey speak: encode a command, decode a reply from a growing
//! buffer.
//!
//! Commands go out as arrays of bulk strings and nothing else. Replies come in as any of the five
//! RESP2 types, split by the network wherever it pleases. [`Decoder`] looks at each byte once
//! however the reply is split, keeps a fixed amount of state, and never allocates: a declared
//! length is a number to compare with a limit, not a size to reserve. A complete reply is then read
//! as a [`Reply`] that borrows from the buffer.
//!
//! Parsing is strict. Off-by-one replies are a class of security holes in Redis clients, and all of
//! them begin with a parser that carried on after a byte it did not expect. Here such a byte is a
//! [`ProtocolError`], after which the connection is of no more use. RESP3 types are among those
//! bytes: this library never asks for RESP3.

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
/// Deepest nesting: an array in an array in an array holding a scalar.
pub const MAX_DEPTH: usize = 4;
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
        let length = Decoder::default().measure(self.bytes).ok()??;
        let (element, rest) = self.bytes.split_at(length);
        self.left -= 1;
        self.bytes = rest;
        Some(read(element))
    }
}

/// Finds the end of one reply in a buffer that grows at its end.
///
/// The buffer given to [`decode`](Decoder::decode) always begins where the present reply begins;
/// the decoder remembers how far it has looked. After a complete reply it is ready for the next
/// one.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Bytes of the present reply that are done with.
    position: usize,
    /// Bytes of the present line, after `position`, that are known to hold no CR or LF.
    scanned: usize,
    /// A bulk string whose header is done with: its length.
    bulk: Option<usize>,
    /// For each open array, how many elements are still to come.
    open: [usize; MAX_DEPTH],
    depth: usize,
}

impl Decoder {
    /// The reply that `buffer` begins with and its length in bytes, or `None` while it is
    /// incomplete.
    ///
    /// # Errors
    /// The first rule of RESP2 that the bytes break. The decoder, like the connection, is of no use
    /// after it.
    #[inline]
    pub fn decode<'b>(
        &mut self,
        buffer: &'b [u8],
    ) -> Result<Option<(Reply<'b>, usize)>, ProtocolError> {
        if self.is_at_the_start()
            && let Some(common) = common(buffer)
        {
            return Ok(Some(common));
        }
        Ok(self
            .measure(buffer)?
            .map(|length| (read(&buffer[..length]), length)))
    }

    /// Whether nothing of the present reply has been looked at.
    fn is_at_the_start(&self) -> bool {
        self.position == 0 && self.scanned == 0
    }

    /// The length of the reply that `buffer` begins with, once it is all there and obeys every
    /// rule.
    fn measure(&mut self, buffer: &[u8]) -> Result<Option<usize>, ProtocolError> {
        loop {
            let scalar_done = match self.bulk {
                Some(length) => {
                    if !self.skip_bulk(buffer, length)? {
                        return Ok(None);
                    }
                    true
                }
                None => match self.take_line(buffer)? {
                    None => return Ok(None),
                    Some(scalar_done) => scalar_done,
                },
            };
            if self.position > MAX_REPLY {
                return Err(ProtocolError::ReplyTooLong);
            }
            if scalar_done && self.close_arrays() {
                let length = self.position;
                *self = Decoder::default();
                return Ok(Some(length));
            }
        }
    }

    /// Takes one line. `Some(true)` when it completes a value, `Some(false)` when more of the value
    /// follows.
    fn take_line(&mut self, buffer: &[u8]) -> Result<Option<bool>, ProtocolError> {
        let Some(&kind) = buffer.get(self.position) else {
            return Ok(None);
        };
        if !matches!(kind, b'+' | b'-' | b':' | b'$' | b'*') {
            return Err(ProtocolError::UnknownType);
        }
        let body = &buffer[self.position + 1..];
        let Some(line) = find_line(body, &mut self.scanned)? else {
            return Ok(None);
        };
        self.scanned = 0;
        self.position += 1 + line.len() + 2;
        match kind {
            b':' => {
                parse_integer(line)?;
                Ok(Some(true))
            }
            b'$' => match parse_length(line, MAX_BULK, ProtocolError::BulkTooLong)? {
                None => Ok(Some(true)),
                Some(length) => {
                    self.bulk = Some(length);
                    Ok(Some(false))
                }
            },
            b'*' => match parse_length(line, MAX_ARRAY, ProtocolError::ArrayTooLong)? {
                None | Some(0) => Ok(Some(true)),
                Some(length) => {
                    // The innermost level is for scalars.
                    if self.depth + 1 >= MAX_DEPTH {
                        return Err(ProtocolError::TooDeep);
                    }
                    self.open[self.depth] = length;
                    self.depth += 1;
                    Ok(Some(false))
                }
            },
            _ => Ok(Some(true)),
        }
    }

    /// Whether the whole bulk string and its CRLF are there; steps over them if so.
    fn skip_bulk(&mut self, buffer: &[u8], length: usize) -> Result<bool, ProtocolError> {
        let rest = &buffer[self.position..];
        // A wrong line end is an error as soon as it is seen, so that a server cannot keep us
        // waiting for its second half.
        if rest.get(length).is_some_and(|&byte| byte != b'\r')
            || rest.get(length + 1).is_some_and(|&byte| byte != b'\n')
        {
            return Err(ProtocolError::MissingCrlf);
        }
        if rest.len() < length + 2 {
            return Ok(false);
        }
        self.bulk = None;
        self.position += length + 2;
        Ok(true)
    }

    /// Counts a finished value in the arrays around it; true when the outermost value is finished.
    fn close_arrays(&mut self) -> bool {
        while self.depth > 0 {
            let left = &mut self.open[self.depth - 1];
            *left -= 1;
            if *left > 0 {
                return false;
            }
            self.depth -= 1;
        }
        true
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

/// The line that `body` begins with, without its CRLF, or `None` while the CRLF has not come.
fn find_line<'b>(body: &'b [u8], scanned: &mut usize) -> Result<Option<&'b [u8]>, ProtocolError> {
    let fresh = &body[*scanned..];
    let Some(offset) = fresh
        .iter()
        .position(|&byte| byte == b'\r' || byte == b'\n')
    else {
        *scanned = body.len();
        return if body.len() > MAX_LINE {
            Err(ProtocolError::LineTooLong)
        } else {
            Ok(None)
        };
    };
    let end = *scanned + offset;
    if end > MAX_LINE {
        return Err(ProtocolError::LineTooLong);
    }
    if body[end] == b'\n' {
        return Err(ProtocolError::MissingCrlf);
    }
    *scanned = end;
    match body.get(end + 1) {
        None => Ok(None),
        Some(b'\n') => Ok(Some(&body[..end])),
        Some(_) => Err(ProtocolError::MissingCrlf),
    }
}

/// Reads a value that [`Decoder::measure`] has accepted. Every fallback below is for bytes it does
/// not accept.
fn read(bytes: &[u8]) -> Reply<'_> {
    let end = bytes
        .iter()
        .position(|&byte| byte == b'\r')
        .unwrap_or(bytes.len());
    let line = &bytes[1..end];
    let rest = bytes.get(end + 2..).unwrap_or_default();
    match bytes[0] {
        b'+' => Reply::Simple(line),
        b'-' => Reply::Error(line),
        b':' => Reply::Integer(parse_integer(line).unwrap_or_default()),
        b'$' => Reply::Bulk(
            parse_length(line, MAX_BULK, ProtocolError::BulkTooLong)
                .ok()
                .flatten()
                .map(|length| &rest[..length]),
        ),
        _ => Reply::Array(
            parse_length(line, MAX_ARRAY, ProtocolError::ArrayTooLong)
                .ok()
                .flatten()
                .map(|left| Elements { left, bytes: rest }),
        ),
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
    match usize::try_from(parse_integer(line)?) {
        Ok(length) if length <= limit => Ok(Some(length)),
        Ok(_) => Err(too_long),
        Err(_) => Err(ProtocolError::BadNumber),
    }
}

/// An optional minus and digits, without leading zeros: as servers write numbers, and in no other
/// way.
fn parse_integer(line: &[u8]) -> Result<i64, ProtocolError> {
    let (negative, digits) = match line {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let canonical = match digits {
        [] => false,
        [b'0'] => !negative,
        [b'0', ..] => false,
        _ => true,
    };
    if !canonical {
        return Err(ProtocolError::BadNumber);
    }
    // Counted downwards, because the most negative number has no positive twin.
    let mut number: i64 = 0;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return Err(ProtocolError::BadNumber);
        }
        number = number
            .checked_mul(10)
            .and_then(|number| number.checked_sub(i64::from(digit - b'0')))
            .ok_or(ProtocolError::BadNumber)?;
    }
    if negative {
        Ok(number)
    } else {
        number.checked_neg().ok_or(ProtocolError::BadNumber)
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

/// A number in decimal digits.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
