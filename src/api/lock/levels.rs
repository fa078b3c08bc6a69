//! Reentrant locks: an owner that holds a lock may take it again.
//!
//! The levels are counted in this process, so that a re-entry sends nothing and cannot disagree
//! with the nodes. An [`Owner`] has a table of what it holds; a thread has an owner of its own. A
//! guard counts a [`SharedLock`](crate::api::shared_lock::SharedLock) by an `Arc`, and the table
//! has a `Weak`: the last guard that goes releases the lock.

use super::Lock;
use crate::api::held::Held;
use crate::api::held_lock::HeldLock;
use crate::api::owner::Owner;
use crate::api::share::Share;
use crate::api::shared_lock::SharedLock;
use crate::api::wait::Wait;
use crate::events::error::Result;

impl Owner {
    /// Takes a lock again, if the owner holds it; otherwise takes it.
    pub(super) fn take(&self, lock: &Lock, wait: Option<&Wait>) -> Result<Option<Held>> {
        lock.client.check_process()?;
        if let Some(shared) = self.hold_of(lock) {
            shared.enter(lock.prepare()?, lock.watchdog.as_ref())?;
            lock.keep(&shared.held, || lock.client.engine.lease_now());
            return Ok(Some(Held::Shared(Share::of(shared))));
        }
        let won = lock.take_by(wait, lock.begin_call()?, |attempts| attempts.run())?;
        Ok(won.map(|held| Held::Shared(self.first_level(lock, held))))
    }

    /// Makes a lock that was taken this owner's.
    pub(super) fn first_level(&self, lock: &Lock, held: HeldLock) -> Share {
        if !self.is_thread {
            // The thread may serve another owner next, which waits for this one and not for the
            // thread.
            lock.local.forget_thread(held.hold_id());
        }
        let shared = SharedLock::new(held);
        self.insert(lock, &shared);
        Share::of(shared)
    }
}
