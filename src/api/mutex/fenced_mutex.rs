//! The types of a fenced lock: its mutex, and its guard, which always has a number.

use super::Mutex;
use crate::algorithm::fence::FencingToken;
use crate::api::guard::MutexGuard;
use crate::api::lease::Lease;
use crate::api::wait::{CancelHandle, Wait};
use crate::api::watchdog::Watchdog;
use crate::events::error::{Error, ErrorKind, Result};
use crate::events::release::ReleaseOutcome;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

/// The fenced lock of one resource, from [`Mutex::fenced`]. All as with a [`Mutex`], and the guards have a
/// [number](FencedGuard::fence).
///
/// Where a `&Mutex` is wanted, a `&FencedMutex` will do; the guards that such code gets are plain [`MutexGuard`]s, with
/// the number as an `Option`.
#[derive(Clone)]
pub struct FencedMutex(Mutex);

impl FencedMutex {
    pub(super) fn new(mutex: Mutex) -> FencedMutex {
        FencedMutex(mutex)
    }

    /// As [`Mutex::ttl`].
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> FencedMutex {
        FencedMutex(self.0.ttl(ttl))
    }

    /// As [`Mutex::watchdog`].
    #[must_use]
    pub fn watchdog(self, watchdog: Watchdog) -> FencedMutex {
        FencedMutex(self.0.watchdog(watchdog))
    }

    /// As [`Mutex::min_hold`].
    #[must_use]
    pub fn min_hold(self, time: Duration) -> FencedMutex {
        FencedMutex(self.0.min_hold(time))
    }

    /// As [`Mutex::fair`]. The key is still that of a fenced lock, so those that are fenced and not fair are excluded,
    /// and do not queue up.
    #[must_use]
    pub fn fair(self) -> FencedMutex {
        FencedMutex(self.0.fair())
    }

    /// Takes the lock, as [`Mutex::lock`].
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// let guard = redlock.mutex("orders/42").fenced().lock()?;
    /// // UPDATE orders SET …, fence = :fence WHERE id = 42 AND fence <= :fence
    /// let fence = i64::from(guard.fence());
    /// # assert!(fence > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Mutex::lock`].
    pub fn lock(&self) -> Result<FencedGuard> {
        FencedGuard::of(self.0.lock()?)
    }

    /// Makes exactly one attempt, as [`Mutex::try_lock`].
    ///
    /// # Errors
    /// As [`Mutex::try_lock`].
    pub fn try_lock(&self) -> Result<Option<FencedGuard>> {
        self.0.try_lock()?.map(FencedGuard::of).transpose()
    }

    /// Takes the lock, waiting for at most this long, as [`Mutex::lock_timeout`].
    ///
    /// # Errors
    /// As [`Mutex::lock_timeout`].
    pub fn lock_timeout(&self, timeout: Duration) -> Result<Option<FencedGuard>> {
        self.lock_with(&Wait::timeout(timeout))
    }

    /// Takes the lock, waiting until then at the latest, as [`Mutex::lock_deadline`].
    ///
    /// # Errors
    /// As [`Mutex::lock_deadline`].
    pub fn lock_deadline(&self, deadline: Instant) -> Result<Option<FencedGuard>> {
        self.lock_with(&Wait::deadline(deadline))
    }

    /// Takes the lock, waiting as `wait` says, as [`Mutex::lock_with`].
    ///
    /// # Errors
    /// As [`Mutex::lock_with`].
    pub fn lock_with(&self, wait: &Wait) -> Result<Option<FencedGuard>> {
        self.0.lock_with(wait)?.map(FencedGuard::of).transpose()
    }

    /// Takes the lock, waiting until another thread cancels the wait, as [`Mutex::lock_cancellable`].
    ///
    /// # Errors
    /// As [`Mutex::lock_cancellable`].
    pub fn lock_cancellable(&self, cancel: &CancelHandle) -> Result<FencedGuard> {
        FencedGuard::of(self.0.lock_cancellable(cancel)?)
    }

    /// Goes on with a lock that is held already, as [`Mutex::attach`]. The number is that of the lease.
    ///
    /// # Errors
    /// As [`Mutex::attach`]; [`Config`](ErrorKind::Config) for the lease of a plain lock.
    pub fn attach(&self, lease: Lease) -> Result<FencedGuard> {
        FencedGuard::of(self.0.attach(lease)?)
    }
}

/// What does not take the lock: the mutex's [`resource`](Mutex::resource), and code for any kind of lock.
impl Deref for FencedMutex {
    type Target = Mutex;

    fn deref(&self) -> &Mutex {
        &self.0
    }
}

/// For a field or a collection that holds either kind. It stays fenced.
impl From<FencedMutex> for Mutex {
    fn from(mutex: FencedMutex) -> Mutex {
        mutex.0
    }
}

impl fmt::Debug for FencedMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FencedMutex").field(&self.0).finish()
    }
}

/// A fenced lock that was taken: a [`MutexGuard`] with the number of its acquisition.
///
/// All methods of [`MutexGuard`] are there: [`remaining`](MutexGuard::remaining), [`ensure`](MutexGuard::ensure),
/// [`extend`](MutexGuard::extend), [`lost`](MutexGuard::lost), [`on_lost`](MutexGuard::on_lost).
#[must_use = "the lock is released when the guard is dropped"]
pub struct FencedGuard {
    guard: MutexGuard,
    fence: FencingToken,
}

impl FencedGuard {
    /// A fenced lock always has a number; an error says that this rule is broken.
    fn of(guard: MutexGuard) -> Result<FencedGuard> {
        match guard.fencing_token() {
            Some(fence) => Ok(FencedGuard { guard, fence }),
            None => Err(Error::new(ErrorKind::Config, format!("the lock of {:?} has no number", guard.resource()))),
        }
    }

    /// The number of this acquisition, greater than that of every acquisition before it: send it along with everything
    /// that is written under the lock, see [`FencingToken`].
    ///
    /// It does not change while the lock is held, and stays true when the lease has ended: that is what it is for.
    pub fn fence(&self) -> FencingToken {
        self.fence
    }

    /// Releases the lock, as [`MutexGuard::unlock`].
    ///
    /// # Errors
    /// As [`MutexGuard::unlock`].
    pub fn unlock(self) -> Result<ReleaseOutcome> {
        self.guard.unlock()
    }

    /// Lets go of the guard and not of the lock, as [`MutexGuard::detach`]. The lease has the number:
    /// [`Lease::fencing_token`].
    pub fn detach(self) -> Lease {
        self.guard.detach()
    }
}

impl Deref for FencedGuard {
    type Target = MutexGuard;

    fn deref(&self) -> &MutexGuard {
        &self.guard
    }
}

impl DerefMut for FencedGuard {
    fn deref_mut(&mut self) -> &mut MutexGuard {
        &mut self.guard
    }
}

/// For a field or a collection that holds either kind. It keeps its number:
/// [`fencing_token`](MutexGuard::fencing_token).
impl From<FencedGuard> for MutexGuard {
    fn from(guard: FencedGuard) -> MutexGuard {
        guard.guard
    }
}

impl fmt::Debug for FencedGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedGuard").field("guard", &self.guard).field("fence", &self.fence).finish()
    }
}
