//! The ways in which bytes from a node can break the protocol.

use std::fmt;

/// Why bytes are not RESP2. Names the rule that was broken and never quotes the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProtocolError {
    /// An array of more than 64 elements.
    ArrayTooLong,
    /// A bulk string of more than 1 MiB.
    BulkTooLong,
    /// A number or length with anything but an optional minus and digits, or out of range.
    BadNumber,
    /// A line of more than 64 KiB.
    LineTooLong,
    /// CR without LF, LF without CR, or no CRLF after a bulk string.
    MissingCrlf,
    /// A reply of more than 2 MiB.
    ReplyTooLong,
    /// An array in an array.
    TooDeep,
    /// A type that this command does not answer with.
    UnexpectedReply,
    /// A first byte that no RESP2 type has.
    UnknownType,
    /// A reply without a request.
    Unrequested,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ProtocolError::*;
        f.write_str(match self {
            ArrayTooLong => "array too long",
            BulkTooLong => "bulk string too long",
            BadNumber => "malformed number",
            LineTooLong => "line too long",
            MissingCrlf => "misplaced line end",
            ReplyTooLong => "reply too long",
            TooDeep => "arrays nested too deep",
            UnexpectedReply => "unexpected type of reply",
            UnknownType => "not a RESP2 reply",
            Unrequested => "a reply without a request",
        })
    }
}
