//! What a waiter asks of the nodes of its client: to listen for releases, and to sleep until one.

use super::Nodes;
use crate::algorithm::place::PlaceId;
use crate::algorithm::time::Timestamp;
use crate::engine::driver::WaitSlots;
use crate::engine::interrupt::Interrupt;
use crate::engine::wait_registry::{WaitRegistry, WakeReason};
use crate::protocol::session::Ticket;
use crate::protocol::subscription::Key;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

impl Nodes {
    /// Registers a waiter for any of these keys. `subscribes`: it waits for long enough.
    pub(in crate::engine) fn listen(&mut self, keys: &[Key], subscribes: bool, now: Timestamp) {
        let is_changed = self.subscribers.listen(keys, subscribes, &self.connections, now);
        self.poll.note_change(is_changed);
    }

    /// Unregisters a waiter. `has_won`: it acquired the lock. `successor`: the next call, which is to hear of releases.
    pub(in crate::engine) fn unlisten(
        &mut self,
        keys: &[Key],
        (has_won, successor): (bool, Option<PlaceId>),
        now: Timestamp,
    ) {
        self.subscribers.unlisten(keys, (has_won, successor), &mut self.poll, now);
    }

    /// Ends the subscription to a key for a call that none will make.
    pub(in crate::engine) fn forget_successor(&mut self, keys: &[Key], now: Timestamp) {
        self.subscribers.forget_successor(keys, &mut self.poll, now);
    }

    /// Begins a wait for a release of any of these keys. It ends at once when something has happened, or the interrupt
    /// was set, before.
    pub(in crate::engine) fn sleep(
        &mut self,
        keys: &[Key],
        interrupt: &Arc<Interrupt>,
        now: Timestamp,
        notify: &mut WaitSlots,
    ) -> Ticket {
        let waiter = (keys, interrupt);
        let (ticket, is_changed) = self.subscribers.sleep(waiter, &self.connections, &mut self.rounds, now, notify);
        self.poll.note_change(is_changed);
        ticket
    }

    /// Ends a wait, and gives what has ended it before its deadline, and the place of its key.
    pub(in crate::engine) fn wake(&mut self, ticket: Ticket, keys: &[Key]) -> Option<(WakeReason, usize)> {
        self.subscribers.wake(ticket, keys, &mut self.rounds)
    }

    /// Which threads wait for which key, and what was announced of it.
    pub(in crate::engine) fn wait_registry(&mut self) -> &mut WaitRegistry {
        &mut self.subscribers.registry
    }

    /// How many other programs a caller that wants the key, and has not waited for it, should let go first.
    pub(in crate::engine) fn defers_to(&mut self, key: &[u8], is_handed_on: bool, now: Timestamp) -> u8 {
        self.subscribers.registry.defers_to(key, is_handed_on, now)
    }

    /// Whether [`defers_to`](Nodes::defers_to) can be more than 0 for any key.
    pub(in crate::engine) fn is_crowded(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.subscribers.registry.is_crowded)
    }
}
