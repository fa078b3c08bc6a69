//! The threads that sleep until their tickets are decided.

use super::reactor::Reactor;
use super::wait_cell::{WaitCell, WaitSlot};
use std::collections::BTreeMap;
use std::sync::Arc;

/// So many solitary waits in a row show that no other thread uses the client.
const SOLITARY_WAITS: u32 = 64;

/// One thread that sleeps.
pub(super) struct Sleeper<R: Reactor> {
    pub(super) cell: Arc<WaitCell<R::Verdict>>,
    pub(super) ticket: R::Ticket,
    /// Whether it wants the verdict stored. Otherwise it is only called, and looks for itself.
    pub(super) takes_verdict: bool,
    /// The batch that it was begun with. Zero if it has been awake since.
    pub(super) batch: u64,
    /// Whether connections had to be made first when it was begun.
    pub(super) has_to_connect: bool,
}

/// All of them.
pub(super) struct Sleepers<R: Reactor> {
    by_slot: BTreeMap<WaitSlot, Sleeper<R>>,
    /// How many more waits have to be solitary.
    until_alone: u32,
}

impl<R: Reactor> Sleepers<R> {
    pub(super) fn new() -> Sleepers<R> {
        Sleepers {
            by_slot: BTreeMap::new(),
            until_alone: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_slot.is_empty()
    }

    pub(super) fn insert(&mut self, sleeper: Sleeper<R>) {
        self.by_slot.insert(sleeper.cell.slot, sleeper);
    }

    /// Removes a sleeper, unless that was done before.
    pub(super) fn remove(&mut self, slot: WaitSlot) -> Option<Sleeper<R>> {
        self.by_slot.remove(&slot)
    }

    /// The one that had better drive: one that takes a verdict is done soon, and drives for itself.
    pub(super) fn next_driver(&self) -> Option<Arc<WaitCell<R::Verdict>>> {
        let next = self
            .by_slot
            .values()
            .max_by_key(|sleeper| sleeper.takes_verdict);
        next.map(|sleeper| Arc::clone(&sleeper.cell))
    }

    /// Another thread uses the client.
    pub(super) fn on_other_thread(&mut self) {
        self.until_alone = SOLITARY_WAITS;
    }

    /// A thread has waited, and driven for itself.
    pub(super) fn on_wait(&mut self) {
        if self.is_empty() {
            self.until_alone = self.until_alone.saturating_sub(1);
        }
    }

    /// Whether no other thread uses the client.
    pub(super) fn is_alone(&self) -> bool {
        self.is_empty() && self.until_alone == 0
    }
}
