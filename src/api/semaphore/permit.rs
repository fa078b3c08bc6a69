//! A permit that is held: the guard of a slot.

use crate::api::guard::MutexGuard;
use crate::api::lease::Lease;
use crate::engine::local_queue::slots::TakenSlot;
use crate::events::error::Result;
use crate::events::extension::ExtendOutcome;
use crate::events::release::ReleaseOutcome;
use crossbeam_channel::Receiver;
use std::fmt;
use std::time::Duration;

/// A permit of a [`Semaphore`](crate::Semaphore), until it is released or its lease ends.
///
/// It is the guard of one slot's lock, and what [`MutexGuard`] says of a lock goes for it: **check
/// [`remaining`](Permit::remaining) before every step that must not be done by more than k at once.** Dropping it
/// releases the permit without waiting; a waiting thread of this client gets it at once.
#[must_use = "the permit is released when it is dropped"]
pub struct Permit {
    // Dropped first: what the next holder asks for goes behind the release, on every connection.
    guard: MutexGuard,
    slot: TakenSlot,
}

impl Permit {
    pub(super) fn new(guard: MutexGuard, slot: TakenSlot) -> Permit {
        Permit { guard, slot }
    }

    /// Which of the permits it is, from 0 to k - 1. No other holder has the same one meanwhile: it may choose one of k
    /// work directories, ports or devices.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// const PRINTERS: [&str; 2] = ["cellar", "attic"];
    ///
    /// let permit = redlock.semaphore("printers", PRINTERS.len()).acquire()?;
    /// println!("print in the {}", PRINTERS[permit.slot()]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn slot(&self) -> usize {
        self.slot.slot()
    }

    /// The name of the slot's lock: that of the semaphore, `#`, and the [`slot`](Permit::slot).
    pub fn resource(&self) -> &str {
        self.guard.resource()
    }

    /// For how long the permit may still be relied on, as [`MutexGuard::remaining`].
    pub fn remaining(&self) -> Duration {
        self.guard.remaining()
    }

    /// Gives an error unless the permit is valid for at least this long, as [`MutexGuard::ensure`].
    ///
    /// # Errors
    /// As [`MutexGuard::ensure`].
    pub fn ensure(&self, at_least: Duration) -> Result<()> {
        self.guard.ensure(at_least)
    }

    /// Makes the permit last for `ttl` from now on, as [`MutexGuard::extend`].
    ///
    /// # Errors
    /// As [`MutexGuard::extend`].
    pub fn extend(&mut self, ttl: Duration) -> Result<ExtendOutcome> {
        self.guard.extend(ttl)
    }

    #[allow(dead_code, reason = "the C interface uses it")]
    pub(crate) fn extend_one_at_a_time(&self, ttl: Duration) -> Result<ExtendOutcome> {
        self.guard.extend_one_at_a_time(ttl)
    }

    /// Releases the permit, and waits until a quorum of nodes has answered, as [`MutexGuard::unlock`]. A waiting thread
    /// of this client gets it without that.
    ///
    /// # Errors
    /// As [`MutexGuard::unlock`].
    pub fn release(self) -> Result<ReleaseOutcome> {
        let Permit { guard, slot } = self;
        guard.unlock_and(|| drop(slot))
    }

    /// A channel that brings one message when the permit is lost, as [`MutexGuard::lost`].
    ///
    /// # Errors
    /// As [`MutexGuard::lost`].
    pub fn lost(&self) -> Result<Receiver<()>> {
        self.guard.lost()
    }

    /// Calls `callback` when the permit is lost, as [`MutexGuard::on_lost`].
    ///
    /// # Errors
    /// As [`MutexGuard::lost`].
    pub fn on_lost(&self, callback: impl FnOnce() + Send + 'static) -> Result<()> {
        self.guard.on_lost(callback)
    }

    /// Lets go of the permit without releasing it, as [`MutexGuard::detach`]. The lease is that of the slot's lock:
    /// [`Redlock::attach`](crate::Redlock::attach) makes a [`MutexGuard`] of it, in any program, and the permit is back
    /// when that is dropped.
    pub fn detach(self) -> Lease {
        let Permit { guard, slot } = self;
        let lease = guard.detach();
        slot.leave();
        lease
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("slot", &self.slot())
            .field("resource", &self.resource())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
