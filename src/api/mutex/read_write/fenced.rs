//! The types of a read-write lock whose writers are fenced: its mutex, and the guard of a writer, which always has a
//! number.

use super::{RwMutex, RwReadGuard, RwWriteGuard};
use crate::algorithm::fence::FencingToken;
use crate::api::lease::Lease;
use crate::api::mutex::Mutex;
use crate::api::wait::{CancelHandle, Wait};
use crate::api::watchdog::Watchdog;
use crate::events::error::{Error, ErrorKind, Result};
use crate::events::release::ReleaseOutcome;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

impl RwMutex {
    /// The same lock, and each time that it is locked to write gets a [number](FencedRwWriteGuard::fence), greater than
    /// those of all writers before that had one, as [`Mutex::fenced`] gives them.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// let prices = redlock.rw_mutex("prices").fenced();
    ///
    /// let first = prices.write()?.fence();
    /// let reader = prices.read()?;
    /// # drop(reader);
    /// let guard = prices.write()?;
    /// // UPDATE prices SET …, fence = :fence WHERE id = 42 AND fence <= :fence
    /// let fence = i64::from(guard.fence());
    /// assert!(guard.fence() > first);
    /// // It goes on reading, and has no number any more.
    /// let guard = guard.downgrade()?;
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// * The number is for what is *written* under the lock: readers have none. What a reader passes on may be of any
    ///   writer before it.
    /// * It is the lock of the unfenced [`RwMutex`] of that name: all exclude each other as ever, and writers without a
    ///   number may come in between.
    /// * Nodes keep the last number in the key of the lock, for [`fence_retention`](crate::Builder::fence_retention)
    ///   from when a writer got it or extended it. The key of a free lock outlives it by that.
    /// * A node whose number is more than a day ahead of the clocks does not count, with
    ///   [`Cause::FenceAhead`](crate::Cause::FenceAhead).
    #[must_use]
    pub fn fenced(self) -> FencedRwMutex {
        FencedRwMutex(RwMutex { write: Mutex { is_fenced: true, ..self.write }, ..self })
    }
}

/// The read-write lock of one resource whose writers are fenced, from [`RwMutex::fenced`]. All as with a [`RwMutex`],
/// and the guards of writers have a [number](FencedRwWriteGuard::fence).
///
/// Where a `&RwMutex` is wanted, a `&FencedRwMutex` will do; the guards that such code gets are [`RwWriteGuard`]s, with
/// the number as an `Option`: [`fencing_token`](crate::MutexGuard::fencing_token).
#[derive(Clone)]
pub struct FencedRwMutex(RwMutex);

impl FencedRwMutex {
    /// As [`RwMutex::ttl`].
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> FencedRwMutex {
        FencedRwMutex(self.0.ttl(ttl))
    }

    /// As [`RwMutex::watchdog`].
    #[must_use]
    pub fn watchdog(self, watchdog: Watchdog) -> FencedRwMutex {
        FencedRwMutex(self.0.watchdog(watchdog))
    }

    /// Locks to write, as [`RwMutex::write`].
    ///
    /// # Errors
    /// As [`RwMutex::write`].
    pub fn write(&self) -> Result<FencedRwWriteGuard> {
        FencedRwWriteGuard::of(self.0.write()?)
    }

    /// Makes exactly one attempt to lock to write, as [`RwMutex::try_write`].
    ///
    /// # Errors
    /// As [`RwMutex::try_write`].
    pub fn try_write(&self) -> Result<Option<FencedRwWriteGuard>> {
        self.0.try_write()?.map(FencedRwWriteGuard::of).transpose()
    }

    /// Locks to write, waiting for at most this long, as [`RwMutex::write_timeout`].
    ///
    /// # Errors
    /// As [`RwMutex::write_timeout`].
    pub fn write_timeout(&self, timeout: Duration) -> Result<Option<FencedRwWriteGuard>> {
        self.write_with(&Wait::timeout(timeout))
    }

    /// Locks to write, waiting until then at the latest, as [`RwMutex::write_deadline`].
    ///
    /// # Errors
    /// As [`RwMutex::write_deadline`].
    pub fn write_deadline(&self, deadline: Instant) -> Result<Option<FencedRwWriteGuard>> {
        self.write_with(&Wait::deadline(deadline))
    }

    /// Locks to write, waiting as `wait` says, as [`RwMutex::write_with`].
    ///
    /// # Errors
    /// As [`RwMutex::write_with`].
    pub fn write_with(&self, wait: &Wait) -> Result<Option<FencedRwWriteGuard>> {
        self.0.write_with(wait)?.map(FencedRwWriteGuard::of).transpose()
    }

    /// Locks to write, waiting until another thread cancels the wait, as [`RwMutex::write_cancellable`].
    ///
    /// # Errors
    /// As [`RwMutex::write_cancellable`].
    pub fn write_cancellable(&self, cancel: &CancelHandle) -> Result<FencedRwWriteGuard> {
        FencedRwWriteGuard::of(self.0.write_cancellable(cancel)?)
    }

    /// Goes on with a lock to write that is held already, as [`RwMutex::attach_write`]. The number is that of the
    /// lease.
    ///
    /// # Errors
    /// As [`RwMutex::attach_write`]; [`Config`](ErrorKind::Config) for the lease of a writer without a number.
    pub fn attach_write(&self, lease: Lease) -> Result<FencedRwWriteGuard> {
        FencedRwWriteGuard::of(self.0.attach_write(lease)?)
    }
}

/// What does not lock to write: the mutex's [`resource`](RwMutex::resource), all ways to [`read`](RwMutex::read), and
/// code for any read-write lock.
impl Deref for FencedRwMutex {
    type Target = RwMutex;

    fn deref(&self) -> &RwMutex {
        &self.0
    }
}

/// For a field or a collection that holds either kind. It stays fenced.
impl From<FencedRwMutex> for RwMutex {
    fn from(mutex: FencedRwMutex) -> RwMutex {
        mutex.0
    }
}

impl fmt::Debug for FencedRwMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FencedRwMutex").field(&self.0).finish()
    }
}

/// A [read-write lock](crate::FencedRwMutex) that was taken to write: a [`RwWriteGuard`] with the number of its
/// acquisition.
///
/// All methods of [`MutexGuard`](crate::MutexGuard) are there, as with a [`RwWriteGuard`].
#[must_use = "the lock is released when the guard is dropped"]
pub struct FencedRwWriteGuard {
    guard: RwWriteGuard,
    fence: FencingToken,
}

impl FencedRwWriteGuard {
    /// A fenced lock always has a number; an error says that this rule is broken.
    fn of(guard: RwWriteGuard) -> Result<FencedRwWriteGuard> {
        match guard.fencing_token() {
            Some(fence) => Ok(FencedRwWriteGuard { guard, fence }),
            None => Err(Error::new(ErrorKind::Config, format!("the lock of {:?} has no number", guard.resource()))),
        }
    }

    /// The number of this acquisition, greater than that of every writer before it: send it along with everything that
    /// is written under the lock, see [`FencingToken`].
    ///
    /// It does not change while the lock is held, and stays true when the lease has ended: that is what it is for.
    pub fn fence(&self) -> FencingToken {
        self.fence
    }

    /// Makes it a lock to read, as [`RwWriteGuard::downgrade`]. That has no number, because it is not for writing.
    ///
    /// # Errors
    /// As [`RwWriteGuard::downgrade`].
    pub fn downgrade(self) -> Result<RwReadGuard> {
        self.guard.downgrade()
    }

    /// Releases the lock, as [`RwWriteGuard::unlock`].
    ///
    /// # Errors
    /// As [`RwWriteGuard::unlock`].
    pub fn unlock(self) -> Result<ReleaseOutcome> {
        self.guard.unlock()
    }

    /// Lets go of the guard and not of the lock, as [`RwWriteGuard::detach`]. The lease has the number:
    /// [`Lease::fencing_token`].
    pub fn detach(self) -> Lease {
        self.guard.detach()
    }
}

impl Deref for FencedRwWriteGuard {
    type Target = RwWriteGuard;

    fn deref(&self) -> &RwWriteGuard {
        &self.guard
    }
}

impl DerefMut for FencedRwWriteGuard {
    fn deref_mut(&mut self) -> &mut RwWriteGuard {
        &mut self.guard
    }
}

/// For a field or a collection that holds either kind. It keeps its number:
/// [`fencing_token`](crate::MutexGuard::fencing_token).
impl From<FencedRwWriteGuard> for RwWriteGuard {
    fn from(guard: FencedRwWriteGuard) -> RwWriteGuard {
        guard.guard
    }
}

impl fmt::Debug for FencedRwWriteGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedRwWriteGuard").field("guard", &self.guard).field("fence", &self.fence).finish()
    }
}
