//! Threads of one process that want one resource: a queue, of which only the head asks the servers.
//!
//! ```text
//!   join ──► behind others ──► head, while a guard of this process holds the lock ──► head: ask the servers
//! ```
//!
//! Without it, the threads of one process would race each other over the network, unfairly and at the servers' expense.
//! The queue also knows whether a guard of this process holds the lock, and until when: the head then waits for that
//! guard instead of asking, and is woken when its release has been queued on every connection, behind which its own
//! `SET` will go (rule 3.4). Whoever leaves, for whatever reason, wakes the new head.

use crate::algorithm::lease::OwnerToken;
use crate::algorithm::lease::Validity;
use crate::algorithm::node::NodeSet;
use crate::algorithm::time::{LeaseTime, Readings, Timestamp};
use crate::engine::interrupt::Interrupt;
use crate::events::error::NodeFault;
use crate::os::sync::{Mutex, lock};
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
    spare: Vec<Box<Waiters>>,
    last_id: u64,
}

/// Who holds one resource, and who waits for it. Small, because there is one for every lock that is held.
#[derive(Default)]
struct Queue {
    holder: Option<Holder>,
    line: Option<Box<Waiters>>,
}

struct Holder {
    id: HoldId,
    /// When its lease ends; by the steady clock, as of when that was said.
    until: Readings,
}

/// Those who wait: never empty while it is in a queue.
#[derive(Default)]
struct Waiters {
    waiting: VecDeque<Waiter>,
    /// When a quorum last answered anybody here.
    available_at: Timestamp,
    /// Somebody here was told that the lock is held, or holds it.
    was_held: bool,
    /// What the last attempt ran into, if too few nodes could answer it.
    trouble: Option<Unavailability>,
}

struct Waiter {
    id: u64,
    bell: Option<Bell>,
}

/// How somebody is told to look again, who waits for sockets or for nothing else.
enum Bell {
    Interrupt(Arc<Interrupt>),
    Channel(Sender<()>),
}

/// Why the last attempt on a resource could not find out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unavailability {
    /// The nodes that gave a usable answer.
    pub(crate) answered: NodeSet,
    /// Those that were asked.
    pub(crate) asked: NodeSet,
    /// Since when no quorum is possible for permanent faults, if that is so.
    pub(crate) hopeless_since: Option<Timestamp>,
    pub(crate) causes: Vec<NodeFault>,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePosition {
    /// Others are in front. A quorum was last known to answer at that time; while a guard of this process holds the lock,
    /// nobody asks.
    Behind(Timestamp),
    /// First in line, but a guard of this process holds the lock until then at the latest.
    HeldHere(LeaseTime),
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
    pub(crate) fn join<'q>(&'q self, key: &'q Arc<str>, now: Readings) -> (QueueTicket<'q>, QueuePosition) {
        let mut inner = lock(&self.inner);
        let id = inner.next_id();
        let Inner { queues, spare, .. } = &mut *inner;
        let queue = queues.entry(Arc::clone(key)).or_default();
        let line = queue.line.get_or_insert_with(|| {
            let mut line = spare.pop().unwrap_or_default();
            line.available_at = now.steady;
            line.was_held = queue.holder.as_ref().is_some_and(|holder| now.lease < holder.until.lease);
            line
        });
        line.waiting.push_back(Waiter { id, bell: None });
        let joined_at = now.steady;
        let turn = queue.turn(id, joined_at, now.lease);
        (QueueTicket { queues: self, key, id, joined_at, left: false }, turn)
    }

    /// Enters a guard of this process as the holder of a key.
    pub(crate) fn hold(&self, key: &Arc<str>, id: HoldId, lease: Validity, now: Readings) {
        let mut inner = lock(&self.inner);
        inner.queues.entry(Arc::clone(key)).or_default().hold(id, lease, now);
    }

    /// A holder's lease ends then, not when it was said to end. Whoever waits for a later end looks again.
    pub(crate) fn hold_until(&self, key: &Arc<str>, hold: HoldId, end: LeaseTime, now: Readings) {
        let mut inner = lock(&self.inner);
        let Some(queue) = inner.queues.get_mut(key) else { return };
        let Some(holder) = queue.holder.as_mut().filter(|holder| holder.id == hold) else { return };
        let is_sooner = end < std::mem::replace(&mut holder.until, both(end, now)).lease;
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
pub(crate) struct QueueTicket<'q> {
    queues: &'q Queues,
    key: &'q Arc<str>,
    id: u64,
    joined_at: Timestamp,
    left: bool,
}

impl QueueTicket<'_> {
    /// Whose turn it is now.
    pub(crate) fn turn(&self, now: LeaseTime) -> QueuePosition {
        let inner = lock(&self.queues.inner);
        inner
            .queues
            .get(self.key)
            .map_or(QueuePosition::Head(self.joined_at), |queue| queue.turn(self.id, self.joined_at, now))
    }

    /// Leaves the queue, and enters a guard of this process as the holder of the key.
    pub(crate) fn hold(mut self, id: HoldId, lease: Validity, now: Readings) {
        self.left = true;
        let mut inner = lock(&self.queues.inner);
        let Inner { queues, spare, .. } = &mut *inner;
        // The place keeps the queue there.
        if let Some(queue) = queues.get_mut(self.key) {
            queue.hold(id, lease, now);
            queue.leave(self.id, spare);
        }
    }

    /// A channel that brings a message when it may have become this thread's turn. To be asked for before
    /// [`turn`](QueueTicket::turn): what happens in between is then not missed.
    pub(crate) fn bell(&self) -> Receiver<()> {
        let (sender, receiver) = bounded(1);
        self.be_told_by(Bell::Channel(sender));
        receiver
    }

    /// Lets the alarm be rung when something has changed for this thread, in place of an earlier bell.
    pub(crate) fn rings(&self, alarm: &Arc<Interrupt>) {
        self.be_told_by(Bell::Interrupt(Arc::clone(alarm)));
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
    pub(crate) fn troubled(&self, trouble: Unavailability) {
        self.with_line(|line| line.trouble = Some(trouble));
    }

    /// Why it is not known that the lock is held, if it is not: what the last attempt of the head ran into, or that no
    /// attempt has ended yet.
    pub(crate) fn trouble(&self) -> Option<Unavailability> {
        self.with_line(|line| match &line.trouble {
            None if line.was_held => None,
            trouble => Some(trouble.clone().unwrap_or_default()),
        })
        .flatten()
    }

    fn with_line<R>(&self, act: impl FnOnce(&mut Waiters) -> R) -> Option<R> {
        let mut inner = lock(&self.queues.inner);
        inner.queues.get_mut(self.key).and_then(|queue| queue.line.as_deref_mut()).map(act)
    }
}

impl Drop for QueueTicket<'_> {
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
    fn turn(&self, id: u64, joined_at: Timestamp, now: LeaseTime) -> QueuePosition {
        let Some(line) = &self.line else { return QueuePosition::Head(joined_at) };
        match &self.holder {
            holder if line.waiting.front().is_some_and(|head| head.id != id) => {
                let held_until = holder.as_ref().map_or(joined_at, |holder| holder.until.steady);
                QueuePosition::Behind(line.available_at.max(joined_at).max(held_until))
            }
            Some(holder) if now < holder.until.lease => QueuePosition::HeldHere(holder.until.lease),
            _ => QueuePosition::Head(line.available_at.max(joined_at)),
        }
    }

    fn hold(&mut self, id: HoldId, lease: Validity, now: Readings) {
        self.holder = Some(Holder { id, until: both(lease.end(), now) });
        if let Some(line) = &mut self.line {
            line.answered(now.steady);
        }
    }

    /// Takes one out of the line, and wakes the new head if it was the head.
    #[expect(clippy::vec_box, reason = "as in `Inner`")]
    fn leave(&mut self, id: u64, spare: &mut Vec<Box<Waiters>>) {
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

impl Waiters {
    fn answered(&mut self, now: Timestamp) {
        self.available_at = now;
        self.was_held = true;
        self.trouble = None;
    }

    fn ring_head(&self) {
        match self.waiting.front().and_then(|head| head.bell.as_ref()) {
            Some(Bell::Interrupt(alarm)) => alarm.ring(),
            // A full bell has rung already.
            Some(Bell::Channel(bell)) => drop(bell.try_send(())),
            None => {}
        }
    }
}

/// The end of a lease by both clocks.
fn both(end: LeaseTime, now: Readings) -> Readings {
    Readings { steady: now.steady_at(end), lease: end }
}

#[cfg(test)]
mod tests;
