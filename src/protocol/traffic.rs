//! The bytes of one connection: those still to be sent, and those received and not yet parsed.
//!
//! The buffers are kept from one use to the next, so that the steady state allocates nothing.

use super::resp::{Decoder, Reply};
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::time::Timestamp;

/// Free space below which the receive buffer is compacted before a read.
const LOW_SPACE: usize = 2 * 1024;

/// Bytes to be sent, in order.
#[derive(Default)]
pub struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
    /// Since the connection was begun.
    all_sent: u64,
}

impl Outgoing {
    /// Where to append a command.
    pub(super) fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes to be sent.
    pub fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Says that the first `count` of the unsent bytes went out.
    pub fn sent(&mut self, count: usize) {
        self.sent += count;
        self.all_sent += count as u64;
        if self.sent >= self.bytes.len() {
            self.bytes.clear();
            self.sent = 0;
        } else if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// How many bytes went out.
    pub(super) fn all_sent(&self) -> u64 {
        self.all_sent
    }

    /// How many bytes there were ever.
    pub(super) fn all(&self) -> u64 {
        self.all_sent + self.unsent().len() as u64
    }
}

/// Bytes received.
pub struct Incoming {
    /// The size of the buffer, and the size it returns to after a longer reply.
    size: usize,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    decoder: Decoder,
    /// When the last read began. Replies are as old as it says.
    pub read_at: Timestamp,
}

impl Incoming {
    /// With a buffer of this size, which grows for a longer reply.
    pub(super) fn new(size: usize) -> Incoming {
        Incoming { size, bytes: Vec::new(), start: 0, end: 0, decoder: Decoder::default(), read_at: Timestamp::ORIGIN }
    }

    /// Where to read to. Never empty.
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
            // The first read, or one reply fills it all: the decoder's limits bound how often that happens.
            self.bytes.resize((self.bytes.len() * 2).max(self.size), 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Says that `count` bytes were read into [`space`](Incoming::space).
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

    /// The next reply and its length, if all of it is there. It stays until it is [`taken`](Incoming::taken).
    ///
    /// # Errors
    /// The bytes are no replies.
    pub(super) fn decode(&mut self) -> Result<Option<(Reply<'_>, usize)>, ProtocolError> {
        self.decoder.decode(&self.bytes[self.start..self.end])
    }

    /// A reply of this length was parsed.
    pub(super) fn taken(&mut self, length: usize) {
        self.start += length;
    }
}
