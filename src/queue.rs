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
use crate::net::alarm::Alarm;
use crate::proto::lease::OwnerToken;
use crate::proto::time::Timestamp;
use crate::sync::{Mutex, lock};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU64;
use std::sync::Arc;

/// Empty lines kept for their memory.
const SPARE_LINES: usize = 64;

/// All queues of one client, by key.
#[derive(Default)]
pub(crate) struct Queues {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    queues: HashMap<Arc<str>, Queue>,
    #[expect(clippy::vec_box, reason = "they go from queue to queue as they are")]
    spare: Vec<Box<Line>>,
    last_id: u64,
}

/// Who holds one resource, and who waits for it. Small, because there is one for every lock that is held.
#[derive(Default)]
struct Queue {
    holder: Option<Holder>,
    line: Option<Box<Line>>,
}

struct Holder {
    id: HoldId,
    until: Timestamp,
}

/// Those who wait: never empty while it is in a queue.
#[derive(Default)]
struct Line {
    waiting: VecDeque<Waiter>,
    /// When a quorum last answered anybody here.
    available_at: Timestamp,
    /// Somebody here was told that the lock is held, or holds it.
    was_held: bool,
    /// What the last attempt ran into, if too few nodes could answer it.
    trouble: Option<Trouble>,
}

struct Waiter {
    id: u64,
    bell: Option<Bell>,
}

/// How somebody is told to look again, who waits for sockets or for nothing else.
enum Bell {
    Alarm(Arc<Alarm>),
    Channel(Sender<()>),
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
    /// Others are in front. A quorum was last known to answer at that time; while a guard of this process holds the lock,
    /// nobody asks.
    Behind(Timestamp),
    /// First in line, but a guard of this process holds the lock until then at the latest.
    HeldHere(Timestamp),
    /// First in line. A quorum was last known to answer at that time.
    Head(Timestamp),
}

/// A guard's entry as the holder of a key in this process: told from others by its owner token, so that no guard has to
/// remember it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HoldId(NonZeroU64);

impl HoldId {
    /// That of a lock with this token.
    pub(crate) fn of(token: &OwnerToken) -> HoldId {
        HoldId(NonZeroU64::MIN | token.beginning())
    }
}

impl Queues {
    /// Joins the end of the queue for a key, and says whose turn it is.
    pub(crate) fn join<'q>(&'q self, key: &'q Arc<str>, now: Timestamp) -> (Place<'q>, Turn) {
        let mut inner = lock(&self.inner);
        let id = inner.next_id();
        let Inner { queues, spare, .. } = &mut *inner;
        let queue = queues.entry(Arc::clone(key)).or_default();
        let line = queue.line.get_or_insert_with(|| {
            let mut line = spare.pop().unwrap_or_default();
            line.available_at = now;
            line.was_held = queue.holder.as_ref().is_some_and(|holder| now < holder.until);
            line
        });
        line.waiting.push_back(Waiter { id, bell: None });
        let turn = queue.turn(id, now, now);
        (Place { queues: self, key, id, joined_at: now, left: false }, turn)
    }

    /// Enters a guard of this process as the holder of a key.
    pub(crate) fn hold(&self, key: &Arc<str>, id: HoldId, until: Timestamp, now: Timestamp) {
        let mut inner = lock(&self.inner);
        inner.queues.entry(Arc::clone(key)).or_default().hold(Holder { id, until }, now);
    }

    /// A holder's lease ends then, not when it was said to end. Whoever waits for a later end looks again.
    pub(crate) fn hold_until(&self, key: &Arc<str>, hold: HoldId, until: Timestamp) {
        let mut inner = lock(&self.inner);
        let Some(queue) = inner.queues.get_mut(key) else { return };
        let Some(holder) = queue.holder.as_mut().filter(|holder| holder.id == hold) else { return };
        let is_sooner = until < std::mem::replace(&mut holder.until, until);
        if is_sooner && let Some(line) = &mut queue.line {
            line.ring_head();
        }
    }

    /// Strikes a holder out, and wakes the head of the queue.
    pub(crate) fn release(&self, key: &Arc<str>, hold: HoldId, now: Timestamp) {
        let mut inner = lock(&self.inner);
        let Entry::Occupied(mut entry) = inner.queues.entry(Arc::clone(key)) else { return };
        let queue = entry.get_mut();
        if queue.holder.as_ref().is_none_or(|holder| holder.id != hold) {
            return;
        }
        queue.holder = None;
        match &mut queue.line {
            Some(line) => {
                line.available_at = now;
                line.ring_head();
            }
            None => {
                entry.remove();
            }
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
    left: bool,
}

impl Place<'_> {
    /// Whose turn it is now.
    pub(crate) fn turn(&self, now: Timestamp) -> Turn {
        let inner = lock(&self.queues.inner);
        inner.queues.get(self.key).map_or(Turn::Head(self.joined_at), |queue| queue.turn(self.id, self.joined_at, now))
    }

    /// Leaves the queue, and enters a guard of this process as the holder of the key.
    pub(crate) fn hold(mut self, id: HoldId, until: Timestamp, now: Timestamp) {
        self.left = true;
        let mut inner = lock(&self.queues.inner);
        let Inner { queues, spare, .. } = &mut *inner;
        // The place keeps the queue there.
        if let Some(queue) = queues.get_mut(self.key) {
            queue.hold(Holder { id, until }, now);
            queue.leave(self.id, spare);
        }
    }

    /// A channel that brings a message when it may have become this thread's turn. To be asked for before
    /// [`turn`](Place::turn): what happens in between is then not missed.
    pub(crate) fn bell(&self) -> Receiver<()> {
        let (sender, receiver) = bounded(1);
        self.be_told_by(Bell::Channel(sender));
        receiver
    }

    /// Lets the alarm be rung when something has changed for this thread, in place of an earlier bell.
    pub(crate) fn rings(&self, alarm: &Arc<Alarm>) {
        self.be_told_by(Bell::Alarm(Arc::clone(alarm)));
    }

    fn be_told_by(&self, bell: Bell) {
        self.with_line(|line| {
            if let Some(waiter) = line.waiting.iter_mut().find(|waiter| waiter.id == self.id) {
                waiter.bell = Some(bell);
            }
        });
    }

    /// Notes that a quorum answered an attempt.
    pub(crate) fn answered(&self, now: Timestamp) {
        self.with_line(|line| line.answered(now));
    }

    /// Notes why an attempt could not find out.
    pub(crate) fn troubled(&self, trouble: Trouble) {
        self.with_line(|line| line.trouble = Some(trouble));
    }

    /// Why it is not known that the lock is held, if it is not: what the last attempt of the head ran into, or that no
    /// attempt has ended yet.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.with_line(|line| match &line.trouble {
            None if line.was_held => None,
            trouble => Some(trouble.clone().unwrap_or_default()),
        })
        .flatten()
    }

    fn with_line<R>(&self, act: impl FnOnce(&mut Line) -> R) -> Option<R> {
        let mut inner = lock(&self.queues.inner);
        inner.queues.get_mut(self.key).and_then(|queue| queue.line.as_deref_mut()).map(act)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.left {
            return;
        }
        let mut inner = lock(&self.queues.inner);
        let Inner { queues, spare, .. } = &mut *inner;
        if let Entry::Occupied(mut entry) = queues.entry(Arc::clone(self.key)) {
            entry.get_mut().leave(self.id, spare);
            if entry.get().is_empty() {
                entry.remove();
            }
        }
    }
}

impl Inner {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

impl Queue {
    fn turn(&self, id: u64, joined_at: Timestamp, now: Timestamp) -> Turn {
        let Some(line) = &self.line else { return Turn::Head(joined_at) };
        match &self.holder {
            holder if line.waiting.front().is_some_and(|head| head.id != id) => {
                let held_until = holder.as_ref().map_or(joined_at, |holder| holder.until);
                Turn::Behind(line.available_at.max(joined_at).max(held_until))
            }
            Some(holder) if now < holder.until => Turn::HeldHere(holder.until),
            _ => Turn::Head(line.available_at.max(joined_at)),
        }
    }

    fn hold(&mut self, holder: Holder, now: Timestamp) {
        self.holder = Some(holder);
        if let Some(line) = &mut self.line {
            line.answered(now);
        }
    }

    /// Takes one out of the line, and wakes the new head if it was the head.
    #[expect(clippy::vec_box, reason = "as in `Inner`")]
    fn leave(&mut self, id: u64, spare: &mut Vec<Box<Line>>) {
        let Some(line) = &mut self.line else { return };
        let was_head = line.waiting.front().is_some_and(|head| head.id == id);
        if was_head {
            line.waiting.pop_front();
            line.ring_head();
        } else {
            line.waiting.retain(|waiter| waiter.id != id);
        }
        if line.waiting.is_empty()
            && let Some(mut line) = self.line.take()
        {
            line.trouble = None;
            if spare.len() < SPARE_LINES {
                spare.push(line);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.holder.is_none() && self.line.is_none()
    }
}

impl Line {
    fn answered(&mut self, now: Timestamp) {
        self.available_at = now;
        self.was_held = true;
        self.trouble = None;
    }

    fn ring_head(&self) {
        match self.waiting.front().and_then(|head| head.bell.as_ref()) {
            Some(Bell::Alarm(alarm)) => alarm.ring(),
            // A full bell has rung already.
            Some(Bell::Channel(bell)) => drop(bell.try_send(())),
            None => {}
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

    fn held_by(number: u8) -> HoldId {
        HoldId::of(&OwnerToken::from_entropy([number * 2; OwnerToken::ENTROPY]))
    }

    #[test]
    fn the_queue_is_first_in_first_out_and_only_the_head_may_ask() {
        let (queues, key) = (Queues::default(), Arc::from("k"));
        let places: Vec<_> = (0..3).map(|millis| queues.join(&key, at(millis)).0).collect();
        let bells: Vec<_> = places.iter().map(Place::bell).collect();
        let turns = || -> Vec<_> { places.iter().map(|place| place.turn(at(9))).collect() };
        assert!(matches!(turns()[..], [Turn::Head(_), Turn::Behind(_), Turn::Behind(_)]));
        assert!(bells.iter().all(|bell| bell.try_recv().is_err()));
        let mut places = places.into_iter();
        drop(places.next());
        assert!(bells[1].try_recv().is_ok() && bells[2].try_recv().is_err());
        assert!(matches!(places.next().unwrap().turn(at(9)), Turn::Head(_)));
    }

    #[test]
    fn whoever_gives_up_in_the_middle_wakes_nobody_and_blocks_nobody() {
        let (queues, key) = (Queues::default(), Arc::from("k"));
        let (first, second, third) =
            (queues.join(&key, at(0)).0, queues.join(&key, at(0)).0, queues.join(&key, at(0)).0);
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
        let hold = held_by(1);
        queues.hold(&key, hold, at(100), at(0));
        let place = queues.join(&key, at(5)).0;
        let bell = place.bell();
        assert_eq!(place.turn(at(99)), Turn::HeldHere(at(100)));
        assert_eq!(place.turn(at(100)), Turn::Head(at(5)));
        queues.release(&key, hold, at(50));
        assert!(bell.try_recv().is_ok());
        assert_eq!(place.turn(at(51)), Turn::Head(at(50)));
    }

    #[test]
    fn the_head_waits_for_an_extended_guard_and_looks_when_it_ends_sooner() {
        let (queues, key) = (Queues::default(), Arc::from("k"));
        let hold = held_by(2);
        queues.hold(&key, hold, at(100), at(0));
        let place = queues.join(&key, at(5)).0;
        let bell = place.bell();
        queues.hold_until(&key, hold, at(300));
        assert!(bell.try_recv().is_err());
        assert_eq!(place.turn(at(100)), Turn::HeldHere(at(300)));
        queues.hold_until(&key, hold, at(150));
        assert!(bell.try_recv().is_ok());
        assert_eq!(place.turn(at(150)), Turn::Head(at(5)));
        let next = held_by(3);
        queues.hold(&key, next, at(400), at(160));
        queues.hold_until(&key, hold, at(900));
        assert_eq!(place.turn(at(399)), Turn::HeldHere(at(400)), "it is not the holder any more");
        queues.hold_until(&key, next, at(161));
        assert_eq!(place.turn(at(161)), Turn::Head(at(160)));
    }

    #[test]
    fn an_expired_guard_does_not_strike_out_its_successor() {
        let (queues, key) = (Queues::default(), Arc::from("k"));
        let stale = held_by(4);
        queues.hold(&key, stale, at(100), at(0));
        let fresh = held_by(5);
        queues.hold(&key, fresh, at(300), at(200));
        let place = queues.join(&key, at(210)).0;
        queues.release(&key, stale, at(220));
        assert_eq!(place.turn(at(230)), Turn::HeldHere(at(300)));
        queues.release(&key, fresh, at(240));
        drop(place);
        assert_eq!(queues.len(), 0);
    }

    #[test]
    fn before_anybody_was_answered_nobody_is_told_that_the_lock_is_held() {
        let (queues, key) = (Queues::default(), Arc::from("k"));
        let (head, behind) = (queues.join(&key, at(0)).0, queues.join(&key, at(0)).0);
        assert!(behind.trouble().is_some());
        let hold = held_by(9);
        head.hold(hold, at(50), at(5));
        assert!(behind.trouble().is_none());
        let last = queues.join(&key, at(6)).0;
        assert_eq!(last.turn(at(7)), Turn::Behind(at(50)), "nobody asks while the lock is held here");
        queues.release(&key, hold, at(9));
        assert_eq!(last.turn(at(9)), Turn::Behind(at(9)));
        drop((behind, last));
        // A guard that was taken without a queue.
        queues.hold(&key, hold, at(99), at(10));
        assert!(queues.join(&key, at(11)).0.trouble().is_none());
    }

    #[test]
    fn trouble_is_known_to_those_behind_and_forgotten_when_a_quorum_answers() {
        let (queues, key) = (Queues::default(), Arc::from("k"));
        let (head, behind) = (queues.join(&key, at(0)).0, queues.join(&key, at(0)).0);
        head.troubled(Trouble { answered: 1, causes: Vec::new() });
        assert_eq!(behind.trouble().unwrap().answered, 1);
        head.answered(at(7));
        assert!(behind.trouble().is_none());
        assert_eq!(behind.turn(at(8)), Turn::Behind(at(7)));
        drop(head);
        assert_eq!(behind.turn(at(8)), Turn::Head(at(7)));
    }
}
