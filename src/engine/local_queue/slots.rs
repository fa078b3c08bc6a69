//! The slots of semaphores, as far as this client uses them: which of them its threads have, and
//! which it released last.
//!
//! ```text
//!          take            hold
//!   open ──────► tried ──────────► held
//!    ▲             │                │
//!    └─ refused ◄──┘    release  ◄──┘
//! ```
//!
//! A slot is the lock of a key of its own. Two threads of one client never try the same slot at
//! once. While all slots are theirs, the head of the queue waits for one of them and asks no node.

use super::LocalLock;
use super::key_queue::{self, KeyQueue, QueuePosition, QueueTicket};
use crate::algorithm::early_end::EarlyEnd;
use crate::algorithm::time::{LeaseTime, Readings, Timestamp};
use crate::engine::swept_table::SweptTable;
use crate::os::fork::ForkEpoch;
use crate::os::sync::{Mutex, lock};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How long the head waits at most before it asks again for the state of a slot that another thread
/// tries.
const TRIED_CHECK: Duration = Duration::from_millis(100);

/// All semaphores of one client.
pub(crate) struct Semaphores {
    created_in: ForkEpoch,
    slots: Mutex<SweptTable<Arc<str>, Arc<Slots>>>,
}

impl Semaphores {
    pub(crate) fn new(created_in: ForkEpoch) -> Semaphores {
        Semaphores {
            created_in,
            slots: Mutex::default(),
        }
    }

    /// The slots of a semaphore. They are remembered at least for as long as there is a reference
    /// to them.
    pub(crate) fn slots(&self, key: &Arc<str>) -> Arc<Slots> {
        let new = || Slots {
            waiting: Arc::default(),
            created_in: self.created_in,
            state: Mutex::default(),
        };
        if self.created_in.is_forked() {
            // A thread of the parent may have locked the table.
            return Arc::new(new());
        }
        lock(&self.slots).get_or_insert(key, new)
    }

    /// Notifies all threads that wait, and returns the queues in use, with their keys.
    pub(crate) fn notify_all(&self) -> Vec<(Arc<str>, Arc<KeyQueue>)> {
        let slots = lock(&self.slots);
        key_queue::notify_all(slots.entries().map(|(key, slots)| (key, &slots.waiting)))
    }
}

/// The slots of one semaphore in one client.
pub(crate) struct Slots {
    /// The threads that wait for a permit.
    waiting: Arc<KeyQueue>,
    created_in: ForkEpoch,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By slot; those behind the end are open.
    marks: Vec<Mark>,
    /// Those that this client released and has not tried since, the last one last.
    released: Vec<usize>,
    /// Those whose keys have no expiry, by the last question about all of them, and whether that
    /// was reported.
    endless: HashMap<usize, (EarlyEnd, bool)>,
    last_id: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Mark {
    #[default]
    Open,
    /// By the [`TakenSlot`] with this number.
    Tried(u64),
    Held(u64),
}

/// A slot that a thread of this client tries, or holds a permit of. Dropping it opens the slot.
pub(crate) struct TakenSlot {
    slots: Arc<Slots>,
    slot: usize,
    id: u64,
}

impl Slots {
    /// Joins the queue of the threads that want a permit.
    pub(crate) fn join(&self, now: Readings) -> (QueueTicket<'_>, QueuePosition) {
        self.waiting.join(now)
    }

    /// The slot of these that this client released last.
    pub(crate) fn last_released(&self, locks: &[LocalLock]) -> Option<usize> {
        lock(&self.state)
            .released
            .iter()
            .rev()
            .copied()
            .find(|&slot| slot < locks.len())
    }

    /// The first open slot of these, from `start` on.
    pub(crate) fn open_slot(
        &self,
        locks: &[LocalLock],
        start: usize,
        now: LeaseTime,
    ) -> Option<usize> {
        (0..locks.len())
            .map(|slot| (start + slot) % locks.len())
            .find(|&slot| self.is_open(locks, slot, now))
    }

    /// Whether no thread of this client tries a slot or holds its permit. One whose lease has ended
    /// does not count.
    pub(crate) fn is_open(&self, locks: &[LocalLock], slot: usize, now: LeaseTime) -> bool {
        lock(&self.state).is_open(locks, slot, now)
    }

    /// Takes a slot that is open, to try it.
    pub(crate) fn take(
        self: &Arc<Slots>,
        locks: &[LocalLock],
        slot: usize,
        now: LeaseTime,
    ) -> Option<TakenSlot> {
        let mut state = lock(&self.state);
        if !state.is_open(locks, slot, now) {
            return None;
        }
        state.last_id += 1;
        let id = state.last_id;
        let length = state.marks.len().max(slot + 1);
        state.marks.resize(length, Mark::Open);
        state.marks[slot] = Mark::Tried(id);
        state.released.retain(|&released| released != slot);
        Some(TakenSlot {
            slots: Arc::clone(self),
            slot,
            id,
        })
    }

    /// Takes which slots have keys without expiry, as a quorum has replied at `now`. Returns those
    /// that are to be reported: each once, when two answers in a row, so much `apart`, show it.
    pub(crate) fn record_endless(
        &self,
        endless: &[usize],
        now: Timestamp,
        apart: Duration,
    ) -> Vec<usize> {
        let mut state = lock(&self.state);
        state.endless.retain(|slot, _| endless.contains(slot));
        let mut is_to_be_reported = |slot: &usize| {
            let (end, is_reported) = state.endless.entry(*slot).or_default();
            end.record_key(true, now);
            end.is_endless(now, apart) && !std::mem::replace(is_reported, true)
        };
        endless
            .iter()
            .copied()
            .filter(|slot| is_to_be_reported(slot))
            .collect()
    }

    /// Until when threads of this client have all of these slots, as far as is known; none if one
    /// is open.
    pub(crate) fn all_taken_until(&self, locks: &[LocalLock], now: LeaseTime) -> Option<LeaseTime> {
        let marks = lock(&self.state).marks.clone();
        let until = |(slot, local): (usize, &LocalLock)| match marks.get(slot)? {
            Mark::Open => None,
            // If it is refused, that is notified of. If not, its end is known then.
            Mark::Tried(_) => Some(now.after(TRIED_CHECK)),
            Mark::Held(_) => local.held_until(now),
        };
        locks
            .iter()
            .enumerate()
            .map(until)
            .try_fold(LeaseTime::NEVER, |first, until| Some(first.min(until?)))
    }
}

impl State {
    fn mark(&self, slot: usize) -> Mark {
        self.marks.get(slot).copied().unwrap_or_default()
    }

    fn is_open(&self, locks: &[LocalLock], slot: usize, now: LeaseTime) -> bool {
        match self.mark(slot) {
            Mark::Open => true,
            Mark::Tried(_) => false,
            Mark::Held(_) => locks[slot].held_until(now).is_none(),
        }
    }
}

impl TakenSlot {
    /// The slot was acquired, and its guard is known as the holder.
    pub(crate) fn hold(&self) {
        let mut state = lock(&self.slots.state);
        if state.mark(self.slot) == Mark::Tried(self.id) {
            state.marks[self.slot] = Mark::Held(self.id);
        }
    }

    /// Opens a slot that stays held, without a guard of this client.
    pub(crate) fn leave(self) {
        let mut state = lock(&self.slots.state);
        if state.mark(self.slot) == Mark::Held(self.id) {
            state.marks[self.slot] = Mark::Tried(self.id);
        }
    }
}

impl Drop for TakenSlot {
    /// The thread that waits for a permit is notified: at once of one that was released. That an
    /// attempt was refused concerns it only where all slots were taken here.
    fn drop(&mut self) {
        let TakenSlot {
            ref slots,
            slot,
            id,
        } = *self;
        // In a child, another thread was perhaps at it.
        if slots.created_in.is_forked() {
            return;
        }
        let mut state = lock(&slots.state);
        let mark = state.mark(slot);
        // The slot of an ended lease may be another thread's.
        if mark != Mark::Tried(id) && mark != Mark::Held(id) {
            return;
        }
        let is_released = mark == Mark::Held(id);
        state.marks[slot] = Mark::Open;
        if is_released {
            state.released.push(slot);
        }
        drop(state);
        slots.waiting.notify(is_released);
    }
}
