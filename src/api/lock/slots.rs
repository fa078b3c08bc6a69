//! The slots of a semaphore, as a call for a permit knows them.

use crate::algorithm::time::{LeaseTime, Readings};
use crate::api::client::Client;
use crate::engine::local_queue::slots::{Slots, TakenSlot};
use crate::engine::local_queue::{LocalLock, QueuePosition, QueueTicket};
use crate::protocol::lock_key::LockKey;
use std::sync::Arc;

/// Most permits of one semaphore. Each node is asked about all of them when none is found at once.
pub(super) const MOST_PERMITS: usize = 256;

/// The keys of a semaphore's slots, and what this client knows of them.
#[derive(Clone)]
pub(super) struct PermitSlots {
    pub(super) slots: Arc<Slots>,
    pub(super) keys: Arc<[Arc<str>]>,
    pub(super) locks: Arc<[LocalLock]>,
    /// How many there are to be; it may be unusable.
    pub(super) count: usize,
}

impl PermitSlots {
    /// So many slots of a semaphore with this key.
    pub(super) fn new(client: &Client, key: &Arc<str>, count: usize) -> PermitSlots {
        let keys: Arc<[Arc<str>]> = (0..count.min(MOST_PERMITS))
            .map(|slot| format!("{key}#{slot}").into())
            .collect();
        let locks = keys
            .iter()
            .map(|key| client.local_lock(&LockKey::One(Arc::clone(key))))
            .collect();
        PermitSlots {
            slots: client.semaphores.slots(key),
            keys,
            locks,
            count,
        }
    }

    /// Joins the queue of the threads that want a permit.
    pub(super) fn join(&self, now: Readings) -> (QueueTicket<'_>, QueuePosition) {
        let (ticket, position) = self.slots.join(now);
        (ticket, self.position(position, now.lease))
    }

    /// The head waits while threads of this client have all slots.
    pub(super) fn position(&self, position: QueuePosition, now: LeaseTime) -> QueuePosition {
        match position {
            QueuePosition::Head(_) => self
                .slots
                .all_taken_until(&self.locks, now)
                .map(QueuePosition::HeldHere),
            QueuePosition::Behind(_) | QueuePosition::HeldHere(_) => None,
        }
        .unwrap_or(position)
    }
}

/// Where to try next.
#[derive(Default)]
pub(super) struct Search {
    /// The slot that is tried, or was acquired.
    pub(super) taken: Option<TakenSlot>,
    /// Whether a call that has no entry asks in turn: a slot was refused, and what is refused in
    /// turn shows which slots are free.
    pub(super) asks_in_turn: bool,
    /// Whether the attempt has asked for a slot before.
    pub(super) is_asked_on: bool,
    /// The slot that was free on most nodes at the last attempt.
    pub(super) free: Option<usize>,
}
