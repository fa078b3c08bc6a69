//! What a guard holds: a lock alone, a slot of a semaphore, or a share of a lock that others share.

use crate::algorithm::fence::FencingToken;
use crate::api::held_lock::HeldLock;
use crate::api::lease::DetachedLease;
use crate::api::share::Share;
use crate::engine::local_queue::slots::TakenSlot;
use crate::engine::watchdog_thread::watched::LossCallback;
use crate::events::error::Result;
use crate::events::release::ReleaseOutcome;
use crossbeam_channel::Receiver;

/// What a guard of any kind holds.
pub(crate) enum Held {
    Alone(HeldLock),
    /// The lock is dropped first: what the next holder of the slot asks for goes behind the
    /// release, on every connection.
    Permit(HeldLock, TakenSlot),
    Shared(Share),
}

impl Held {
    /// The lock, to look at and to extend.
    pub(crate) fn lock(&self) -> &HeldLock {
        match self {
            Held::Alone(lock) | Held::Permit(lock, _) => lock,
            Held::Shared(share) => share.lock().held(),
        }
    }

    /// The number of the acquisition, if the lock is fenced.
    pub(crate) fn fence(&self) -> Option<FencingToken> {
        self.lock().fence()
    }

    pub(crate) fn lost(&self) -> Result<Receiver<()>> {
        match self {
            Held::Alone(lock) | Held::Permit(lock, _) => lock.lost(),
            Held::Shared(share) => share.lost(),
        }
    }

    pub(crate) fn on_lost(&self, callback: LossCallback) -> Result<()> {
        match self {
            Held::Alone(lock) | Held::Permit(lock, _) => lock.on_lost(callback),
            Held::Shared(share) => share.on_lost(callback),
        }
    }

    pub(crate) fn unlock(self) -> Result<ReleaseOutcome> {
        match self {
            Held::Alone(lock) => lock.unlock(|| ()),
            // A waiting thread of this client gets the slot at once.
            Held::Permit(lock, slot) => lock.unlock(|| drop(slot)),
            Held::Shared(share) => share.unlock(),
        }
    }

    pub(crate) fn detach(self) -> Result<DetachedLease> {
        match self {
            Held::Alone(lock) => lock.detach(),
            Held::Permit(lock, slot) => lock.detach().inspect(|_| slot.leave()),
            Held::Shared(share) => share.detach(),
        }
    }
}
