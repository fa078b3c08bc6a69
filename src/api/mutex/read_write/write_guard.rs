//! A lock to write, and how it becomes one to read.

use super::RwReadGuard;
use crate::api::guard::MutexGuard;
use crate::api::guard::shared::SharedGuards;
use crate::api::lease::Lease;
use crate::api::mutex::Mutex;
use crate::events::error::Result;
use crate::events::release::ReleaseOutcome;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A [read-write lock](crate::RwMutex) that was taken to write: a [`MutexGuard`] that can be
/// [downgraded](RwWriteGuard::downgrade).
///
/// All methods of [`MutexGuard`] are there: [`remaining`](MutexGuard::remaining), [`ensure`](MutexGuard::ensure),
/// [`extend`](MutexGuard::extend), [`lost`](MutexGuard::lost), [`on_lost`](MutexGuard::on_lost). An extension that
/// would end the lock sooner does so here, and not on the nodes: if the program crashes, they keep it for the longest
/// time that it was extended by.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwWriteGuard {
    guard: MutexGuard,
    /// The mutex that locks to read, and the leases of its client's threads.
    read: Mutex,
    reads: Arc<SharedGuards>,
}

impl RwWriteGuard {
    pub(super) fn new(guard: MutexGuard, read: Mutex, reads: Arc<SharedGuards>) -> RwWriteGuard {
        RwWriteGuard { guard, read, reads }
    }

    /// Makes it a lock to read, without letting another writer in between, and extends it by the
    /// [`ttl`](crate::RwMutex::ttl) of the mutex. Waits as [`MutexGuard::extend`] does. Other readers are let in from
    /// then on; writers are not, for as long as the lease that it has lasts.
    ///
    /// If too few nodes answer, the lock is one to read all the same, and its lease is as long as before. Nodes that
    /// have not heard of it refuse other readers until they do, by the next extension, or the lock is released or ends.
    ///
    /// What [`lost`](MutexGuard::lost) and [`on_lost`](MutexGuard::on_lost) were given for the lock to write ends: the
    /// channel is disconnected.
    ///
    /// # Errors
    /// [`LeaseLost`](crate::ErrorKind::LeaseLost) when the lease has ended or the nodes do not have the lock any more.
    /// [`Config`](crate::ErrorKind::Config) and [`Forked`](crate::ErrorKind::Forked) as
    /// [`extend`](MutexGuard::extend). In each case the guard is dropped.
    pub fn downgrade(self) -> Result<RwReadGuard> {
        let RwWriteGuard { guard, read, reads } = self;
        let ttl = read.prepare()?;
        let guard = guard.downgrade(ttl, read.watchdog.as_ref())?;
        let held_here = guard.hold_id();
        let guard = RwReadGuard::first((&read, &reads), guard);
        // Threads of this client that wait to read share its lease.
        let client = read.client();
        read.local().release(held_here, client.engine().now());
        Ok(guard)
    }

    /// Releases the lock, as [`MutexGuard::unlock`].
    ///
    /// # Errors
    /// As [`MutexGuard::unlock`].
    pub fn unlock(self) -> Result<ReleaseOutcome> {
        self.guard.unlock()
    }

    /// Lets go of the guard and not of the lock, as [`MutexGuard::detach`].
    /// [`RwMutex::attach_write`](crate::RwMutex::attach_write) goes on with it.
    pub fn detach(self) -> Lease {
        self.guard.detach()
    }
}

impl Deref for RwWriteGuard {
    type Target = MutexGuard;

    fn deref(&self) -> &MutexGuard {
        &self.guard
    }
}

impl DerefMut for RwWriteGuard {
    fn deref_mut(&mut self) -> &mut MutexGuard {
        &mut self.guard
    }
}

impl fmt::Debug for RwWriteGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwWriteGuard").field("guard", &self.guard).finish()
    }
}
