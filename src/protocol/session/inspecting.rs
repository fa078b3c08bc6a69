//! The part of a conversation that asks which holder has a lock: a waiter for a moment's guess, or an operator. Or for
//! how long each of several locks is held: a question each, and one answer.

use super::{Request, Session, Ticket};
use crate::algorithm::inspection::Occupant;
use crate::algorithm::time::Timestamp;
use crate::protocol::command::{self, Lifetime};
use crate::protocol::dialect::Dialect;
use crate::protocol::{holder, inspection, lock_key};

impl Session {
    /// Queues the questions for how long a key lives, and which holder has it. The script of a fenced lock says in any
    /// case how long it is held.
    pub fn ask_for_holder(&mut self, ticket: Ticket, key: &[u8], is_fenced: bool, now: Timestamp) {
        if !is_fenced {
            command::remaining(self.traffic.end(), key);
            self.await_reply(Request::Remaining(ticket), now);
        }
        if self.tells_holders {
            holder::ask(self.traffic.end(), key);
            self.await_reply(Request::Holder(ticket, is_fenced), now);
        }
    }

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

    /// Queues the questions what stands under the key of a lock, and until when.
    pub fn inspect(&mut self, ticket: Ticket, key: &[u8], is_fenced: bool, now: Timestamp) {
        inspection::ask(self.traffic.end(), key, is_fenced);
        self.await_reply(Request::Value(is_fenced), now);
        self.await_reply(Request::End(ticket, is_fenced), now);
    }

    /// Queues the questions for how long each of these keys lives.
    pub fn survey<'k>(&mut self, ticket: Ticket, keys: impl ExactSizeIterator<Item = &'k [u8]>, now: Timestamp) {
        let last = keys.len().saturating_sub(1);
        for (slot, key) in keys.enumerate() {
            command::remaining(self.traffic.end(), key);
            self.await_reply(Request::Slot(ticket, slot == last), now);
        }
    }

    /// Takes how long each of the keys lives, from now on. None if the node did not say. To be called at the event.
    pub fn take_slots(&mut self) -> Vec<Lifetime> {
        self.inspected.take_slots()
    }

    /// Takes what the node has under the key, with how long it lasts from now on. To be called at the event.
    pub fn take_occupant(&mut self) -> Option<Occupant> {
        self.inspected.take_occupant()
    }
}
