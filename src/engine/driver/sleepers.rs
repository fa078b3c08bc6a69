//! The threads that sleep until their tickets are decided.

use super::reactor::Reactor;
use super::wait_cell::{WaitCell, WaitSlot};
use std::sync::Arc;

/// One thread that sleeps.
pub(super) struct Sleeper<R: Reactor> {
    pub(super) cell: Arc<WaitCell<R::Verdict>>,
    pub(super) ticket: R::Ticket,
    /// Whether it wants the verdict stored. Otherwise it is only called, and looks for itself.
    pub(super) takes_verdict: bool,
    /// The batch that it was begun with.
    pub(super) batch: u64,
    /// Where it stands among those of its kind.
    position: usize,
}

/// All of them.
pub(super) struct Sleepers<R: Reactor> {
    entries: Vec<Option<Sleeper<R>>>,
    unused: Vec<u32>,
    /// Those that are only called, and those that take a verdict.
    kinds: [Vec<WaitSlot>; 2],
}

impl<R: Reactor> Sleepers<R> {
    pub(super) fn new() -> Sleepers<R> {
        Sleepers { entries: Vec::new(), unused: Vec::new(), kinds: [Vec::new(), Vec::new()] }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kinds.iter().all(Vec::is_empty)
    }

    pub(super) fn insert(
        &mut self,
        cell: &Arc<WaitCell<R::Verdict>>,
        ticket: R::Ticket,
        takes_verdict: bool,
        batch: u64,
    ) -> WaitSlot {
        let index = self.unused.pop().unwrap_or_else(|| {
            self.entries.push(None);
            (self.entries.len() - 1) as u32
        });
        let id = WaitSlot(index);
        let kind = &mut self.kinds[usize::from(takes_verdict)];
        let waiter = Sleeper { cell: Arc::clone(cell), ticket, takes_verdict, batch, position: kind.len() };
        kind.push(id);
        self.entries[index as usize] = Some(waiter);
        id
    }

    /// Whether the waiter of this slot sleeps on this cell.
    pub(super) fn is_on(&self, id: WaitSlot, cell: &Arc<WaitCell<R::Verdict>>) -> bool {
        let waiter = self.entries.get(id.0 as usize).and_then(Option::as_ref);
        waiter.is_some_and(|waiter| Arc::ptr_eq(&waiter.cell, cell))
    }

    /// Removes a waiter, unless that was done before.
    pub(super) fn remove(&mut self, id: WaitSlot) -> Option<Sleeper<R>> {
        let waiter = self.entries.get_mut(id.0 as usize)?.take()?;
        self.unused.push(id.0);
        let kind = &mut self.kinds[usize::from(waiter.takes_verdict)];
        kind.swap_remove(waiter.position);
        if let Some(&moved) = kind.get(waiter.position)
            && let Some(moved) = &mut self.entries[moved.0 as usize]
        {
            moved.position = waiter.position;
        }
        Some(waiter)
    }

    /// The one that had better drive: one that takes a verdict is done soon, and drives for itself.
    pub(super) fn next_driver(&self) -> Option<&Arc<WaitCell<R::Verdict>>> {
        let id = self.kinds[1].last().or(self.kinds[0].last())?;
        self.entries[id.0 as usize].as_ref().map(|waiter| &waiter.cell)
    }
}
