//! Several resources that were locked together.

use crate::api::guard::MutexGuard;
use crate::api::lease::Lease;
use crate::events::error::Result;
use crate::events::extension::ExtendOutcome;
use crate::events::release::ReleaseOutcome;
use crossbeam_channel::Receiver;
use std::fmt;
use std::time::Duration;

/// Several resources that were locked together, from a [`MutexSet`](crate::MutexSet), until they are released or their
/// lease ends.
///
/// All as with a [`MutexGuard`], for all of them at once: check [`remaining`](SetGuard::remaining) before every step
/// that must not be done twice; a drop releases all of them and waits for nothing. It may be sent to another thread.
#[must_use = "the locks are released when the guard is dropped"]
pub struct SetGuard {
    guard: MutexGuard,
}

impl SetGuard {
    pub(super) fn new(guard: MutexGuard) -> SetGuard {
        SetGuard { guard }
    }

    /// The names of the resources: sorted, and each once.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = &str> {
        self.guard.resources()
    }

    /// For how long all of them may still be relied on, as [`MutexGuard::remaining`]. Zero once they may not.
    pub fn remaining(&self) -> Duration {
        self.guard.remaining()
    }

    /// Gives an error unless all of them are valid for at least this long, as [`MutexGuard::ensure`].
    ///
    /// # Errors
    /// As [`MutexGuard::ensure`].
    pub fn ensure(&self, at_least: Duration) -> Result<()> {
        self.guard.ensure(at_least)
    }

    /// Makes all of them last for `ttl` from now on, as [`MutexGuard::extend`]. A node that has lost one of the keys
    /// does not count, and gets it again.
    ///
    /// # Errors
    /// As [`MutexGuard::extend`].
    pub fn extend(&mut self, ttl: Duration) -> Result<ExtendOutcome> {
        self.guard.extend(ttl)
    }

    /// A channel that brings one message when any of them is lost, as [`MutexGuard::lost`].
    ///
    /// # Errors
    /// As [`MutexGuard::lost`].
    pub fn lost(&self) -> Result<Receiver<()>> {
        self.guard.lost()
    }

    /// Calls `callback` once when any of them is lost, as [`MutexGuard::on_lost`].
    ///
    /// # Errors
    /// As [`MutexGuard::on_lost`].
    pub fn on_lost(&self, callback: impl FnOnce() + Send + 'static) -> Result<()> {
        self.guard.on_lost(callback)
    }

    /// Releases all of them, as [`MutexGuard::unlock`]. [`Released`](ReleaseOutcome::Released): a quorum of nodes had
    /// all of the keys, and has deleted them. [`Expired`](ReleaseOutcome::Expired): none had.
    ///
    /// # Errors
    /// As [`MutexGuard::unlock`].
    pub fn unlock(self) -> Result<ReleaseOutcome> {
        self.guard.unlock()
    }

    /// Lets go of the guard and not of the locks, as [`MutexGuard::detach`].
    /// [`MutexSet::attach`](crate::MutexSet::attach) goes on with them.
    pub fn detach(self) -> Lease {
        self.guard.detach()
    }
}

/// Shows the resources and the time left, never the owner token.
impl fmt::Debug for SetGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetGuard").field("guard", &self.guard).finish()
    }
}
