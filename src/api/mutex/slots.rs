//! The slots of a semaphore, as a call for a permit knows them.

use crate::algorithm::time::LeaseTime;
use crate::engine::local_queue::QueuePosition;
use crate::engine::local_queue::slots::{Slots, TakenSlot};
use crate::protocol::lock_key::LockKey;
use std::sync::Arc;

/// The keys of a semaphore's slots, and what this client knows of them.
#[derive(Clone)]
pub(crate) struct PermitSlots {
    slots: Arc<Slots>,
    keys: Arc<[Arc<str>]>,
    locks: Arc<[LockKey]>,
}

impl PermitSlots {
    pub(crate) fn new(slots: Arc<Slots>, keys: Arc<[Arc<str>]>) -> PermitSlots {
        let locks = keys.iter().cloned().map(LockKey::One).collect();
        PermitSlots { slots, keys, locks }
    }

    pub(super) fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }

    pub(crate) fn keys(&self) -> &[Arc<str>] {
        &self.keys
    }

    /// The lock of a slot.
    pub(super) fn lock(&self, slot: usize) -> &LockKey {
        &self.locks[slot]
    }

    /// The lock of the slot that is tried first, if one was released here.
    pub(super) fn first_choice(&self) -> Option<&LockKey> {
        self.slots.last_released(&self.keys).map(|slot| self.lock(slot))
    }

    /// The head waits while threads of this client have all slots.
    pub(super) fn position(&self, position: QueuePosition, now: LeaseTime) -> QueuePosition {
        match position {
            QueuePosition::Head(_) => self.slots.all_taken_until(&self.keys, now).map(QueuePosition::HeldHere),
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
    /// Whether a call that has no entry asks in turn: a slot was refused, and what is refused in turn says which slots
    /// are free.
    pub(super) asks_in_turn: bool,
    /// Whether the attempt has asked for a slot before.
    pub(super) is_asked_on: bool,
    /// The slot that was free on most nodes at the last attempt.
    pub(super) free: Option<usize>,
}
