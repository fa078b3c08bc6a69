//! The part of a conversation that moves bytes, and counts what they are to be answered with.

use super::Session;
use crate::algorithm::time::Timestamp;

impl Session {
    /// The connection is made: from now on the server can answer. What was queued while there was none counts as asked now.
    pub fn connected(&mut self, now: Timestamp) {
        for expected in &mut self.expected {
            expected.asked_at = now;
        }
    }

    /// How many replies are expected.
    pub fn backlog(&self) -> usize {
        self.expected.len()
    }

    /// When the request was made whose reply is expected next.
    pub fn waiting_since(&self) -> Option<Timestamp> {
        self.expected.front().map(|expected| expected.asked_at)
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

    /// Says that `count` bytes were read into [`space`](Session::space).
    pub fn received(&mut self, count: usize) {
        self.incoming.received(count);
    }

    /// Whether bytes were received that have not been understood yet.
    pub fn has_input(&self) -> bool {
        !self.incoming.is_empty()
    }
}
