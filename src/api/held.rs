//! What a guard holds: a lock alone, a slot of a semaphore, or a share of a lock that others share.

use crate::algorithm::kind::Kind;
use crate::api::held_lock::HeldLock;
use crate::api::lease::DetachedLease;
use crate::api::lock::Lock;
use crate::api::share::Share;
use crate::engine::local_queue::slots::TakenSlot;
use crate::engine::watchdog_thread::watched::LossCallback;
use crate::events::error::Result;
use crate::events::release::ReleaseOutcome;
use crate::protocol::key_space;
use crossbeam_channel::Receiver;

/// What a guard of any kind holds.
pub(crate) enum Held {
    Alone(HeldLock),
    /// The lock is dropped first: what the next holder of the slot asks for goes behind the
    /// release, on every connection.
    Permit(HeldLock, TakenSlot),
    Shared(Share),
    /// To write, by this lock, which can take it to read. Boxed: guards of all kinds are as big.
    Writer(HeldLock, Box<Lock>),
}

impl Held {
    /// The lock, to look at and to extend.
    pub(crate) fn lock(&self) -> &HeldLock {
        match self {
            Held::Alone(lock) | Held::Permit(lock, _) | Held::Writer(lock, _) => lock,
            Held::Shared(share) => &share.lock.held,
        }
    }

    /// The slot of a permit; 0 for another lock.
    pub(crate) fn slot(&self) -> usize {
        let lock = self.lock();
        let slot = match lock.kind() {
            Kind::Permit(_) => key_space::slot(lock.key().title().as_bytes()),
            _ => None,
        };
        slot.unwrap_or_default().into()
    }

    pub(crate) fn lost(&self) -> Result<Receiver<()>> {
        match self {
            Held::Shared(share) => share.lost(),
            _ => self.lock().lost(),
        }
    }

    pub(crate) fn on_lost(&self, callback: LossCallback) -> Result<()> {
        match self {
            Held::Shared(share) => share.on_lost(callback),
            _ => self.lock().on_lost(callback),
        }
    }

    pub(crate) fn unlock(self) -> Result<ReleaseOutcome> {
        match self {
            Held::Alone(lock) | Held::Writer(lock, _) => lock.unlock(|| ()),
            // A waiting thread of this client gets the slot at once.
            Held::Permit(lock, slot) => lock.unlock(|| drop(slot)),
            Held::Shared(share) => share.unlock(),
        }
    }

    pub(crate) fn detach(self) -> Result<DetachedLease> {
        match self {
            Held::Alone(lock) | Held::Writer(lock, _) => lock.detach(),
            Held::Permit(lock, slot) => lock.detach().inspect(|_| slot.leave()),
            Held::Shared(share) => share.detach(),
        }
    }

    /// Makes it one to read, if it is one to write.
    pub(crate) fn downgrade(self) -> Result<Held> {
        match self {
            Held::Writer(writer, lock) => lock.downgrade(writer).map(Held::Shared),
            held => Ok(held),
        }
    }
}
