//! A held lock: how long it may be relied on, and how it is let go.

use crate::client::Client;
use crate::error::Result;
use crate::net::engine::Claim;
use crate::proto::lease::Lease;
use crate::proto::time::Timestamp;
use crate::proto::vote::ReleaseOutcome;
use crate::queue::HoldId;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A lock that was taken, until it is released or its lease ends.
///
/// **Check [`remaining`](MutexGuard::remaining) before every step that must not be done twice.** A guard cannot stop time:
/// when the lease ends, somebody else may take the lock, whether this guard is still there or not.
///
/// Dropping a guard releases the lock without waiting for an answer: the release is on its way when `drop` returns.
/// [`unlock`](MutexGuard::unlock) waits for a quorum of answers and tells what they were. A guard may be sent to another
/// thread and dropped there.
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard {
    client: Client,
    key: Arc<str>,
    claim: Claim,
    lease: Lease,
    hold: HoldId,
    released: bool,
}

/// How a release ended. Neither is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Release {
    /// The lease had ended before the release, or the key was no longer on a quorum of nodes: somebody else may have held
    /// the lock since. Whoever relies on having been alone must find out now.
    Expired,
    /// The lock was ours to the end, and a quorum of nodes has deleted it.
    Released,
}

impl MutexGuard {
    pub(crate) fn new(client: Client, key: Arc<str>, claim: Claim, lease: Lease, hold: HoldId) -> MutexGuard {
        MutexGuard { client, key, claim, lease, hold, released: false }
    }

    /// For how long the lock may still be relied on, by the clock as it is now. Zero once it may not.
    ///
    /// It counts from before the first byte of the winning attempt was sent, less the allowance for clock drift, and goes
    /// on while the machine sleeps.
    pub fn remaining(&self) -> Duration {
        self.lease.remaining(self.client.engine().now())
    }

    /// The name of the resource.
    pub fn resource(&self) -> &str {
        &self.key[self.client.settings().prefix.len()..]
    }

    /// Releases the lock, and waits until a quorum of nodes has answered, for the node timeout at most.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use quorumlock::Release;
    /// use std::{thread, time::Duration};
    ///
    /// let guard = redlock.mutex("orders/42").lock()?;
    /// assert_eq!(guard.unlock()?, Release::Released);
    ///
    /// // Work that took longer than the lock lasted.
    /// let guard = redlock.mutex("orders/42").ttl(Duration::from_millis(20)).lock()?;
    /// thread::sleep(Duration::from_millis(25));
    /// assert!(guard.remaining().is_zero());
    /// assert_eq!(guard.unlock()?, Release::Expired);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when fewer than a quorum answered in time. The release has been sent
    /// to every node that can be reached, and nodes that hang run it when they go on; at the latest, the lock ends with its
    /// time to live.
    pub fn unlock(mut self) -> Result<Release> {
        self.released = true;
        let mut was_valid = false;
        let count = self.client.engine().release(self.key.as_bytes(), &self.claim, |now| {
            was_valid = self.lease.is_valid(now);
            self.leave_queue(now);
        });
        match count.tally.release() {
            ReleaseOutcome::Released if was_valid => Ok(Release::Released),
            ReleaseOutcome::Released | ReleaseOutcome::Expired => Ok(Release::Expired),
            ReleaseOutcome::Pending | ReleaseOutcome::Unavailable => {
                Err(self.client.unavailable("confirm the release of", self.resource(), self.client.trouble(&count)))
            }
        }
    }

    /// Lets the next thread in the queue go on. It need not wait for the answers: its `SET` goes behind the release.
    fn leave_queue(&self, now: Timestamp) {
        self.client.queues().release(&self.key, self.hold, now);
    }
}

impl Drop for MutexGuard {
    fn drop(&mut self) {
        if !self.released {
            self.client.engine().post_release(self.key.as_bytes(), &self.claim, |now| self.leave_queue(now));
        }
    }
}

/// Shows the resource and the time left, never the owner token.
impl fmt::Debug for MutexGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutexGuard")
            .field("resource", &self.resource())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
