//! The queue of one key, and a thread's ticket for it.

use crate::algorithm::lease::{OwnerToken, Validity};
use crate::algorithm::node::NodeSet;
use crate::algorithm::time::{LeaseTime, Readings, Timestamp};
use crate::engine::interrupt::Interrupt;
use crate::events::error::NodeFault;
use crate::os::sync::{Mutex, lock};
use crate::os::thread_number::ThreadNumber;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::cell::Cell;
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::Arc;

/// The queue of one key.
#[derive(Default)]
pub(crate) struct KeyQueue {
    state: Mutex<Queue>,
}

/// The holder of one resource, and the threads that wait for it. There is one for every lock that
/// is held, so it is small: the waiters are boxed.
#[derive(Default)]
struct Queue {
    holder: Option<Holder>,
    outlived: Option<Box<Outlived>>,
    waiters: Option<Box<Waiters>>,
}

struct Holder {
    id: HoldId,
    /// The thread that made the guard, by its short number. Zero: the guard is meant to go from
    /// thread to thread.
    thread: u32,
    /// When its lease ends. The steady time is an estimate from when the end was last set.
    until: Readings,
}

/// The guards that were the holder before, until their leases had ended; never empty.
#[derive(Default)]
struct Outlived(Vec<HoldId>);

/// The threads that wait; never empty while it is in a queue.
#[derive(Default)]
struct Waiters {
    waiting: VecDeque<QueuedThread>,
    last_id: u64,
    /// When a quorum last answered one of them.
    available_at: Timestamp,
    /// A guard of this client holds the lock, or an attempt has found it held.
    was_held: bool,
    /// What the last attempt ran into, if too few nodes could answer it.
    unavailability: Option<Unavailability>,
}

thread_local! {
    /// What the last queue that this thread emptied had allocated, for the next one.
    static SPARE: Cell<Option<Box<Waiters>>> = const { Cell::new(None) };
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
    /// The nodes that returned a usable answer.
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
    /// Other threads are in front. The time: when a quorum last answered, or until when a guard of
    /// this client keeps all threads from asking.
    Behind(Timestamp),
    /// The head, while a guard of this client holds the lock until then at the latest.
    HeldHere(LeaseTime),
    /// The head. The time: when a quorum last answered.
    Head(Timestamp),
}

/// Names a guard as the holder of a key in this client. It is made of the guard's owner token, so
/// that no guard has to store it. If the guard of an ended lease has the name of the present
/// holder, by chance, it ends that one's entry too early: then a thread asks the nodes that could
/// have waited here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HoldId(NonZeroU32);

impl HoldId {
    /// The name of the guard with this token.
    pub(crate) fn of(token: &OwnerToken) -> HoldId {
        HoldId(NonZeroU32::MIN | token.beginning() as u32)
    }
}

impl KeyQueue {
    /// Joins the end of the queue, and returns the position there.
    pub(crate) fn join(&self, now: Readings) -> (QueueTicket<'_>, QueuePosition) {
        let mut queue = lock(&self.state);
        let is_first = queue.waiters.is_none() && queue.holder.is_none();
        let waiters = queue.waiters_since(now);
        waiters.last_id += 1;
        let id = waiters.last_id;
        waiters.waiting.push_back(QueuedThread {
            id,
            is_away: false,
            notifier: None,
        });
        let ticket = QueueTicket {
            queue: self,
            id,
            joined_at: now.steady,
            is_first,
        };
        let position = queue.position(&ticket, now.lease);
        (ticket, position)
    }

    /// Enters a guard of this client, made by this thread, as the holder.
    pub(super) fn hold(&self, id: HoldId, validity: Validity, now: Readings) {
        let mut queue = lock(&self.state);
        let thread = ThreadNumber::current().short();
        let until = by_both_clocks(validity.end(), now);
        let before = queue.holder.replace(Holder { id, thread, until });
        if let Some(before) = before.filter(|holder| holder.id != id) {
            queue.outlived.get_or_insert_default().0.push(before.id);
        }
        if let Some(waiters) = &mut queue.waiters {
            waiters.record_answer(now.steady);
        }
    }

    /// Sets another end of a holder's lease. An earlier one notifies the head, which waits for the
    /// old one.
    pub(super) fn hold_until(&self, id: HoldId, end: LeaseTime, now: Readings) {
        let mut queue = lock(&self.state);
        let Some(holder) = queue.holder.as_mut().filter(|holder| holder.id == id) else {
            return;
        };
        let is_sooner = end < std::mem::replace(&mut holder.until, by_both_clocks(end, now)).lease;
        if is_sooner && let Some(waiters) = &queue.waiters {
            waiters.notify_head();
        }
    }

    /// Removes a holder, and notifies the head.
    pub(super) fn release(&self, id: HoldId, now: Timestamp) {
        let mut queue = lock(&self.state);
        if queue.holder.take_if(|holder| holder.id == id).is_none() {
            queue.outlived.take_if(|outlived| {
                outlived.0.retain(|&other| other != id);
                outlived.0.is_empty()
            });
        } else if let Some(waiters) = &mut queue.waiters {
            waiters.available_at = now;
            waiters.notify_head();
        }
    }

    /// The guard of a holder is meant to go from thread to thread.
    pub(super) fn forget_thread(&self, id: HoldId) {
        let mut queue = lock(&self.state);
        queue
            .holder
            .iter_mut()
            .filter(|holder| holder.id == id)
            .for_each(|holder| holder.thread = 0);
    }

    /// Until when a guard of this client holds the key, if its lease has not ended.
    pub(crate) fn held_until(&self, now: LeaseTime) -> Option<LeaseTime> {
        lock(&self.state)
            .holder
            .as_ref()
            .map(|holder| holder.until.lease)
            .filter(|&until| now < until)
    }

    /// Until when a guard that this thread made holds the key, if it does.
    pub(crate) fn held_by_this_thread_until(&self, now: LeaseTime) -> Option<LeaseTime> {
        let queue = lock(&self.state);
        let holder = queue
            .holder
            .as_ref()
            .filter(|holder| holder.thread == ThreadNumber::current().short());
        holder
            .map(|holder| holder.until.lease)
            .filter(|&until| now < until)
    }

    /// Notifies the head: something has changed that concerns it. `by_nodes`: also if it waits for
    /// messages from the nodes.
    pub(super) fn notify(&self, by_nodes: bool) {
        let queue = lock(&self.state);
        let Some(waiters) = &queue.waiters else {
            return;
        };
        if by_nodes || !waiters.head().is_some_and(QueuedThread::waits_for_nodes) {
            waiters.notify_head();
        }
    }

    /// Notifies all threads that wait.
    fn notify_all(&self) {
        let queue = lock(&self.state);
        let waiting = queue.waiters.iter().flat_map(|waiters| &waiters.waiting);
        waiting.for_each(QueuedThread::notify);
    }

    /// Whether there is a guard of this client, or a thread that waits.
    pub(crate) fn is_in_use(&self) -> bool {
        let queue = lock(&self.state);
        queue.is_held() || queue.waiters.is_some()
    }

    /// Whether there is a guard of this client, whether or not its lease has ended.
    pub(crate) fn is_held(&self) -> bool {
        lock(&self.state).is_held()
    }

    /// How many threads wait.
    pub(crate) fn calls(&self) -> usize {
        let queue = lock(&self.state);
        queue
            .waiters
            .as_ref()
            .map_or(0, |waiters| waiters.waiting.len())
    }
}

/// Notifies all threads that wait in these queues. Returns the queues in use, with their keys.
pub(super) fn notify_all<'q>(
    queues: impl Iterator<Item = (&'q Arc<str>, &'q Arc<KeyQueue>)>,
) -> Vec<(Arc<str>, Arc<KeyQueue>)> {
    queues
        .filter(|(_, queue)| queue.is_in_use())
        .map(|(key, queue)| (Arc::clone(key), Arc::clone(queue)))
        .inspect(|(_, queue)| queue.notify_all())
        .collect()
}

/// A thread's ticket for a queue. Dropping it leaves the queue.
pub(crate) struct QueueTicket<'q> {
    queue: &'q KeyQueue,
    id: u64,
    joined_at: Timestamp,
    is_first: bool,
}

impl QueueTicket<'_> {
    /// The position in the queue now.
    pub(crate) fn position(&self, now: LeaseTime) -> QueuePosition {
        lock(&self.queue.state).position(self, now)
    }

    /// Leaves the place for a while, or comes back to it. The new head is notified.
    pub(crate) fn set_away(&self, is_away: bool) {
        self.with_waiters(|waiters| {
            if let Some(thread) = waiters
                .waiting
                .iter_mut()
                .find(|thread| thread.id == self.id)
            {
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

    /// Sets off the interrupt when something has changed for this thread, in place of an earlier
    /// channel or interrupt.
    pub(crate) fn notify_by_interrupt(&self, interrupt: &Arc<Interrupt>) {
        self.set_notifier(Notifier::Interrupt(Arc::clone(interrupt)));
    }

    fn set_notifier(&self, notifier: Notifier) {
        self.with_waiters(|waiters| {
            if let Some(thread) = waiters
                .waiting
                .iter_mut()
                .find(|thread| thread.id == self.id)
            {
                thread.notifier = Some(notifier);
            }
        });
    }

    /// A quorum answered an attempt.
    pub(crate) fn record_answer(&self, now: Timestamp) {
        self.with_waiters(|waiters| waiters.record_answer(now));
    }

    /// Takes why an attempt could not find out whether the lock is held.
    pub(crate) fn record_unavailability(&self, found: Unavailability) {
        self.with_waiters(|waiters| waiters.unavailability = Some(found));
    }

    /// Whether nothing was known of the lock in this client when the thread joined, and no thread
    /// was in front.
    pub(crate) fn is_first(&self) -> bool {
        self.is_first
    }

    /// Whether a quorum has answered that the lock is held, or a guard of this client held it, and
    /// no attempt has found out less since then.
    ///
    /// # Errors
    /// It is not known whether the lock is held: what the last attempt of the head ran into, if one
    /// has ended.
    pub(crate) fn is_known_held(&self) -> Result<(), Unavailability> {
        let is_known_held = |waiters: &mut Waiters| match waiters.is_known_held() {
            true => Ok(()),
            false => Err(waiters.unavailability.clone().unwrap_or_default()),
        };
        self.with_waiters(is_known_held)
            .unwrap_or_else(|| Err(Unavailability::default()))
    }

    fn with_waiters<R>(&self, act: impl FnOnce(&mut Waiters) -> R) -> Option<R> {
        lock(&self.queue.state).waiters.as_deref_mut().map(act)
    }
}

impl Drop for QueueTicket<'_> {
    fn drop(&mut self) {
        lock(&self.queue.state).leave(self.id);
    }
}

impl Queue {
    fn is_held(&self) -> bool {
        self.holder.is_some() || self.outlived.is_some()
    }

    fn position(&self, ticket: &QueueTicket<'_>, now: LeaseTime) -> QueuePosition {
        let joined_at = ticket.joined_at;
        let Some(waiters) = &self.waiters else {
            return QueuePosition::Head(joined_at);
        };
        match &self.holder {
            holder if waiters.head().is_some_and(|head| head.id != ticket.id) => {
                let held_until = holder
                    .as_ref()
                    .map_or(joined_at, |holder| holder.until.steady);
                QueuePosition::Behind(waiters.available_at.max(joined_at).max(held_until))
            }
            Some(holder) if now < holder.until.lease => QueuePosition::HeldHere(holder.until.lease),
            _ => QueuePosition::Head(waiters.available_at.max(joined_at)),
        }
    }

    /// The threads that wait, the first of them since now.
    fn waiters_since(&mut self, now: Readings) -> &mut Waiters {
        self.waiters.get_or_insert_with(|| {
            // A thread that is just ending has none, and keeps none.
            let mut waiters = SPARE
                .try_with(Cell::take)
                .ok()
                .flatten()
                .unwrap_or_default();
            waiters.was_held = self
                .holder
                .as_ref()
                .is_some_and(|holder| now.lease < holder.until.lease);
            waiters.available_at = now.steady;
            waiters.unavailability = None;
            waiters
        })
    }

    /// Removes a thread, and notifies the new head if it was the head.
    fn leave(&mut self, id: u64) {
        let Some(waiters) = &mut self.waiters else {
            return;
        };
        let was_head = waiters.head().is_some_and(|head| head.id == id);
        waiters.waiting.retain(|thread| thread.id != id);
        if was_head {
            waiters.notify_head();
        }
        if waiters.waiting.is_empty() {
            let emptied = self.waiters.take();
            let _ = SPARE.try_with(|spare| spare.set(emptied));
        }
    }
}

impl Waiters {
    fn record_answer(&mut self, now: Timestamp) {
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
        self.head().into_iter().for_each(QueuedThread::notify);
    }
}

impl QueuedThread {
    fn notify(&self) {
        match &self.notifier {
            Some(Notifier::Interrupt(interrupt)) => interrupt.set(),
            // A full channel holds a notification that is still to be taken.
            Some(Notifier::Channel(sender)) => drop(sender.try_send(())),
            None => {}
        }
    }

    fn waits_for_nodes(&self) -> bool {
        matches!(self.notifier, Some(Notifier::Interrupt(_)))
    }
}

/// The end of a lease by both clocks.
fn by_both_clocks(end: LeaseTime, now: Readings) -> Readings {
    Readings {
        steady: now.steady_at(end),
        lease: end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There is one for every lock that is held.
    #[test]
    fn what_is_known_of_the_holder_of_a_lock_takes_24_bytes() {
        assert_eq!((size_of::<Option<Holder>>(), size_of::<Queue>()), (24, 40));
    }
}
