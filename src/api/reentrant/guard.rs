//! One level of a reentrant lock.

use crate::algorithm::fence::FencingToken;
use crate::api::guard::shared::SharedGuard;
use crate::events::error::Result;
use crate::events::extension::ExtendOutcome;
use crate::events::release::ReleaseOutcome;
use crossbeam_channel::Receiver;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// The owner is the thread that locked: the guard stays on that thread, see [`ReentrantGuard`].
#[derive(Debug)]
pub struct ByThread(PhantomData<*const ()>);

/// The owner is an [`Owner`](crate::Owner): the guard may be sent to another thread, see [`ReentrantGuard`].
#[derive(Debug)]
pub struct ByOwner(());

/// One level of a [reentrant](crate::ReentrantMutex) lock. The lock is released when its last guard goes, in whatever
/// order they do; dropping it says nothing, and [`unlock`](ReentrantGuard::unlock) gives the outcome.
///
/// What [`MutexGuard`](crate::MutexGuard) says about a lease goes for the lock as a whole: **check
/// [`remaining`](ReentrantGuard::remaining) before every step that must not be done twice.**
///
/// The guard of a thread stays there, as its owner does:
///
/// ```compile_fail,E0277
/// # let redlock = quorumlock::Redlock::builder().node("redis://127.0.0.1").build().unwrap();
/// let guard = redlock.mutex("orders/42").reentrant().lock().unwrap();
/// std::thread::spawn(move || drop(guard));
/// ```
#[must_use = "the level ends when the guard is dropped"]
pub struct ReentrantGuard<O = ByThread> {
    hold: Arc<SharedGuard>,
    owner: PhantomData<O>,
}

impl<O> ReentrantGuard<O> {
    pub(super) fn new(hold: Arc<SharedGuard>) -> ReentrantGuard<O> {
        ReentrantGuard { hold, owner: PhantomData }
    }

    /// For how long the lock may still be relied on, as [`MutexGuard::remaining`](crate::MutexGuard::remaining): also
    /// while another level extends it, it waits for nothing.
    pub fn remaining(&self) -> Duration {
        self.hold.guard().remaining()
    }

    /// Gives an error unless the lock is valid for at least this long, as
    /// [`MutexGuard::ensure`](crate::MutexGuard::ensure).
    ///
    /// # Errors
    /// As [`MutexGuard::ensure`](crate::MutexGuard::ensure).
    pub fn ensure(&self, at_least: Duration) -> Result<()> {
        self.hold.guard().ensure(at_least)
    }

    /// The number of this acquisition, as [`MutexGuard::fencing_token`](crate::MutexGuard::fencing_token): the same at
    /// every level.
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.hold.guard().fencing_token()
    }

    /// Makes the lock last for at least `ttl` from now on, as [`MutexGuard::extend`](crate::MutexGuard::extend). What
    /// would end it sooner changes nothing and sends nothing, because another level may rely on the longer lease.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) for an unusable time to live, or in a callback that an extension of the
    /// same lock calls; [`Forked`](crate::ErrorKind::Forked).
    pub fn extend(&self, ttl: Duration) -> Result<ExtendOutcome> {
        self.hold.extend(ttl)
    }

    /// A channel that brings one message when the lock is lost, as [`MutexGuard::lost`](crate::MutexGuard::lost). All
    /// levels share it: of several receivers, one gets the message. It is disconnected when the last guard is gone.
    ///
    /// # Errors
    /// As [`MutexGuard::lost`](crate::MutexGuard::lost).
    pub fn lost(&self) -> Result<Receiver<()>> {
        self.hold.alone()?.lost()
    }

    /// Calls `callback` when the lock is lost, as [`MutexGuard::on_lost`](crate::MutexGuard::on_lost). If the last
    /// guard goes first, it is dropped and not called.
    ///
    /// # Errors
    /// As [`MutexGuard::lost`](crate::MutexGuard::lost).
    pub fn on_lost(&self, callback: impl FnOnce() + Send + 'static) -> Result<()> {
        self.hold.alone()?.on_lost(callback)
    }

    /// Ends this level, and releases the lock if it is the last.
    ///
    /// # Errors
    /// Of the last level, as [`MutexGuard::unlock`](crate::MutexGuard::unlock).
    pub fn unlock(self) -> Result<ReentrantOutcome> {
        // Of a lock of an `Owner`, another thread may just be taking or ending a level.
        let others = Arc::strong_count(&self.hold).saturating_sub(1);
        match Arc::into_inner(self.hold) {
            Some(hold) => hold.into_guard().unlock().map(ReentrantOutcome::Ended),
            None => Ok(ReentrantOutcome::StillHeld(others.max(1))),
        }
    }
}

impl<O> fmt::Debug for ReentrantGuard<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReentrantGuard").field("remaining", &self.remaining()).finish_non_exhaustive()
    }
}

/// How a level of a reentrant lock ended. `Display` gives one phrase for a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "another client may have held a lock that was released too late"]
#[non_exhaustive]
pub enum ReentrantOutcome {
    /// It was the last level, and the lock was released.
    Ended(ReleaseOutcome),
    /// So many levels are left, and nothing was sent.
    StillHeld(usize),
}

impl fmt::Display for ReentrantOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReentrantOutcome::Ended(outcome) => outcome.fmt(f),
            ReentrantOutcome::StillHeld(1) => f.pad("still held, by 1 more guard"),
            ReentrantOutcome::StillHeld(levels) => f.pad(&format!("still held, by {levels} more guards")),
        }
    }
}
