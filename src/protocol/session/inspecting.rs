//! The part of a conversation that asks which holder has a lock.

use super::{Request, Session, Ticket};
use crate::algorithm::inspection::Occupant;
use crate::algorithm::time::Timestamp;
use crate::protocol::inspection;

impl Session {
    /// Queues the questions what is stored under the key of a lock, how many calls wait for it, and until when.
    pub fn inspect(&mut self, ticket: Ticket, key: &[u8], is_fenced: bool, now: Timestamp) {
        inspection::ask(self.traffic.end(), key, is_fenced);
        self.await_reply(Request::Value(is_fenced), now);
        self.await_reply(Request::Waiting, now);
        self.await_reply(Request::End(ticket, is_fenced), now);
    }

    /// Takes how many calls wait for the lock. To be called at the event.
    pub fn take_waiting(&mut self) -> u64 {
        self.inspected.take_waiting()
    }

    /// Takes what the node has under the key, with how long it lasts from now on. To be called at the event.
    pub fn take_occupant(&mut self) -> Option<Occupant> {
        self.inspected.take_occupant()
    }
}
