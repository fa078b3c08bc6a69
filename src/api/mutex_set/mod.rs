//! The lock of several resources, all or none of them.
//!
//! It is a [`Mutex`] with several keys: one token, one attempt, one lease. A node's vote is the AND over its keys, so a
//! quorum of votes is a quorum for each key, and everything behind the votes is that of a plain lock.

pub(crate) mod guard;

use crate::api::client::Client;
use crate::api::lease::Lease;
use crate::api::mutex::Mutex;
use crate::api::wait::{CancelHandle, Wait};
use crate::api::watchdog::Watchdog;
use crate::events::error::Result;
use crate::protocol::lock_key::LockKey;
use guard::SetGuard;
use std::fmt;
use std::time::{Duration, Instant};

/// The lock of several resources, from [`Redlock::mutex_set`](crate::Redlock::mutex_set): all of them, or none.
///
/// ```
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
/// use quorumlock::ReleaseOutcome;
///
/// // A transfer touches two accounts.
/// let guard = redlock.mutex_set(["accounts/7", "accounts/3"]).lock()?;
/// assert_eq!(guard.resources().collect::<Vec<_>>(), ["accounts/3", "accounts/7"]);
///
/// // Each of them is the lock that any other program takes alone.
/// assert!(redlock.mutex("accounts/7").try_lock()?.is_none());
/// assert!(redlock.mutex_set(["accounts/7", "accounts/9"]).try_lock()?.is_none());
/// assert_eq!(guard.unlock()?, ReleaseOutcome::Released);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// * One attempt takes one round trip, whatever the number of resources: each node is asked for all keys in one write,
///   and votes for the set only if it has set them all. A set that is refused holds nothing: what a node has set for it
///   goes at once.
/// * A wait holds nothing either. It waits for the first resource that was refused, and then tries all of them again.
///   So sets do not deadlock, with each other or with single locks, in whatever order their names are given. A set that
///   shares resources with many others may wait for longer than any of them.
/// * There is one lease for all: one end, one [`watchdog`](MutexSet::watchdog), one loss. When a quorum of nodes has
///   lost one of the keys, the set is lost.
///
/// Each key is that of a plain lock, for this and for other Redlock libraries. A set can be
/// neither fair nor [fenced](Mutex::fenced): take a fenced lock for each resource whose writes must carry a number.
#[derive(Clone)]
pub struct MutexSet {
    mutex: Mutex,
}

impl MutexSet {
    pub(crate) fn new(client: Client, resources: impl IntoIterator<Item = impl AsRef<str>>) -> MutexSet {
        let key = LockKey::of(&client.settings().prefix, resources);
        MutexSet { mutex: Mutex::of_key(client, key) }
    }

    /// The mutex that it is. C has one type of handle for both.
    pub(crate) fn into_mutex(self) -> Mutex {
        self.mutex
    }

    /// As [`Mutex::ttl`].
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> MutexSet {
        MutexSet { mutex: self.into_mutex().ttl(ttl) }
    }

    /// As [`Mutex::watchdog`]. It extends all keys together.
    #[must_use]
    pub fn watchdog(self, watchdog: Watchdog) -> MutexSet {
        MutexSet { mutex: self.into_mutex().watchdog(watchdog) }
    }

    /// As [`Mutex::min_hold`], for each of the resources.
    #[must_use]
    pub fn min_hold(self, time: Duration) -> MutexSet {
        MutexSet { mutex: self.into_mutex().min_hold(time) }
    }

    /// The names of the resources, without the prefix: sorted, and each once.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = &str> {
        let client = self.mutex.client();
        self.mutex.key().each().iter().map(|key| client.resource(key))
    }

    /// Takes all of them, as [`Mutex::lock`]: blocks while any of them is held.
    ///
    /// # Errors
    /// As [`Mutex::lock`]; [`Config`](crate::ErrorKind::Config) for no name, more than 64 or an unusable one.
    pub fn lock(&self) -> Result<SetGuard> {
        self.mutex.lock().map(SetGuard::new)
    }

    /// Makes exactly one attempt, as [`Mutex::try_lock`]. `None` when any of them is held.
    ///
    /// # Errors
    /// As [`Mutex::try_lock`] and [`lock`](MutexSet::lock).
    pub fn try_lock(&self) -> Result<Option<SetGuard>> {
        Ok(self.mutex.try_lock()?.map(SetGuard::new))
    }

    /// Waits for at most this long, as [`Mutex::lock_timeout`].
    ///
    /// # Errors
    /// As [`Mutex::lock_timeout`] and [`lock`](MutexSet::lock).
    pub fn lock_timeout(&self, timeout: Duration) -> Result<Option<SetGuard>> {
        self.lock_with(&Wait::timeout(timeout))
    }

    /// Waits until then at the latest, as [`Mutex::lock_deadline`].
    ///
    /// # Errors
    /// As [`Mutex::lock_deadline`] and [`lock`](MutexSet::lock).
    pub fn lock_deadline(&self, deadline: Instant) -> Result<Option<SetGuard>> {
        self.lock_with(&Wait::deadline(deadline))
    }

    /// Waits as `wait` says, as [`Mutex::lock_with`].
    ///
    /// # Errors
    /// As [`Mutex::lock_with`] and [`lock`](MutexSet::lock).
    pub fn lock_with(&self, wait: &Wait) -> Result<Option<SetGuard>> {
        Ok(self.mutex.lock_with(wait)?.map(SetGuard::new))
    }

    /// Waits until another thread cancels the wait, as [`Mutex::lock_cancellable`].
    ///
    /// # Errors
    /// As [`Mutex::lock_cancellable`] and [`lock`](MutexSet::lock).
    pub fn lock_cancellable(&self, cancel: &CancelHandle) -> Result<SetGuard> {
        self.mutex.lock_cancellable(cancel).map(SetGuard::new)
    }

    /// Makes a guard of the lease of these resources, as [`Mutex::attach`].
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// let accounts = redlock.mutex_set(["accounts/3", "accounts/7"]);
    /// let lease = accounts.lock()?.detach();
    /// assert_eq!(lease.keys().collect::<Vec<_>>(), ["accounts/3", "accounts/7"]);
    /// let guard = accounts.attach(lease)?;
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Mutex::attach`]; [`Config`](crate::ErrorKind::Config) for the lease of other resources, be it some of them.
    pub fn attach(&self, lease: Lease) -> Result<SetGuard> {
        self.mutex.attach(lease).map(SetGuard::new)
    }
}

impl fmt::Debug for MutexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutexSet").field("mutex", &self.mutex).finish()
    }
}
