//! The bytes of one connection: those still to be sent, those received and not yet parsed, and the times of the
//! requests whose replies are expected.
//!
//! The buffers are kept from one use to the next, so that the steady state allocates nothing.

use super::resp::{Decoder, Reply};
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::time::Timestamp;
use std::collections::VecDeque;
use std::time::Duration;

/// Free space below which the receive buffer is compacted before a read.
const LOW_SPACE: usize = 2 * 1024;

/// What goes over one connection in both directions. A session or a subscription says what it means.
pub struct Traffic {
    outgoing: Outgoing,
    incoming: Incoming,
    /// When each request was made whose reply is expected, oldest first, and how many bytes there were before it.
    asked: VecDeque<(Timestamp, u64)>,
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
            asked: VecDeque::new(),
            begin: 0,
            read_at: Timestamp::ORIGIN,
        }
    }

    /// The connection is made: from now on the server can answer. What was queued while there was none counts as asked
    /// now.
    pub fn connected(&mut self, now: Timestamp) {
        self.asked.iter_mut().for_each(|(asked_at, _)| *asked_at = now);
    }

    /// How many replies are expected.
    pub fn backlog(&self) -> usize {
        self.asked.len()
    }

    /// When the request was made whose reply is expected next.
    pub fn waiting_since(&self) -> Option<Timestamp> {
        self.asked.front().map(|&(asked_at, _)| asked_at)
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

    /// Expects one more reply to the last command.
    pub(super) fn note_request(&mut self, asked_at: Timestamp) {
        self.asked.push_back((asked_at, self.begin));
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

    /// A reply of this length was parsed that answers no request.
    pub(super) fn taken(&mut self, length: usize) {
        self.incoming.taken(length);
    }

    /// A reply of this length was parsed. It answers the oldest request: gives how long that took.
    pub(super) fn answered(&mut self, length: usize) -> Duration {
        self.incoming.taken(length);
        self.asked.pop_front().map_or(Duration::ZERO, |(asked_at, _)| self.read_at.since(asked_at))
    }

    /// No reply is expected any more. Gives how many of the requests that were, from the oldest on, may have been
    /// written, in part at least. Of the others no byte was.
    pub(super) fn abandon(&mut self) -> usize {
        let written = self.asked.partition_point(|&(_, begin)| begin < self.outgoing.all_sent);
        self.asked.clear();
        written
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

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of three requests of four bytes each, the last one with two replies, may have been written when so many
    /// bytes were, and so many replies have come.
    fn written(bytes: usize, replies: usize) -> usize {
        let mut traffic = Traffic::new(1024);
        for replies in [1, 1, 2] {
            traffic.end().extend_from_slice(b"ask\n");
            (0..replies).for_each(|_| traffic.note_request(Timestamp::ORIGIN));
        }
        (0..bytes).for_each(|_| traffic.sent(1));
        for _ in 0..replies {
            traffic.answered(0);
        }
        traffic.abandon()
    }

    #[test]
    fn a_request_counts_as_written_from_its_first_byte_on() {
        let all: Vec<usize> = (0..=12).map(|bytes| written(bytes, 0)).collect();
        assert_eq!(all, [0, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4]);
        assert_eq!([written(4, 1), written(5, 1), written(8, 2), written(9, 2), written(12, 4)], [0, 1, 0, 2, 0]);
    }
}
