//! The slots of a semaphore, as a call for a permit knows them.

use crate::algorithm::time::LeaseTime;
use crate::algorithm::turns::WakeOrder;
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

    /// Other programs go first: they take what was released here.
    pub(super) fn forget_choice(&self) {
        self.slots.forget_released();
    }

    /// Whether a thread of this client tries the slot, or holds its permit.
    pub(super) fn is_taken(&self, slot: usize, now: LeaseTime) -> bool {
        !self.slots.is_open(&self.keys, slot, now)
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
    /// The slot whose release has just been announced.
    pub(super) announced: Option<usize>,
    /// How many releases were announced.
    pub(super) heard: u64,
}

impl Search {
    /// The release of a slot was announced. Where others go first, it is theirs.
    pub(super) fn note_announced(&mut self, slot: usize, order: WakeOrder) {
        self.heard += 1;
        self.announced = Some(slot).filter(|_| !order.is_after_others());
    }
}
