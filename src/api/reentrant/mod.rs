//! Reentrant locks: an owner that holds a lock may take it again.
//!
//! The levels are counted in this process, so that a re-entry sends nothing and cannot disagree with the nodes. The key
//! is that of a plain lock. An [`Owner`] has a table of what it holds; a thread has an owner of its own. A guard counts
//! a [`SharedGuard`] by an `Arc`, and the table has a `Weak`: the last guard that goes releases the lock.

pub(crate) mod guard;
pub(crate) mod owner;

use crate::api::guard::MutexGuard;
use crate::api::guard::shared::SharedGuard;
use crate::api::mutex::Mutex;
use crate::api::wait::{CancelHandle, Wait};
use crate::events::error::Result;
use guard::{ByOwner, ByThread, ReentrantGuard};
use owner::Owner;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A lock that its owner may take again while it holds it, from [`Mutex::reentrant`]. The owner is the calling thread,
/// or an [`Owner`] for work that moves between threads.
///
/// For everything but its owner it is the [`Mutex`] that it was made of: it has the same key, and excludes plain locks
/// and is excluded by them, also those of the same thread.
///
/// ```
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
/// use quorumlock::{ReentrantMutex, ReentrantOutcome, ReleaseOutcome, Result};
///
/// fn ship(order: &ReentrantMutex) -> Result<()> {
///     let _guard = order.lock()?;
///     print_label(order)
/// }
///
/// fn print_label(order: &ReentrantMutex) -> Result<()> {
///     let guard = order.lock()?;
///     assert_eq!(guard.unlock()?, ReentrantOutcome::StillHeld(1));
///     Ok(())
/// }
///
/// let order = redlock.mutex("orders/42").reentrant();
/// ship(&order)?;
/// assert_eq!(order.lock()?.unlock()?, ReentrantOutcome::Ended(ReleaseOutcome::Released));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # A re-entry
///
/// * sends nothing, waits in no queue, and has a limit of its own only where an extension has to be waited for;
/// * is refused as [`LeaseLost`](crate::ErrorKind::LeaseLost) when the lease has ended or its loss was
///   [signalled](ReentrantGuard::lost): a new lock under an old guard would hide that the old one is lost. When the
///   last guard of a lost lock has gone, the lock can be taken anew;
/// * extends the lease first when its mutex has a longer [`ttl`](Mutex::ttl) than the lease was last set to, or when
///   less than two thirds of that `ttl` remain. It fails as [`Unavailable`](crate::ErrorKind::Unavailable) if the
///   extension does; the outer guards are as before. A shorter `ttl` changes nothing;
/// * starts the [`watchdog`](Mutex::watchdog) of its mutex, if the lock has none. It works until the last guard has
///   gone.
///
/// Guards may go in any order. The last one releases the lock.
#[derive(Clone)]
pub struct ReentrantMutex {
    mutex: Mutex,
}

impl Mutex {
    /// Makes it reentrant: an owner that holds the lock may take it again. Default: a thread that locks what it holds
    /// waits for itself, until the lease ends; with a watchdog, for ever. That is an event,
    /// [`WaitingForItself`](crate::event::Event::WaitingForItself).
    #[must_use]
    pub fn reentrant(self) -> ReentrantMutex {
        ReentrantMutex { mutex: self }
    }
}

impl ReentrantMutex {
    /// The name of the resource, without the prefix.
    pub fn resource(&self) -> &str {
        self.mutex.resource()
    }

    /// Takes the lock for this thread, or takes it again. Otherwise as [`Mutex::lock`].
    ///
    /// # Errors
    /// As [`Mutex::lock`]; of a re-entry, [`LeaseLost`](crate::ErrorKind::LeaseLost) when the lock is lost,
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when it had to be extended and too few nodes answered, and
    /// [`Config`](crate::ErrorKind::Config) in a callback that an extension of the same lock calls, or when its
    /// watchdog cannot be started because the guard's loss is watched already.
    pub fn lock(&self) -> Result<ReentrantGuard> {
        self.lock_without_limit(&Wait::unlimited())
    }

    /// Makes exactly one attempt, as [`Mutex::try_lock`], or takes the lock again.
    ///
    /// # Errors
    /// As [`Mutex::try_lock`] and [`lock`](ReentrantMutex::lock).
    pub fn try_lock(&self) -> Result<Option<ReentrantGuard>> {
        self.enter_as_thread(Mutex::try_lock)
    }

    /// Waits for at most this long, as [`Mutex::lock_timeout`], or takes the lock again.
    ///
    /// # Errors
    /// As [`Mutex::lock_timeout`] and [`lock`](ReentrantMutex::lock).
    pub fn lock_timeout(&self, timeout: Duration) -> Result<Option<ReentrantGuard>> {
        self.lock_with(&Wait::timeout(timeout))
    }

    /// Waits until then at the latest, as [`Mutex::lock_deadline`], or takes the lock again.
    ///
    /// # Errors
    /// As [`Mutex::lock_timeout`] and [`lock`](ReentrantMutex::lock).
    pub fn lock_deadline(&self, deadline: Instant) -> Result<Option<ReentrantGuard>> {
        self.lock_with(&Wait::deadline(deadline))
    }

    /// Waits as `wait` says, as [`Mutex::lock_with`], or takes the lock again.
    ///
    /// # Errors
    /// As [`Mutex::lock_with`] and [`lock`](ReentrantMutex::lock).
    pub fn lock_with(&self, wait: &Wait) -> Result<Option<ReentrantGuard>> {
        self.enter_as_thread(|mutex| mutex.lock_with(wait))
    }

    /// Waits until another thread cancels the wait, as [`Mutex::lock_cancellable`], or takes the lock again.
    ///
    /// # Errors
    /// As [`Mutex::lock_cancellable`] and [`lock`](ReentrantMutex::lock).
    pub fn lock_cancellable(&self, cancel: &CancelHandle) -> Result<ReentrantGuard> {
        self.lock_without_limit(&Wait::unlimited().cancelled_by(cancel))
    }

    /// Takes the lock for an owner that is not a thread, or takes it again. The guard may be sent to another thread.
    ///
    /// # Errors
    /// As [`lock_with`](ReentrantMutex::lock_with).
    pub fn lock_as(&self, owner: &Owner, wait: &Wait) -> Result<Option<ReentrantGuard<ByOwner>>> {
        self.enter(owner, |mutex| mutex.lock_with(wait)).map(|hold| hold.map(ReentrantGuard::new))
    }

    /// Makes exactly one attempt for an owner that is not a thread, or takes the lock again.
    ///
    /// # Errors
    /// As [`try_lock`](ReentrantMutex::try_lock).
    pub fn try_lock_as(&self, owner: &Owner) -> Result<Option<ReentrantGuard<ByOwner>>> {
        self.enter(owner, Mutex::try_lock).map(|hold| hold.map(ReentrantGuard::new))
    }

    fn lock_without_limit(&self, wait: &Wait) -> Result<ReentrantGuard> {
        loop {
            if let Some(guard) = self.lock_with(wait)? {
                return Ok(guard);
            }
        }
    }

    fn enter_as_thread(
        &self,
        take: impl FnOnce(&Mutex) -> Result<Option<MutexGuard>>,
    ) -> Result<Option<ReentrantGuard<ByThread>>> {
        self.enter(&owner::of_thread(), take).map(|hold| hold.map(ReentrantGuard::new))
    }

    /// Takes the lock again, if the owner holds it; otherwise takes it.
    fn enter(
        &self,
        owner: &Owner,
        take: impl FnOnce(&Mutex) -> Result<Option<MutexGuard>>,
    ) -> Result<Option<Arc<SharedGuard>>> {
        self.mutex.client().check_process()?;
        if let Some(hold) = owner.hold_of(&self.mutex) {
            hold.enter(self.mutex.prepare()?, self.mutex.automatic_extension())?;
            return Ok(Some(hold));
        }
        let Some(guard) = take(&self.mutex)? else { return Ok(None) };
        if !owner.is_thread() {
            // The thread may serve another owner next, which waits for this one and not for the thread.
            self.mutex.local().forget_thread(guard.hold_id());
        }
        let hold = Arc::new(SharedGuard::new(guard));
        owner.insert(&self.mutex, &hold);
        Ok(Some(hold))
    }
}

impl fmt::Debug for ReentrantMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReentrantMutex").field("mutex", &self.mutex).finish()
    }
}
