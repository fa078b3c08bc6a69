//! Reentrant locks: an owner that holds a lock may take it again.
//!
//! The levels are counted in this process, so that a re-entry sends nothing and cannot disagree with the nodes. An
//! [`Owner`] has a table of what it holds; a thread has an owner of its own. A guard counts a
//! [`SharedLock`](crate::api::shared_lock::SharedLock) by an `Arc`, and the table has a `Weak`: the last guard that
//! goes releases the lock.

use super::Lock;
use crate::api::held::Held;
use crate::api::held_lock::HeldLock;
use crate::api::owner::{self, Owner};
use crate::api::share::Share;
use crate::api::shared_lock::SharedLock;
use crate::api::wait::Wait;
use crate::events::error::Result;

impl Lock {
    /// Takes the lock for this thread, or takes it again.
    pub(super) fn take_for_thread(&self, wait: Option<&Wait>) -> Result<Option<Held>> {
        self.take_for(&owner::of_thread(), wait)
    }

    /// Takes the lock again, if the owner holds it; otherwise takes it.
    pub(super) fn take_for(&self, owner: &Owner, wait: Option<&Wait>) -> Result<Option<Held>> {
        self.client.check_process()?;
        if let Some(shared) = owner.hold_of(self) {
            shared.enter(self.prepare()?, self.watchdog.as_ref())?;
            self.keep(shared.held(), || self.client.engine().lease_now());
            return Ok(Some(Held::Shared(Share::of(shared))));
        }
        let won = self.take_by(wait, |attempts| Ok(attempts.run()?.map(|won| won.lock)))?;
        Ok(won.map(|lock| Held::Shared(self.first_level(owner, lock))))
    }

    /// Makes a lock that was taken the owner's.
    pub(super) fn first_level(&self, owner: &Owner, held: HeldLock) -> Share {
        if !owner.is_thread() {
            // The thread may serve another owner next, which waits for this one and not for the thread.
            self.local.forget_thread(held.hold_id());
        }
        let shared = SharedLock::new(held);
        owner.insert(self, &shared);
        Share::of(shared)
    }
}
