//! The bytes that one connection has received, and that are not yet parsed.
//!
//! The buffer is kept from one use to the next, so that the steady state allocates nothing.

use super::resp::{self, Reply};
use crate::algorithm::digits;
use crate::algorithm::time::Timestamp;
use crate::fault::protocol_error::ProtocolError;

/// Free space below which the receive buffer is compacted before a read.
const LOW_SPACE: usize = 2 * 1024;
/// Longest string that is dropped: what servers store at most, unless their `proto-max-bulk-len` is
/// raised. One that does not end would be read as fast as it arrives.
const LONGEST_VALUE: usize = 512 * 1024 * 1024;

/// Bytes received.
pub struct Incoming {
    /// The size of the buffer, and the size it returns to after a longer reply.
    size: usize,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the present string that were [skipped](Incoming::skip_long).
    skipped: usize,
    /// When the last read began. The age of the replies counts from this time.
    pub read_at: Timestamp,
}

impl Incoming {
    /// With a buffer of this size, which grows for a longer reply. What was there to be read before
    /// now was read.
    pub(super) fn new(size: usize, now: Timestamp) -> Incoming {
        Incoming {
            size,
            bytes: Vec::new(),
            start: 0,
            end: 0,
            skipped: 0,
            read_at: now,
        }
    }

    /// Where to read to. Never empty.
    #[inline]
    pub fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.bytes.len() > self.size {
                self.bytes.truncate(self.size);
                self.bytes.shrink_to_fit();
            }
        }
        if self.bytes.len() - self.end < LOW_SPACE && self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.bytes.len() {
            // The first read, or one reply fills it all: the limits of RESP2 bound how often that
            // happens.
            self.bytes.resize((self.bytes.len() * 2).max(self.size), 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Records that `count` bytes were read into [`space`](Incoming::space).
    pub fn received(&mut self, count: usize) {
        self.end += count;
        debug_assert!(self.end <= self.bytes.len());
    }

    /// Whether everything was parsed.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The bytes that were not parsed yet.
    pub fn unparsed(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The next reply and its length, if all of it is there. It stays until it is
    /// [`taken`](Incoming::taken).
    ///
    /// # Errors
    /// The bytes are no replies.
    pub(super) fn decode(&self) -> Result<Option<(Reply<'_>, usize)>, ProtocolError> {
        resp::decode(self.unparsed())
    }

    /// Drops what has arrived of a string that [`decode`](Incoming::decode) has found to be too
    /// long: it finds the same again while its header stays. Once all of it was dropped, it counts
    /// as a value of another type.
    ///
    /// # Errors
    /// It is in an array, is longer than any that servers store, or does not end as it should.
    pub(super) fn skip_long(&mut self) -> Result<Option<(Reply<'static>, usize)>, ProtocolError> {
        let (header, length) = header(self.unparsed()).ok_or(ProtocolError::BulkTooLong)?;
        let begin = self.start + header;
        let dropped = (self.end - begin).min(length - self.skipped);
        self.bytes.copy_within(begin + dropped..self.end, begin);
        self.end -= dropped;
        self.skipped += dropped;
        match self.bytes[begin..self.end] {
            [] | [b'\r'] => Ok(None),
            [b'\r', b'\n', ..] => {
                self.skipped = 0;
                Ok(Some((Reply::Error(b"WRONGTYPE"), header + 2)))
            }
            _ => Err(ProtocolError::MissingCrlf),
        }
    }

    /// A reply of this length was parsed.
    pub(super) fn taken(&mut self, length: usize) {
        self.start += length;
    }
}

/// The length of a string's header, and of the string, unless that is too long.
fn header(unparsed: &[u8]) -> Option<(usize, usize)> {
    let line = unparsed.split(|&byte| byte == b'\r').next()?;
    let length = usize::try_from(digits::number(line.strip_prefix(b"$")?)?).ok()?;
    (length <= LONGEST_VALUE).then_some((line.len() + 2, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer that has read so many bytes, and parsed those that are not left.
    fn buffer(read: usize, left: usize) -> Incoming {
        let mut incoming = Incoming::new(2 * LOW_SPACE, Timestamp::ORIGIN);
        incoming.space()[..read].fill(b'x');
        incoming.received(read);
        incoming.taken(read - left);
        incoming
    }

    #[test]
    fn what_is_left_moves_to_the_front_where_there_is_little_space_behind_it() {
        for (read, left, space) in [
            (LOW_SPACE, 12, LOW_SPACE),
            (LOW_SPACE + 1, 12, 2 * LOW_SPACE - 12),
            (2 * LOW_SPACE, 12, 2 * LOW_SPACE - 12),
            (2 * LOW_SPACE, 0, 2 * LOW_SPACE),
            // A reply that fills it: it grows.
            (2 * LOW_SPACE, 2 * LOW_SPACE, 2 * LOW_SPACE),
        ] {
            let mut incoming = buffer(read, left);
            assert_eq!(incoming.space().len(), space, "{read} read, {left} left");
            assert_eq!(incoming.unparsed(), vec![b'x'; left]);
        }
    }
}
