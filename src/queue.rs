//! Threads of one process that want one resource: a queue, of which only the head asks the servers.
//!
//! ```text
//!   join ──► behind others ──► head, while a guard of this process holds the lock ──► head: ask the servers
//! ```
//!
//! Without it, the threads of one process would race each other over the network, unfairly and at the servers' expense.
//! The queue also knows whether a guard of this process holds the lock, and until when: the head then waits for that
//! guard instead of asking, and is woken when its release has been queued on every connection, behind which its own
//! `SET` will go (SPEC §3.4). Whoever leaves, for whatever reason, wakes the new head.

use crate::error::NodeFault;
use crate::proto::time::Timestamp;
use crate::sync::{Mutex, lock};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Empty queues kept for their memory.
const SPARE_QUEUES: usize = 64;

/// All queues of one client, by key.
#[derive(Default)]
pub(crate) struct Queues {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    queues: HashMap<Arc<str>, Queue>,
    spare: Vec<Queue>,
    last_id: u64,
}

#[derive(Default)]
struct Queue {
    holder: Option<Holder>,
    waiting: VecDeque<Waiter>,
    /// When a quorum last answered anybody here.
    available_at: Timestamp,
    /// What the last attempt ran into, if too few nodes could answer it.
    trouble: Option<Trouble>,
}

struct Holder {
    id: u64,
    until: Timestamp,
}

struct Waiter {
    id: u64,
    bell: Option<Sender<()>>,
}

/// Why the last attempt on a resource could not find out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble {
    pub(crate) answered: usize,
    pub(crate) causes: Vec<NodeFault>,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Others are in front.
    Behind,
    /// First in line, but a guard of this process holds the lock until then at the latest.
    HeldHere(Timestamp),
    /// First in line. A quorum was last known to answer at that time.
    Head(Timestamp),
}

/// A guard's entry as the holder of a key in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HoldId(u64);

impl Queues {
    /// Joins the end of the queue for a key.
    pub(crate) fn join<'q>(&'q self, key: &'q Arc<str>, now: Timestamp) -> Place<'q> {
        let mut inner = lock(&self.inner);
        let id = inner.next_id();
        inner.queue(key, now).waiting.push_back(Waiter { id, bell: None });
        Place { queues: self, key, id, joined_at: now }
    }

    /// Enters a guard of this process as the holder of a key.
    pub(crate) fn hold(&self, key: &Arc<str>, until: Timestamp, now: Timestamp) -> HoldId {
        let mut inner = lock(&self.inner);
        let id = inner.next_id();
        let queue = inner.queue(key, now);
        queue.holder = Some(Holder { id, until });
        queue.available_at = now;
        queue.trouble = None;
        HoldId(id)
    }

    /// Strikes a holder out, and wakes the head of the queue.
    pub(crate) fn release(&self, key: &Arc<str>, hold: HoldId, now: Timestamp) {
        let mut inner = lock(&self.inner);
        let Some(queue) = inner.queues.get_mut(key) else { return };
        if queue.holder.as_ref().is_some_and(|holder| holder.id == hold.0) {
            queue.holder = None;
            queue.available_at = now;
            queue.ring_head();
            inner.discard_if_empty(key);
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        lock(&self.inner).queues.len()
    }
}

/// A thread's place in a queue. Dropping it leaves the queue.
pub(crate) struct Place<'q> {
    queues: &'q Queues,
    key: &'q Arc<str>,
    id: u64,
    joined_at: Timestamp,
}

impl Place<'_> {
    /// Whose turn it is now.
    pub(crate) fn turn(&self, now: Timestamp) -> Turn {
        let inner = lock(&self.queues.inner);
        match inner.queues.get(self.key) {
            Some(queue) if queue.waiting.front().is_some_and(|head| head.id != self.id) => Turn::Behind,
            Some(Queue { holder: Some(holder), .. }) if now < holder.until => Turn::HeldHere(holder.until),
            Some(queue) => Turn::Head(queue.available_at.max(self.joined_at)),
            None => Turn::Head(self.joined_at),
        }
    }

    /// A channel that brings a message when it may have become this thread's turn. To be asked for before
    /// [`turn`](Place::turn): what happens in between is then not missed.
    pub(crate) fn bell(&self) -> Receiver<()> {
        let (sender, receiver) = bounded(1);
        let mut inner = lock(&self.queues.inner);
        let waiting = inner.queues.get_mut(self.key).map(|queue| &mut queue.waiting);
        if let Some(waiter) = waiting.and_then(|waiting| waiting.iter_mut().find(|waiter| waiter.id == self.id)) {
            waiter.bell = Some(sender);
        }
        receiver
    }

    /// Notes that a quorum answered an attempt.
    pub(crate) fn answered(&self, now: Timestamp) {
        self.note(|queue| {
            queue.available_at = now;
            queue.trouble = None;
        });
    }

    /// Notes why an attempt could not find out.
    pub(crate) fn troubled(&self, trouble: Trouble) {
        self.note(|queue| queue.trouble = Some(trouble));
    }

    /// What the last attempt of the head ran into, if too few nodes could answer it.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        lock(&self.queues.inner).queues.get(self.key).and_then(|queue| queue.trouble.clone())
    }

    fn note(&self, note: impl FnOnce(&mut Queue)) {
        if let Some(queue) = lock(&self.queues.inner).queues.get_mut(self.key) {
            note(queue);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut inner = lock(&self.queues.inner);
        let Some(queue) = inner.queues.get_mut(self.key) else { return };
        let was_head = queue.waiting.front().is_some_and(|head| head.id == self.id);
        queue.waiting.retain(|waiter| waiter.id != self.id);
        if was_head {
            queue.ring_head();
        }
        inner.discard_if_empty(self.key);
    }
}

impl Inner {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn queue(&mut self, key: &Arc<str>, now: Timestamp) -> &mut Queue {
        let spare = &mut self.spare;
        self.queues.entry(Arc::clone(key)).or_insert_with(|| {
            let mut queue = spare.pop().unwrap_or_default();
            queue.available_at = now;
            queue
        })
    }

    fn discard_if_empty(&mut self, key: &Arc<str>) {
        let is_empty = |queue: &Queue| queue.holder.is_none() && queue.waiting.is_empty();
        if self.queues.get(key).is_some_and(is_empty)
            && let Some(mut queue) = self.queues.remove(key)
        {
            queue.trouble = None;
            if self.spare.len() < SPARE_QUEUES {
                self.spare.push(queue);
            }
        }
    }
}

impl Queue {
    fn ring_head(&self) {
        if let Some(bell) = self.waiting.front().and_then(|head| head.bell.as_ref()) {
            // A full bell has rung already.
            let _ = bell.try_send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(millis: u64) -> Timestamp {
        Timestamp::ORIGIN.after(Duration::from_millis(millis))
    }

    #[test]
    fn the_queue_is_first_in_first_out_and_only_the_head_may_ask() {
        let (queues, key) = (Queues::default(), Arc::from("k"));
        let places: Vec<_> = (0..3).map(|millis| queues.join(&key, at(millis))).collect();
        let bells: Vec<_> = places.iter().map(Place::bell).collect();
        let turns = || -> Vec<_> { places.iter().map(|place| place.turn(at(9))).collect() };
        assert!(matches!(turns()[..], [Turn::Head(_), Turn::Behind, Turn::Behind]));
        assert!(bells.iter().all(|bell| bell.try_recv().is_err()));
        let mut places = places.into_iter();
        drop(places.next());
        assert!(bells[1].try_recv().is_ok() && bells[2].try_recv().is_err());
        assert!(matches!(places.next().unwrap().turn(at(9)), Turn::Head(_)));
    }

    #[test]
    fn whoever_gives_up_in_the_middle_wakes_nobody_and_blocks_nobody() {
        let (queues, key) = (Queues::default(), Arc::from("k"));
        let (first, second, third) = (queues.join(&key, at(0)), queues.join(&key, at(0)), queues.join(&key, at(0)));
        let (first_bell, third_bell) = (first.bell(), third.bell());
        drop(second);
        assert!(first_bell.try_recv().is_err() && third_bell.try_recv().is_err());
        drop(first);
        assert!(third_bell.try_recv().is_ok());
        drop(third);
        assert_eq!(queues.len(), 0);
    }

    #[test]
    fn the_head_waits_for_a_guard_of_its_own_process_but_not_past_its_lease() {
        let (queues, key) = (Queues::default(), Arc::from("k"));
        let hold = queues.hold(&key, at(100), at(0));
        let place = queues.join(&key, at(5));
        let bell = place.bell();
        assert_eq!(place.turn(at(99)), Turn::HeldHere(at(100)));
        assert_eq!(place.turn(at(100)), Turn::Head(at(5)));
        queues.release(&key, hold, at(50));
        assert!(bell.try_recv().is_ok());
        assert_eq!(place.turn(at(51)), Turn::Head(at(50)));
    }

    #[test]
    fn an_expired_guard_does_not_strike_out_its_successor() {
        let (queues, key) = (Queues::default(), Arc::from("k"));
        let stale = queues.hold(&key, at(100), at(0));
        let fresh = queues.hold(&key, at(300), at(200));
        let place = queues.join(&key, at(210));
        queues.release(&key, stale, at(220));
        assert_eq!(place.turn(at(230)), Turn::HeldHere(at(300)));
        queues.release(&key, fresh, at(240));
        drop(place);
        assert_eq!(queues.len(), 0);
    }

    #[test]
    fn trouble_is_known_to_those_behind_and_forgotten_when_a_quorum_answers() {
        let (queues, key) = (Queues::default(), Arc::from("k"));
        let (head, behind) = (queues.join(&key, at(0)), queues.join(&key, at(0)));
        head.troubled(Trouble { answered: 1, causes: Vec::new() });
        assert_eq!(behind.trouble().unwrap().answered, 1);
        head.answered(at(7));
        assert!(behind.trouble().is_none());
        drop(head);
        assert_eq!(behind.turn(at(8)), Turn::Head(at(7)));
    }
}
