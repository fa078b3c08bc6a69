//! A lock to read: one thread's share of the lease of its program.

use crate::api::guard::MutexGuard;
use crate::api::guard::shared::own_losses::OwnLosses;
use crate::api::guard::shared::{SharedGuard, SharedGuards};
use crate::api::lease::Lease;
use crate::api::mutex::Mutex;
use crate::events::error::Result;
use crate::events::extension::ExtendOutcome;
use crate::events::release::ReleaseOutcome;
use crossbeam_channel::Receiver;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A [read-write lock](crate::RwMutex) that was taken to read, until it is released or its lease ends. No program
/// writes in the meantime.
///
/// The guards of one client share one lease. It is released when the last of them goes; dropping a guard says nothing,
/// and [`unlock`](RwReadGuard::unlock) gives the outcome. What [`MutexGuard`](crate::MutexGuard) says about a lease
/// goes for it: **check [`remaining`](RwReadGuard::remaining) before every step that must not be done twice.**
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwReadGuard {
    lease: Arc<SharedGuard>,
    losses: OnceLock<Box<OwnLosses>>,
}

impl RwReadGuard {
    /// The guard of a thread that has locked anew. Others can share its lease from now on.
    pub(super) fn first((mutex, reads): (&Mutex, &SharedGuards), guard: MutexGuard) -> RwReadGuard {
        let lease = Arc::new(SharedGuard::new(guard));
        reads.insert(mutex.key().title(), &lease);
        RwReadGuard::of(lease)
    }

    pub(super) fn of(lease: Arc<SharedGuard>) -> RwReadGuard {
        RwReadGuard { lease, losses: OnceLock::new() }
    }

    pub(crate) fn lease(&self) -> &SharedGuard {
        &self.lease
    }

    /// Ends the share of a call that does not return it, and that delivers queued events itself.
    pub(super) fn give_back(self) {
        if let Some(lease) = Arc::into_inner(self.lease) {
            lease.post_release();
        }
    }

    /// For how long the lock may still be relied on, as [`MutexGuard::remaining`](crate::MutexGuard::remaining): also
    /// while another thread extends it, it waits for nothing.
    pub fn remaining(&self) -> Duration {
        self.lease.guard().remaining()
    }

    /// Gives an error unless the lock is valid for at least this long, as
    /// [`MutexGuard::ensure`](crate::MutexGuard::ensure).
    ///
    /// # Errors
    /// As [`MutexGuard::ensure`](crate::MutexGuard::ensure).
    pub fn ensure(&self, at_least: Duration) -> Result<()> {
        self.lease.guard().ensure(at_least)
    }

    /// Makes the lock last for at least `ttl` from now on, as [`MutexGuard::extend`](crate::MutexGuard::extend), also
    /// while a writer waits. What would end it sooner changes nothing and sends nothing, because another thread may
    /// rely on the longer lease. Threads that share the lease extend it one after the other: each waits for those
    /// before it, up to a node timeout for each and what an observer takes, and sends nothing if the lease is long
    /// enough by then.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) for an unusable time to live, or in a callback that an extension of the
    /// same lock calls; [`Forked`](crate::ErrorKind::Forked).
    pub fn extend(&self, ttl: Duration) -> Result<ExtendOutcome> {
        self.lease.extend(ttl)
    }

    /// A channel that brings one message when the lock is lost, as [`MutexGuard::lost`](crate::MutexGuard::lost). Each
    /// guard has its own, which is disconnected when it goes; of several receivers of one guard, one gets the message.
    /// Waits while another thread extends the lock, or is in a callback of that.
    ///
    /// # Errors
    /// As [`MutexGuard::lost`](crate::MutexGuard::lost).
    pub fn lost(&self) -> Result<Receiver<()>> {
        self.losses().lost(&self.lease)
    }

    /// Calls `callback` when the lock is lost, as [`MutexGuard::on_lost`](crate::MutexGuard::on_lost). If this guard
    /// goes first, it is dropped and not called, though others may keep the lock.
    ///
    /// # Errors
    /// As [`MutexGuard::lost`](crate::MutexGuard::lost).
    pub fn on_lost(&self, callback: impl FnOnce() + Send + 'static) -> Result<()> {
        self.losses().on_lost(&self.lease, Box::new(callback))
    }

    fn losses(&self) -> &OwnLosses {
        self.losses.get_or_init(|| Box::new(OwnLosses::of(&self.lease)))
    }

    /// Ends this thread's share, and releases the lock if it is the last, as
    /// [`MutexGuard::unlock`](crate::MutexGuard::unlock). `None`: other threads of this client read on, and nothing was
    /// sent.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use quorumlock::ReleaseOutcome;
    ///
    /// let prices = redlock.rw_mutex("prices");
    /// let (one, other) = (prices.read()?, prices.read()?);
    /// assert_eq!(one.unlock()?, None);
    /// assert_eq!(other.unlock()?, Some(ReleaseOutcome::Released));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Of the last share, as [`MutexGuard::unlock`](crate::MutexGuard::unlock).
    pub fn unlock(self) -> Result<Option<ReleaseOutcome>> {
        match Arc::into_inner(self.lease) {
            Some(lease) => lease.into_guard().unlock().map(Some),
            None => Ok(None),
        }
    }

    /// Lets go of the guard and not of the lock, as [`MutexGuard::detach`](crate::MutexGuard::detach), if no other
    /// thread of this client shares it. [`RwMutex::attach_read`](crate::RwMutex::attach_read) goes on with it.
    ///
    /// # Errors
    /// The guard, when another thread shares the lock, or in a child made by `fork`.
    pub fn detach(self) -> std::result::Result<Lease, RwReadGuard> {
        if self.lease.is_inherited() {
            return Err(self);
        }
        let RwReadGuard { lease, losses } = self;
        match Arc::try_unwrap(lease) {
            Ok(lease) => Ok(lease.into_guard().detach()),
            Err(lease) => Err(RwReadGuard { lease, losses }),
        }
    }
}

impl fmt::Debug for RwReadGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwReadGuard").field("remaining", &self.remaining()).finish_non_exhaustive()
    }
}
