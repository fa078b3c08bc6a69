//! The queues of one client: of its threads that want one resource, only the first asks the
//! servers.
//!
//! ```text
//!   join ──► behind others ──► head, while a guard of this client holds the lock ──► head: ask the servers
//! ```
//!
//! Without a queue, the threads of one client would race each other over the network, unfairly and
//! at the servers' expense. The queue also knows whether a guard of this client holds the lock, and
//! until when. The head then waits for that guard instead of asking. It is notified when the
//! guard's release has been queued on every connection, so that its own `SET` goes behind that
//! release (rule 3.4). A thread that leaves the queue, for whatever reason, notifies the new head.
//!
//! The threads that want one of several [`slots`] have a queue as well, in which no guard holds
//! anything. A thread that has a slot to try is away from its place meanwhile, and the next one is
//! the head.

mod key_queue;
pub(crate) mod slots;

use crate::algorithm::lease::Validity;
use crate::algorithm::time::{LeaseTime, Readings, Timestamp};
use crate::engine::swept_table::SweptTable;
use crate::os::sync::{Mutex, lock};
use crate::protocol::lock_key::LockKey;
pub(crate) use key_queue::{HoldId, KeyQueue, QueuePosition, QueueTicket, Unavailability};
use std::sync::Arc;

/// All queues of one client.
#[derive(Default)]
pub(crate) struct Queues {
    table: Mutex<SweptTable<Arc<str>, Arc<KeyQueue>>>,
}

/// A lock as the threads of one client share it: its key, and the queue of each of its keys. All
/// mutexes of one name have the same queues. Cloning is cheap.
#[derive(Clone)]
pub(crate) enum LocalLock {
    One(LockKey, Arc<KeyQueue>),
    Set(Arc<SetQueues>),
}

/// The queues of a set's keys, in their order.
pub(crate) struct SetQueues {
    key: LockKey,
    queues: Box<[Arc<KeyQueue>]>,
}

impl Queues {
    /// A lock with its queues, by its key or by the keys of a set.
    pub(crate) fn of(&self, key: &LockKey) -> LocalLock {
        let mut table = lock(&self.table);
        let mut queue = |key: &Arc<str>| table.get_or_insert(key, KeyQueue::default);
        match key {
            LockKey::One(one) => LocalLock::One(key.clone(), queue(one)),
            LockKey::Set(_) => {
                let queues = key.each().iter().map(queue).collect();
                LocalLock::Set(Arc::new(SetQueues {
                    key: key.clone(),
                    queues,
                }))
            }
        }
    }

    /// Notifies all threads that wait, and returns the queues in use, with their keys.
    pub(crate) fn notify_all(&self) -> Vec<(Arc<str>, Arc<KeyQueue>)> {
        key_queue::notify_all(lock(&self.table).entries())
    }
}

impl LocalLock {
    /// A lock whose queue no other mutex has, in a process that must not touch what the client
    /// shares.
    pub(crate) fn alone(key: &LockKey) -> LocalLock {
        Queues::default().of(key)
    }

    pub(crate) fn key(&self) -> &LockKey {
        match self {
            LocalLock::One(key, _) => key,
            LocalLock::Set(set) => &set.key,
        }
    }

    /// The queues of its keys, in their order.
    pub(crate) fn queues(&self) -> &[Arc<KeyQueue>] {
        match self {
            LocalLock::One(_, queue) => std::slice::from_ref(queue),
            LocalLock::Set(set) => &set.queues,
        }
    }

    /// Enters a guard of this client, made by this thread, as the holder.
    pub(crate) fn hold(&self, id: HoldId, validity: Validity, now: Readings) {
        self.queues()
            .iter()
            .for_each(|queue| queue.hold(id, validity, now));
    }

    /// Sets another end of a holder's lease.
    pub(crate) fn hold_until(&self, id: HoldId, end: LeaseTime, now: Readings) {
        self.queues()
            .iter()
            .for_each(|queue| queue.hold_until(id, end, now));
    }

    /// Removes a holder, and notifies the heads of the queues.
    pub(crate) fn release(&self, id: HoldId, now: Timestamp) {
        self.queues()
            .iter()
            .for_each(|queue| queue.release(id, now));
    }

    /// The guard of a holder is meant to go from thread to thread.
    pub(crate) fn forget_thread(&self, id: HoldId) {
        self.queues()
            .iter()
            .for_each(|queue| queue.forget_thread(id));
    }

    /// Until when a guard of this client holds one of its keys, if its lease has not ended.
    pub(crate) fn held_until(&self, now: LeaseTime) -> Option<LeaseTime> {
        self.queues().iter().find_map(|queue| queue.held_until(now))
    }

    /// The first of its keys that a guard of this client holds.
    pub(crate) fn first_held(&self, now: LeaseTime) -> Option<usize> {
        self.queues()
            .iter()
            .position(|queue| queue.held_until(now).is_some())
    }

    /// Until when guards that this thread made hold all of these locks, if they do.
    pub(crate) fn held_by_this_thread_until(
        locks: &[LocalLock],
        now: LeaseTime,
    ) -> Option<LeaseTime> {
        let queues = locks.iter().flat_map(LocalLock::queues);
        let mut until = queues.map(|queue| queue.held_by_this_thread_until(now));
        until.try_fold(LeaseTime::NEVER, |first, until| Some(first.min(until?)))
    }
}

#[cfg(test)]
mod tests;
