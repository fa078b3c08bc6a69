//! The check of a lock before a step that must not be done twice.

use super::MutexGuard;
use crate::events::error::{Error, Result};
use std::time::Duration;

impl MutexGuard {
    /// Gives an error unless the lock is valid for at least this long. To be called before every step that must not be
    /// done twice, with the longest time that the step may take. The call waits for nothing.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use std::time::Duration;
    ///
    /// let guard = redlock.mutex("orders/42").ttl(Duration::from_secs(5)).lock()?;
    /// guard.ensure(Duration::from_secs(2))?;
    /// assert!(guard.ensure(Duration::from_secs(6)).is_err(), "it does not last that long");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`LeaseTooShort`](crate::ErrorKind::LeaseTooShort) when [`remaining`](MutexGuard::remaining) is less;
    /// [`LeaseLost`](crate::ErrorKind::LeaseLost) when it is zero, or the loss of the lock has been
    /// [signalled](MutexGuard::lost); [`Forked`](crate::ErrorKind::Forked). The guard is as before.
    pub fn ensure(&self, at_least: Duration) -> Result<()> {
        self.client.check_process()?;
        let remaining = self.remaining();
        let is_lost = remaining.is_zero() || self.is_lost();
        match remaining >= at_least {
            _ if is_lost => Err(Error::lease_lost(self.resource())),
            true => Ok(()),
            false => Err(Error::lease_too_short(self.resource(), remaining, at_least)),
        }
    }

    /// Whether the lease has ended, or the loss of the lock was signalled.
    pub(crate) fn is_over(&self) -> bool {
        self.remaining().is_zero() || self.is_lost()
    }

    /// Whether the loss of the lock was signalled.
    pub(super) fn is_lost(&self) -> bool {
        self.watched.get().is_some_and(|watched| watched.is_over())
    }
}
