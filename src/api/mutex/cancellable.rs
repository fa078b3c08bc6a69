//! Waits without a limit: they end with a guard or an error, and never with nothing.

use super::Mutex;
use crate::api::guard::MutexGuard;
use crate::api::wait::{CancelHandle, Wait};
use crate::events::error::Result;

impl Mutex {
    /// Takes the lock as [`lock`](Mutex::lock) does, until another thread cancels the wait. A wait that also has a
    /// limit, or that a channel cancels, is made with [`lock_with`](Mutex::lock_with).
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use quorumlock::{CancelHandle, ErrorKind};
    /// use std::thread;
    ///
    /// let mutex = redlock.mutex("orders/42");
    /// let shutdown = CancelHandle::new();
    /// let guard = mutex.lock_cancellable(&shutdown)?;
    ///
    /// let waiting = thread::spawn({
    ///     let (mutex, shutdown) = (mutex.clone(), shutdown.clone());
    ///     move || mutex.lock_cancellable(&shutdown)
    /// });
    /// shutdown.cancel();
    /// let error = waiting.join().unwrap().expect_err("the wait was cancelled");
    /// assert_eq!(error.kind(), ErrorKind::Cancelled);
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Cancelled`](crate::ErrorKind::Cancelled) when the wait was cancelled, also before it began; then nothing is
    /// held, and no key is left behind. Otherwise as [`lock`](Mutex::lock).
    pub fn lock_cancellable(&self, cancel: &CancelHandle) -> Result<MutexGuard> {
        self.lock_without_limit(&Wait::unlimited().cancelled_by(cancel))
    }

    /// Waits until there is a guard, or an error.
    pub(super) fn lock_without_limit(&self, wait: &Wait) -> Result<MutexGuard> {
        loop {
            if let Some(guard) = self.lock_with(wait)? {
                return Ok(guard);
            }
        }
    }
}
