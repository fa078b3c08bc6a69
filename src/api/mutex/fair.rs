//! Fair locks: programs acquire them in the order in which they began to wait.

use super::Mutex;
use crate::events::error::{Error, ErrorKind, Result};
use crate::protocol::lock_key::LockKey;

impl Mutex {
    /// Serves programs in the order in which they begin to wait, without exception. Default: as a rule (rule 8.4).
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// let mutex = redlock.mutex("orders/42").fair();
    /// let guard = mutex.lock()?;
    /// // Others that lock the same mutex now are served in their order.
    /// let _ = guard.unlock()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Programs that wait for any lock are in its queue, in the order in which they came; but a call of a plain mutex
    /// tries once before it waits, and may find the lock free just then. A call of a fair mutex does not come in
    /// between so. Among the threads of a program, the order is that of any mutex; the head of their queue has the
    /// program's entry, and a new one for each lock that it takes.
    ///
    /// A program that ends, or is cut off, leaves the queue. One that is stopped while it is first lets the others wait
    /// for [`Builder::place_lease`](crate::Builder::place_lease), once.
    ///
    /// The key of the lock is that of a plain lock, and so is its queue. So fair and plain clients of any library
    /// exclude each other, and those of this library take turns. [`try_lock`](Mutex::try_lock) stores no entry, and
    /// fails while others wait. The same holds for a lock that is [fenced](Mutex::fenced) as well, and its key is that
    /// of a fenced lock. A call takes one round trip when the lock is free and none waits.
    ///
    /// Nodes need scripts ([`Cause::NoScripts`](crate::Cause::NoScripts)), and the user the commands of queues and the
    /// channels `quorumlock:*`, as the [operations page](crate::docs::operations) lists them. Without the right to them
    /// the lock is refused ([`Cause::NoPermission`](crate::Cause::NoPermission)), and so it is with
    /// [`release_notifications(false)`](crate::Builder::release_notifications), by
    /// [`Config`](crate::ErrorKind::Config). A set of resources cannot be fair: to lock one is an error.
    ///
    /// The rules are those of section 15 of the [rules](crate::docs::rules); what the order rests on is in
    /// `src/algorithm/queue/mod.rs`.
    #[must_use]
    pub fn fair(mut self) -> Mutex {
        self.is_fair = true;
        self
    }

    /// Refuses a fair lock that has no queue.
    pub(super) fn check_fairness(&self) -> Result<()> {
        match self.key() {
            LockKey::Set(_) => Err(Error::new(ErrorKind::Config, "a set of resources cannot be fair")),
            LockKey::One(_) if !self.client.engine().has_messages() => {
                let message = "a fair lock needs release notifications, which this client does without: remove \
                               release_notifications(false)";
                Err(Error::new(ErrorKind::Config, message))
            }
            LockKey::One(_) => Ok(()),
        }
    }
}
