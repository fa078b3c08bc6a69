//! The slots of semaphores, as far as this client uses them: which of them its threads have, and which it released
//! last.
//!
//! ```text
//!          take            hold
//!   open ──────► tried ──────────► held
//!    ▲             │                │
//!    └─ refused ◄──┘    release  ◄──┘
//! ```
//!
//! A slot is the lock of a key of its own. Two threads of one client never try the same slot at once. While all slots
//! are theirs, the head of the queue waits for one of them and asks no node.

use super::{QueuePosition, QueueTicket, QueuedThread, Queues};
use crate::algorithm::contention::TIME_TO_TAKE;
use crate::algorithm::time::{LeaseTime, Readings, Timestamp};
use crate::os::fork::ForkEpoch;
use crate::os::sync::{Mutex, lock};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long the head waits at most before it asks anew how a slot stands that another thread tries.
const TRIED_CHECK: Duration = Duration::from_millis(100);

/// All semaphores of one client.
pub(crate) struct Semaphores {
    /// The threads that wait for a permit, by the key of the semaphore.
    waiting: Arc<Queues>,
    /// The guards of this client, by the keys of the slots.
    holders: Arc<Queues>,
    created_in: ForkEpoch,
    slots: Mutex<HashMap<Arc<str>, Weak<Slots>>>,
}

impl Semaphores {
    pub(crate) fn new(holders: Arc<Queues>, created_in: ForkEpoch) -> Semaphores {
        Semaphores { waiting: Arc::default(), holders, created_in, slots: Mutex::default() }
    }

    /// The slots of a semaphore. They are remembered for as long as there is a reference to them.
    pub(crate) fn slots(&self, key: &Arc<str>) -> Arc<Slots> {
        let mut table = lock(&self.slots);
        if let Some(slots) = table.get(key).and_then(Weak::upgrade) {
            return slots;
        }
        if table.len() == table.capacity() {
            table.retain(|_, slots| slots.strong_count() > 0);
        }
        let (waiting, holders) = (Arc::clone(&self.waiting), Arc::clone(&self.holders));
        let (key, created_in, state) = (Arc::clone(key), self.created_in, Mutex::default());
        let slots = Arc::new(Slots { key, waiting, holders, created_in, state });
        table.insert(Arc::clone(&slots.key), Arc::downgrade(&slots));
        slots
    }
}

/// The slots of one semaphore in one client.
pub(crate) struct Slots {
    key: Arc<str>,
    waiting: Arc<Queues>,
    holders: Arc<Queues>,
    created_in: ForkEpoch,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By slot; those behind the end are open.
    marks: Vec<Mark>,
    /// Those that this client released and has not tried since, the last one last.
    released: Vec<usize>,
    /// Those whose release was announced to no program, because a thread of this client takes them, until one has
    /// tried; and whether a program that had waited has left the slot thereby.
    passed: Vec<(usize, bool)>,
    /// When a slot was last left to other programs.
    left_at: Option<Timestamp>,
    /// How many slots there are for the callers, if they agree.
    count: Option<usize>,
    do_counts_differ: bool,
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
        self.waiting.join(&self.key, now)
    }

    /// So many slots are used by a caller.
    pub(crate) fn note_count(&self, count: usize) {
        let mut state = lock(&self.state);
        state.do_counts_differ |= state.count.replace(count).is_some_and(|other| other != count);
    }

    /// Whether a slot was left to other programs just now.
    pub(crate) fn were_left(&self, now: Timestamp) -> bool {
        lock(&self.state).left_at.is_some_and(|left_at| now.since(left_at) < TIME_TO_TAKE)
    }

    /// Takes the slots that were passed on and that too few threads wait for: their release is to be announced.
    pub(crate) fn take_unclaimed(&self) -> Vec<String> {
        if lock(&self.state).passed.is_empty() {
            return Vec::new();
        }
        let wanted = self.waiting.threads_at_place(&self.key);
        let State { marks, passed, .. } = &mut *lock(&self.state);
        let mut open = 0;
        let mut unclaimed = Vec::new();
        passed.retain(|&(slot, _)| {
            open += usize::from(marks.get(slot).is_none_or(|mark| *mark == Mark::Open));
            let is_kept = open <= wanted;
            if !is_kept {
                unclaimed.push(format!("{}#{slot}", self.key));
            }
            is_kept
        });
        unclaimed
    }

    /// The slot of these that this client released last.
    pub(crate) fn last_released(&self, keys: &[Arc<str>]) -> Option<usize> {
        lock(&self.state).released.iter().rev().copied().find(|&slot| slot < keys.len())
    }

    /// Does not try the slots first any more that this client released, but those that no other program knows of.
    pub(crate) fn forget_released(&self) {
        let State { released, passed, .. } = &mut *lock(&self.state);
        released.retain(|slot| passed.iter().any(|(other, _)| other == slot));
    }

    /// The first open slot of these, from `start` on.
    pub(crate) fn open_slot(&self, keys: &[Arc<str>], start: usize, now: LeaseTime) -> Option<usize> {
        (0..keys.len()).map(|slot| (start + slot) % keys.len()).find(|&slot| self.is_open(keys, slot, now))
    }

    /// Whether no thread of this client tries a slot or holds its permit. One whose lease has ended does not count.
    pub(crate) fn is_open(&self, keys: &[Arc<str>], slot: usize, now: LeaseTime) -> bool {
        match lock(&self.state).mark(slot) {
            Mark::Open => true,
            Mark::Tried(_) => false,
            Mark::Held(_) => self.holders.held_until(&keys[slot], now).is_none(),
        }
    }

    /// Takes a slot that is open, to try it.
    pub(crate) fn take(self: &Arc<Slots>, keys: &[Arc<str>], slot: usize, now: LeaseTime) -> Option<TakenSlot> {
        if !self.is_open(keys, slot, now) {
            return None;
        }
        let mut state = lock(&self.state);
        if let Mark::Tried(_) = state.mark(slot) {
            // Another thread was faster.
            return None;
        }
        state.last_id += 1;
        let id = state.last_id;
        let length = state.marks.len().max(slot + 1);
        state.marks.resize(length, Mark::Open);
        state.marks[slot] = Mark::Tried(id);
        state.released.retain(|&released| released != slot);
        Some(TakenSlot { slots: Arc::clone(self), slot, id })
    }

    /// Until when threads of this client have all of these slots, as far as is known; none if one is open.
    pub(crate) fn all_taken_until(&self, keys: &[Arc<str>], now: LeaseTime) -> Option<LeaseTime> {
        let marks = lock(&self.state).marks.clone();
        let until = |(slot, key): (usize, &Arc<str>)| match marks.get(slot)? {
            Mark::Open => None,
            // If it is refused, that is notified of. If not, its end is known then.
            Mark::Tried(_) => Some(now.after(TRIED_CHECK)),
            Mark::Held(_) => self.holders.held_until(key, now),
        };
        keys.iter().enumerate().map(until).try_fold(LeaseTime::NEVER, |first, until| Some(first.min(until?)))
    }
}

impl State {
    fn mark(&self, slot: usize) -> Mark {
        self.marks.get(slot).copied().unwrap_or_default()
    }
}

impl TakenSlot {
    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    /// Whether another thread of this client wants the slot once it is released.
    pub(crate) fn is_wanted(&self) -> bool {
        let wanted = self.slots.waiting.threads_at_place(&self.slots.key);
        let state = lock(&self.slots.state);
        // Threads that know of fewer slots may be the ones that wait.
        state.mark(self.slot) == Mark::Held(self.id) && !state.do_counts_differ && wanted > state.released.len()
    }

    /// The slot is released, and announced to no program: another thread of this client takes it. `has_waited`: the
    /// program that has had it had waited for it, and no release has said so.
    pub(crate) fn pass_on(&self, has_waited: bool) {
        lock(&self.slots.state).passed.push((self.slot, has_waited));
    }

    /// As [`Slots::take_unclaimed`].
    pub(crate) fn take_unclaimed(&self) -> Vec<String> {
        self.slots.take_unclaimed()
    }

    /// The slot was tried. If it was passed on, gives whether the program has waited for it.
    pub(crate) fn take_passed(&self) -> Option<bool> {
        let mut state = lock(&self.slots.state);
        let index = state.passed.iter().position(|&(slot, _)| slot == self.slot)?;
        Some(state.passed.swap_remove(index).1)
    }

    /// The slot is released for other programs, and is not one to try first here.
    pub(crate) fn leave_to_others(&self, now: Timestamp) {
        lock(&self.slots.state).left_at = Some(now);
        self.leave();
    }

    /// The slot was acquired, and its guard is known as the holder.
    pub(crate) fn hold(&self) {
        let mut state = lock(&self.slots.state);
        if state.mark(self.slot) == Mark::Tried(self.id) {
            state.marks[self.slot] = Mark::Held(self.id);
        }
    }

    /// Opens a slot that stays held, without a guard of this client.
    pub(crate) fn leave(&self) {
        let mut state = lock(&self.slots.state);
        if state.mark(self.slot) == Mark::Held(self.id) {
            state.marks[self.slot] = Mark::Tried(self.id);
        }
    }
}

impl TakenSlot {
    /// Opens the slot. The thread that waits for a permit is notified: at once of one that was released. That an
    /// attempt was refused concerns it only where all slots were taken here.
    pub(crate) fn open(&self) {
        let TakenSlot { ref slots, slot, id } = *self;
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
        slots.waiting.notify(&slots.key, is_released);
    }
}

impl Drop for TakenSlot {
    fn drop(&mut self) {
        self.open();
    }
}

impl Queues {
    /// Until when a guard of this client holds a key, if its lease has not ended.
    pub(super) fn held_until(&self, key: &str, now: LeaseTime) -> Option<LeaseTime> {
        let table = lock(&self.table);
        let holder = table.queues.get(key)?.holder.as_ref()?;
        Some(holder.until.lease).filter(|&until| now < until)
    }

    /// How many threads wait at their places in a queue.
    pub(super) fn threads_at_place(&self, key: &str) -> usize {
        let table = lock(&self.table);
        let waiters = table.queues.get(key).and_then(|queue| queue.waiters.as_ref());
        waiters.map_or(0, |waiters| waiters.waiting.iter().filter(|thread| !thread.is_away).count())
    }

    /// Notifies the head of a queue: something has changed that concerns it. `by_nodes`: also if it waits for messages
    /// from the nodes.
    pub(super) fn notify(&self, key: &str, by_nodes: bool) {
        let table = lock(&self.table);
        let Some(waiters) = table.queues.get(key).and_then(|queue| queue.waiters.as_ref()) else { return };
        if by_nodes || !waiters.head().is_some_and(QueuedThread::waits_for_nodes) {
            waiters.notify_head();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::HoldId;
    use super::*;
    use crate::algorithm::lease::{OwnerToken, Validity};
    use crate::algorithm::time::Timestamp;

    const NOW: Readings = Readings { steady: Timestamp::ORIGIN, lease: LeaseTime::ORIGIN };

    /// A semaphore of two slots, and what holds one of them.
    fn semaphore() -> (Arc<Slots>, Vec<Arc<str>>) {
        let semaphores = Semaphores::new(Arc::default(), ForkEpoch::current().unwrap());
        (semaphores.slots(&Arc::from("k")), vec![Arc::from("k#0"), Arc::from("k#1")])
    }

    fn held(slots: &Arc<Slots>, keys: &[Arc<str>], slot: usize) -> TakenSlot {
        let taken = slots.take(keys, slot, NOW.lease).unwrap();
        let id = HoldId::of(&OwnerToken::from_entropy([1; OwnerToken::ENTROPY]));
        slots.holders.hold(&keys[slot..=slot], id, Validity::until(LeaseTime::NEVER), NOW);
        taken.hold();
        taken
    }

    #[test]
    fn a_slot_is_wanted_while_more_threads_wait_than_slots_were_released() {
        let (slots, keys) = semaphore();
        let permits = [held(&slots, &keys, 0), held(&slots, &keys, 1)];
        assert!(!permits[0].is_wanted(), "none waits");
        let (ticket, _) = slots.join(NOW);
        assert!(permits[0].is_wanted() && permits[1].is_wanted());
        ticket.set_away(true);
        assert!(!permits[0].is_wanted(), "it tries a slot");
        ticket.set_away(false);
        permits[0].open();
        assert!(!permits[0].is_wanted() && !permits[1].is_wanted(), "it has one to try");
        let (_other, _) = slots.join(NOW);
        assert!(permits[1].is_wanted());
        slots.note_count(2);
        slots.note_count(3);
        assert!(!permits[1].is_wanted(), "it may be for a thread that uses fewer");
    }

    #[test]
    fn what_was_passed_on_is_unclaimed_when_too_few_threads_wait() {
        let (slots, keys) = semaphore();
        let (ticket, _) = slots.join(NOW);
        for (slot, has_waited) in [(0, true), (1, false)] {
            let permit = held(&slots, &keys, slot);
            permit.pass_on(has_waited);
            assert_eq!(slots.take_unclaimed(), <[String; 0]>::default(), "not released yet, or one waits");
            permit.open();
        }
        assert_eq!(slots.take_unclaimed(), ["k#1"], "one of two is wanted");
        slots.forget_released();
        assert_eq!(slots.last_released(&keys), Some(0), "no other program knows of it");
        let tried = slots.take(&keys, 0, NOW.lease).unwrap();
        drop(ticket);
        assert_eq!(slots.take_unclaimed(), <[String; 0]>::default(), "it is being tried");
        assert_eq!((tried.take_passed(), tried.take_passed()), (Some(true), None));
        let permit = held(&slots, &keys, 1);
        permit.pass_on(false);
        permit.open();
        assert_eq!(slots.take_unclaimed(), ["k#1"], "none waits");
    }

    #[test]
    fn a_slot_that_is_left_to_others_is_not_tried_first() {
        let (slots, keys) = semaphore();
        let permit = held(&slots, &keys, 1);
        permit.leave_to_others(NOW.steady);
        permit.open();
        assert_eq!((slots.last_released(&keys), slots.were_left(NOW.steady)), (None, true));
        assert!(!slots.were_left(NOW.steady.after(TIME_TO_TAKE)));
    }
}
