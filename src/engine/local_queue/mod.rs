//! The queues of one client: of its threads that want one resource, only the first asks the servers.
//!
//! ```text
//!   join ──► behind others ──► head, while a guard of this client holds the lock ──► head: ask the servers
//! ```
//!
//! Without a queue, the threads of one client would race each other over the network, unfairly and at the servers'
//! expense. The queue also knows whether a guard of this client holds the lock, and until when. The head then waits
//! for that guard instead of asking. It is notified when the guard's release has been queued on every connection, so
//! that its own `SET` goes behind that release (rule 3.4). A thread that leaves the queue, for whatever reason,
//! notifies the new head.
//!
//! The threads that want one of several [`slots`] have a queue as well, in which no guard holds anything. A thread that
//! has a slot to try is away from its place meanwhile, and the next one is the head.

pub(crate) mod slots;

use crate::algorithm::lease::OwnerToken;
use crate::algorithm::lease::Validity;
use crate::algorithm::node::NodeSet;
use crate::algorithm::time::{LeaseTime, Readings, Timestamp};
use crate::engine::interrupt::Interrupt;
use crate::events::error::NodeFault;
use crate::os::sync::{Mutex, lock};
use crate::os::thread_number::ThreadNumber;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;

/// How many are kept that are not used.
const KEPT: usize = 64;

/// All queues of one client, by key.
#[derive(Default)]
pub(crate) struct Queues {
    table: Mutex<QueueTable>,
}

/// A queue takes one and gives it back without copying it.
type UnusedWaiters = Vec<Box<Waiters>>;

#[derive(Default)]
struct QueueTable {
    queues: HashMap<Arc<str>, Queue>,
    /// Those of queues that have emptied; kept for their memory.
    unused: UnusedWaiters,
    last_id: u64,
}

/// The holder of one resource, and the threads that wait for it. There is one for every lock that is held, so it is
/// small: the waiters are boxed.
#[derive(Default)]
struct Queue {
    holder: Option<Holder>,
    waiters: Option<Box<Waiters>>,
}

struct Holder {
    id: HoldId,
    /// The thread that made the guard, by its short number. Zero: the guard is meant to go from thread to thread.
    thread: u32,
    /// When its lease ends. The steady time is an estimate from when the end was last set.
    until: Readings,
}

/// The threads that wait; never empty while it is in a queue.
#[derive(Default)]
struct Waiters {
    waiting: VecDeque<QueuedThread>,
    /// When a quorum last answered one of them.
    available_at: Timestamp,
    /// A guard of this client holds the lock, or an attempt has found it held.
    was_held: bool,
    /// What the last attempt ran into, if too few nodes could answer it.
    unavailability: Option<Unavailability>,
}

struct QueuedThread {
    id: u64,
    /// It tries a slot, and another thread is the head.
    is_away: bool,
    notifier: Option<Notifier>,
}

/// How a queued thread is notified that its position may have changed.
enum Notifier {
    /// For a thread that sleeps on a channel.
    Channel(Sender<()>),
    /// For a thread that waits for replies or messages from the nodes.
    Interrupt(Arc<Interrupt>),
}

/// Why the last attempt on a resource could not find out whether it is held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unavailability {
    /// The nodes that gave a usable answer.
    pub(crate) answered: NodeSet,
    /// The nodes that were asked.
    pub(crate) asked: NodeSet,
    /// Since when permanent faults make a quorum impossible, if they do.
    pub(crate) quorum_impossible_since: Option<Timestamp>,
    pub(crate) causes: Vec<NodeFault>,
}

/// A thread's place in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePosition {
    /// Other threads are in front. The time: when a quorum last answered, or until when a guard of this client keeps
    /// all threads from asking.
    Behind(Timestamp),
    /// The head, while a guard of this client holds the lock until then at the latest.
    HeldHere(LeaseTime),
    /// The head. The time: when a quorum last answered.
    Head(Timestamp),
}

/// Names a guard as the holder of a key in this client. It is made of the guard's owner token, so that no guard has to
/// store it. If the guard of an ended lease has the name of the present holder, by chance, it ends that one's entry too
/// early: then a thread asks the nodes that could have waited here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HoldId(NonZeroU32);

impl HoldId {
    /// The name of the guard with this token.
    pub(crate) fn of(token: &OwnerToken) -> HoldId {
        HoldId(NonZeroU32::MIN | token.beginning() as u32)
    }
}

impl Queues {
    /// Joins the end of the queue for a key, and gives the position there.
    pub(crate) fn join<'q>(&'q self, key: &'q Arc<str>, now: Readings) -> (QueueTicket<'q>, QueuePosition) {
        let mut table = lock(&self.table);
        let QueueTable { queues, unused, last_id, .. } = &mut *table;
        *last_id += 1;
        let id = *last_id;
        let queue = queues.entry(Arc::clone(key)).or_default();
        let is_first = queue.waiters.is_none() && queue.holder.is_none();
        let waiters = queue.waiters.get_or_insert_with(|| {
            let mut waiters = unused.pop().unwrap_or_default();
            waiters.was_held = queue.holder.as_ref().is_some_and(|holder| now.lease < holder.until.lease);
            (waiters.available_at, waiters.unavailability) = (now.steady, None);
            waiters
        });
        waiters.waiting.push_back(QueuedThread { id, is_away: false, notifier: None });
        let ticket = QueueTicket { queues: self, key, id, joined_at: now.steady, is_first, has_left: false };
        let position = queue.position(&ticket, now.lease);
        drop(table);
        (ticket, position)
    }

    /// Enters a guard of this client, made by this thread, as the holder of a key, or of those of a set.
    pub(crate) fn hold(&self, keys: &[Arc<str>], id: HoldId, validity: Validity, now: Readings) {
        let mut table = lock(&self.table);
        for key in keys {
            table.queues.entry(Arc::clone(key)).or_default().hold(id, validity, now);
        }
    }

    /// Sets another end of a holder's lease. An earlier one notifies the head, which waits for the old one.
    pub(crate) fn hold_until(&self, keys: &[Arc<str>], id: HoldId, end: LeaseTime, now: Readings) {
        let mut table = lock(&self.table);
        for key in keys {
            let Some(queue) = table.queues.get_mut(key) else { continue };
            let Some(holder) = queue.holder.as_mut().filter(|holder| holder.id == id) else { continue };
            let is_sooner = end < std::mem::replace(&mut holder.until, by_both_clocks(end, now)).lease;
            if is_sooner && let Some(waiters) = &mut queue.waiters {
                waiters.notify_head();
            }
        }
    }

    /// Removes a holder, and notifies the heads of the queues.
    pub(crate) fn release(&self, keys: &[Arc<str>], id: HoldId, now: Timestamp) {
        let mut table = lock(&self.table);
        keys.iter().for_each(|key| table.release(key, id, now));
    }

    /// The first of these keys that a guard of this client holds.
    pub(crate) fn first_held(&self, keys: &[Arc<str>], now: LeaseTime) -> Option<usize> {
        let table = lock(&self.table);
        let is_held = |key| {
            let holder = table.queues.get(key).and_then(|queue: &Queue| queue.holder.as_ref());
            holder.is_some_and(|holder| now < holder.until.lease)
        };
        keys.iter().position(is_held)
    }

    /// Until when guards that this thread made hold all of these keys, if they do.
    pub(crate) fn held_by_this_thread_until(&self, keys: &[Arc<str>], now: LeaseTime) -> Option<LeaseTime> {
        let (table, thread) = (lock(&self.table), ThreadNumber::current().short());
        let until = |key: &Arc<str>| {
            let holder = table.queues.get(key)?.holder.as_ref()?;
            (holder.thread == thread && now < holder.until.lease).then_some(holder.until.lease)
        };
        keys.iter().map(until).try_fold(LeaseTime::NEVER, |first, until| Some(first.min(until?)))
    }

    /// The guard of a holder is meant to go from thread to thread.
    pub(crate) fn forget_thread(&self, keys: &[Arc<str>], id: HoldId) {
        let mut table = lock(&self.table);
        for key in keys {
            let holder = table.queues.get_mut(key).and_then(|queue| queue.holder.as_mut());
            holder.into_iter().filter(|holder| holder.id == id).for_each(|holder| holder.thread = 0);
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        lock(&self.table).queues.len()
    }
}

/// A thread's ticket for a queue. Dropping it leaves the queue.
pub(crate) struct QueueTicket<'q> {
    queues: &'q Queues,
    key: &'q Arc<str>,
    id: u64,
    joined_at: Timestamp,
    is_first: bool,
    has_left: bool,
}

impl QueueTicket<'_> {
    /// The position in the queue now.
    pub(crate) fn position(&self, now: LeaseTime) -> QueuePosition {
        let table = lock(&self.queues.table);
        table.queues.get(self.key).map_or(QueuePosition::Head(self.joined_at), |queue| queue.position(self, now))
    }

    /// Leaves the queue, and enters a guard of this client, made by this thread, as the holder of the key, and of the
    /// others of a set.
    pub(crate) fn hold(mut self, keys: &[Arc<str>], id: HoldId, validity: Validity, now: Readings) {
        self.has_left = true;
        let mut table = lock(&self.queues.table);
        let QueueTable { queues, unused, .. } = &mut *table;
        for key in keys.iter().filter(|&key| key != self.key) {
            queues.entry(Arc::clone(key)).or_default().hold(id, validity, now);
        }
        // This ticket keeps the queue there.
        if let Some(queue) = queues.get_mut(self.key) {
            queue.hold(id, validity, now);
            queue.leave(self.id, unused);
        }
    }

    /// Leaves the place for a while, or comes back to it. The new head is notified.
    pub(crate) fn set_away(&self, is_away: bool) {
        self.with_waiters(|waiters| {
            if let Some(thread) = waiters.waiting.iter_mut().find(|thread| thread.id == self.id) {
                thread.is_away = is_away;
            }
            if is_away {
                waiters.notify_head();
            }
        });
    }

    /// A channel that brings a message when the position may have changed. To be asked for before
    /// [`position`](QueueTicket::position): a change in between is then not missed.
    pub(crate) fn notifications(&self) -> Receiver<()> {
        let (sender, receiver) = bounded(1);
        self.set_notifier(Notifier::Channel(sender));
        receiver
    }

    /// Sets off the interrupt when something has changed for this thread, in place of an earlier channel or interrupt.
    pub(crate) fn notify_by_interrupt(&self, interrupt: &Arc<Interrupt>) {
        self.set_notifier(Notifier::Interrupt(Arc::clone(interrupt)));
    }

    fn set_notifier(&self, notifier: Notifier) {
        self.with_waiters(|waiters| {
            if let Some(thread) = waiters.waiting.iter_mut().find(|thread| thread.id == self.id) {
                thread.notifier = Some(notifier);
            }
        });
    }

    /// Notes that a quorum answered an attempt.
    pub(crate) fn note_answered(&self, now: Timestamp) {
        self.with_waiters(|waiters| waiters.note_answered(now));
    }

    /// Notes why an attempt could not find out whether the lock is held.
    pub(crate) fn note_unavailable(&self, found: Unavailability) {
        self.with_waiters(|waiters| waiters.unavailability = Some(found));
    }

    /// Whether nothing was known of the lock in this client when the thread joined, and no thread was in front.
    pub(crate) fn is_first(&self) -> bool {
        self.is_first
    }

    /// Whether a quorum has answered that the lock is held, or a guard of this client held it, and no attempt has found
    /// out less since then.
    ///
    /// # Errors
    /// It is not known whether the lock is held: what the last attempt of the head ran into, if one has ended.
    pub(crate) fn is_known_held(&self) -> Result<(), Unavailability> {
        let is_known_held = |waiters: &mut Waiters| match waiters.is_known_held() {
            true => Ok(()),
            false => Err(waiters.unavailability.clone().unwrap_or_default()),
        };
        self.with_waiters(is_known_held).unwrap_or_else(|| Err(Unavailability::default()))
    }

    fn with_waiters<R>(&self, act: impl FnOnce(&mut Waiters) -> R) -> Option<R> {
        let mut table = lock(&self.queues.table);
        table.queues.get_mut(self.key).and_then(|queue| queue.waiters.as_deref_mut()).map(act)
    }
}

impl Drop for QueueTicket<'_> {
    fn drop(&mut self) {
        if self.has_left {
            return;
        }
        let mut table = lock(&self.queues.table);
        let QueueTable { queues, unused, .. } = &mut *table;
        if let Entry::Occupied(mut entry) = queues.entry(Arc::clone(self.key)) {
            entry.get_mut().leave(self.id, unused);
            if entry.get().is_empty() {
                entry.remove();
            }
        }
    }
}

impl QueueTable {
    fn release(&mut self, key: &Arc<str>, id: HoldId, now: Timestamp) {
        let Entry::Occupied(mut entry) = self.queues.entry(Arc::clone(key)) else { return };
        let queue = entry.get_mut();
        if queue.holder.as_ref().is_none_or(|holder| holder.id != id) {
            return;
        }
        queue.holder = None;
        match &mut queue.waiters {
            Some(waiters) => {
                waiters.available_at = now;
                waiters.notify_head();
            }
            None => {
                entry.remove();
            }
        }
    }
}

impl Queue {
    fn position(&self, ticket: &QueueTicket<'_>, now: LeaseTime) -> QueuePosition {
        let joined_at = ticket.joined_at;
        let Some(waiters) = &self.waiters else { return QueuePosition::Head(joined_at) };
        match &self.holder {
            holder if waiters.head().is_some_and(|head| head.id != ticket.id) => {
                let held_until = holder.as_ref().map_or(joined_at, |holder| holder.until.steady);
                QueuePosition::Behind(waiters.available_at.max(joined_at).max(held_until))
            }
            Some(holder) if now < holder.until.lease => QueuePosition::HeldHere(holder.until.lease),
            _ => QueuePosition::Head(waiters.available_at.max(joined_at)),
        }
    }

    fn hold(&mut self, id: HoldId, validity: Validity, now: Readings) {
        let (thread, until) = (ThreadNumber::current().short(), by_both_clocks(validity.end(), now));
        self.holder = Some(Holder { id, thread, until });
        if let Some(waiters) = &mut self.waiters {
            waiters.note_answered(now.steady);
        }
    }

    /// Removes a thread, and notifies the new head if it was the head.
    fn leave(&mut self, id: u64, unused: &mut UnusedWaiters) {
        let Some(waiters) = &mut self.waiters else { return };
        let was_head = waiters.head().is_some_and(|head| head.id == id);
        waiters.waiting.retain(|thread| thread.id != id);
        if was_head {
            waiters.notify_head();
        }
        if waiters.waiting.is_empty() {
            unused.extend(self.waiters.take().filter(|_| unused.len() < KEPT));
        }
    }

    fn is_empty(&self) -> bool {
        self.holder.is_none() && self.waiters.is_none()
    }
}

impl Waiters {
    fn note_answered(&mut self, now: Timestamp) {
        self.available_at = now;
        self.was_held = true;
        self.unavailability = None;
    }

    fn is_known_held(&self) -> bool {
        self.was_held && self.unavailability.is_none()
    }

    /// The first thread that is at its place.
    fn head(&self) -> Option<&QueuedThread> {
        self.waiting.iter().find(|thread| !thread.is_away)
    }

    fn notify_head(&self) {
        match self.head().and_then(|head| head.notifier.as_ref()) {
            Some(Notifier::Interrupt(interrupt)) => interrupt.set(),
            // A full channel holds a notification that is still to be taken.
            Some(Notifier::Channel(sender)) => drop(sender.try_send(())),
            None => {}
        }
    }
}

impl QueuedThread {
    fn waits_for_nodes(&self) -> bool {
        matches!(self.notifier, Some(Notifier::Interrupt(_)))
    }
}

/// The end of a lease by both clocks.
fn by_both_clocks(end: LeaseTime, now: Readings) -> Readings {
    Readings { steady: now.steady_at(end), lease: end }
}

#[cfg(test)]
mod tests;
