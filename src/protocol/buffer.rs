//! The bytes of one connection: those still to be sent, and those received and not yet understood.
//!
//! Both buffers are kept from one use to the next, so that the steady state allocates nothing.

use super::resp::{Decoder, Reply};
use crate::algorithm::protocol_error::ProtocolError;

/// Free space below which the receive buffer is compacted before a read.
const LOW_SPACE: usize = 2 * 1024;

/// Bytes to be sent, in order.
#[derive(Default)]
pub(super) struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
}

impl Outgoing {
    /// Where to append.
    pub(super) fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes to be sent.
    pub(super) fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// The first `count` of them went out.
    pub(super) fn sent(&mut self, count: usize) {
        self.sent += count;
        if self.sent >= self.bytes.len() {
            self.bytes.clear();
            self.sent = 0;
        } else if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }
}

/// Bytes received.
pub(super) struct Incoming {
    /// The size of the buffer, and the size it returns to after a longer reply.
    size: usize,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    decoder: Decoder,
}

impl Incoming {
    pub(super) fn of_size(size: usize) -> Incoming {
        Incoming { size, bytes: vec![0; size], start: 0, end: 0, decoder: Decoder::default() }
    }

    /// Where to read to. Never empty.
    pub(super) fn space(&mut self) -> &mut [u8] {
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
            // One reply fills it all. The decoder's limits bound how often this happens.
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// So many bytes were read into [`space`](Incoming::space).
    pub(super) fn received(&mut self, count: usize) {
        self.end += count;
        debug_assert!(self.end <= self.bytes.len());
    }

    /// Whether everything was understood.
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The next reply and its length, if all of it is there. It stays until it is [`taken`](Incoming::taken).
    ///
    /// # Errors
    /// The bytes are no replies.
    pub(super) fn decode(&mut self) -> Result<Option<(Reply<'_>, usize)>, ProtocolError> {
        self.decoder.decode(&self.bytes[self.start..self.end])
    }

    /// A reply of this length was understood.
    pub(super) fn taken(&mut self, length: usize) {
        self.start += length;
    }
}
