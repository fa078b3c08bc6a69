//! The part of a conversation that asks which holder has a lock, or which keys of a set are there.

use super::{Request, Session, Ticket};
use crate::algorithm::inspection::Occupant;
use crate::algorithm::time::Timestamp;
use crate::protocol::command;
use crate::protocol::dialect::Dialect;
use crate::protocol::{inspection, lock_key};

impl Session {
    /// Queues the question which keys of a set are there, unless the answer to its acquisition says it.
    pub fn ask_for_held_keys(&mut self, ticket: Ticket, keys: &[u8], now: Timestamp) {
        let last = lock_key::count(keys) - 1;
        if last > 0 && self.set_dialect == Dialect::Msetex {
            for (part, key) in lock_key::each(keys).enumerate() {
                command::remaining(self.traffic.end(), key);
                self.await_reply(Request::Exists(ticket, part as u8, part == last), now);
            }
        }
    }

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
