//! The bytes of one connection: those still to be sent, and those received and not yet parsed.
//!
//! The buffers are kept from one use to the next, so that the steady state allocates nothing.

use super::resp::{Decoder, Reply};
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::time::Timestamp;

/// Free space below which the receive buffer is compacted before a read.
const LOW_SPACE: usize = 2 * 1024;

/// What goes over one connection in both directions. A session or a subscription says what it means.
pub struct Traffic {
    outgoing: Outgoing,
    incoming: Incoming,
    /// How many bytes there were before the last command.
    begin: u64,
    /// When the last read began.
    read_at: Timestamp,
}

impl Traffic {
    /// With a receive buffer of this size, which grows for a longer reply.
    pub(super) fn new(receive_buffer: usize) -> Traffic {
        Traffic {
            outgoing: Outgoing::default(),
            incoming: Incoming::of_size(receive_buffer),
            begin: 0,
            read_at: Timestamp::ORIGIN,
        }
    }

    /// The bytes to be sent.
    pub fn unsent(&self) -> &[u8] {
        self.outgoing.unsent()
    }

    /// Says that the first `count` of the unsent bytes went out.
    pub fn sent(&mut self, count: usize) {
        self.outgoing.sent(count);
    }

    /// Where to read to. Never empty.
    pub fn space(&mut self) -> &mut [u8] {
        self.incoming.space()
    }

    /// Says that `count` bytes were read into [`space`](Traffic::space).
    pub fn received(&mut self, count: usize) {
        self.incoming.received(count);
    }

    /// Says when a read began. Replies are as old as it says.
    pub fn reading(&mut self, now: Timestamp) {
        self.read_at = now;
    }

    /// Whether bytes were received that have not been parsed yet.
    pub fn has_input(&self) -> bool {
        !self.incoming.is_empty()
    }

    /// Where to append a command.
    pub(super) fn end(&mut self) -> &mut Vec<u8> {
        self.begin = self.outgoing.all_sent + self.outgoing.unsent().len() as u64;
        self.outgoing.end()
    }

    /// How many bytes there were before the last command.
    pub(super) fn begin(&self) -> u64 {
        self.begin
    }

    /// How many bytes went out.
    pub(super) fn all_sent(&self) -> u64 {
        self.outgoing.all_sent
    }

    /// When the last read began.
    pub(super) fn read_at(&self) -> Timestamp {
        self.read_at
    }

    /// The bytes that were received and have not been parsed yet.
    pub fn input(&self) -> &[u8] {
        &self.incoming.bytes[self.incoming.start..self.incoming.end]
    }

    /// The next reply and its length, if all of it is there. It stays until it is [`taken`](Traffic::taken).
    ///
    /// # Errors
    /// The bytes are no replies.
    pub(super) fn decode(&mut self) -> Result<Option<(Reply<'_>, usize)>, ProtocolError> {
        self.incoming.decode()
    }

    /// A reply of this length was parsed.
    pub(super) fn taken(&mut self, length: usize) {
        self.incoming.taken(length);
    }
}

/// Bytes to be sent, in order.
#[derive(Default)]
struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
    /// Since the connection was begun.
    all_sent: u64,
}

impl Outgoing {
    /// Where to append.
    fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes to be sent.
    fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// The first `count` of them went out.
    fn sent(&mut self, count: usize) {
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
}

/// Bytes received.
struct Incoming {
    /// The size of the buffer, and the size it returns to after a longer reply.
    size: usize,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    decoder: Decoder,
}

impl Incoming {
    fn of_size(size: usize) -> Incoming {
        Incoming { size, bytes: Vec::new(), start: 0, end: 0, decoder: Decoder::default() }
    }

    /// Where to read to. Never empty.
    fn space(&mut self) -> &mut [u8] {
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

    /// This many bytes were read into [`space`](Incoming::space).
    fn received(&mut self, count: usize) {
        self.end += count;
        debug_assert!(self.end <= self.bytes.len());
    }

    /// Whether everything was parsed.
    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The next reply and its length, if all of it is there. It stays until it is [`taken`](Incoming::taken).
    ///
    /// # Errors
    /// The bytes are no replies.
    fn decode(&mut self) -> Result<Option<(Reply<'_>, usize)>, ProtocolError> {
        self.decoder.decode(&self.bytes[self.start..self.end])
    }

    /// A reply of this length was parsed.
    fn taken(&mut self, length: usize) {
        self.start += length;
    }
}
