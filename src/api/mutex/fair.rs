//! Fair locks: programs get them in the order in which they have come to wait.

use super::Mutex;
use crate::events::error::{Error, ErrorKind, Result};
use crate::protocol::lock_key::LockKey;

impl Mutex {
    /// Makes programs take turns: the one that has waited for longest is the next. Default: best effort, and any
    /// program may come first (rule 8.4).
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
    /// Each node keeps a queue beside the lock. A call that has to wait takes a place on every node that answers. While
    /// those nodes, a quorum, hold it, no fair call that begins later gets the lock. The order among the threads of a
    /// program is that of any mutex; the head of their queue has the program's place, and has a new one for each lock
    /// it takes.
    ///
    /// A place counts for [`Builder::place_lease`](crate::Builder::place_lease), and the waiting program renews it. If
    /// the program ends or hangs, or is cut off from a quorum of nodes, its place lapses, and so a batch of dead
    /// programs in front costs that time once.
    ///
    /// The key of the lock is that of a plain lock. So fair and plain clients of any library exclude each other, and
    /// the plain ones do not queue up: for turns, let all programs use a fair mutex. [`try_lock`](Mutex::try_lock)
    /// takes no place, and fails while others wait. The same holds for a lock that is [fenced](Mutex::fenced) as well,
    /// and its key is that of a fenced lock.
    ///
    /// Nodes need scripts ([`Cause::NoScripts`](crate::Cause::NoScripts)). The user needs `EVAL`, `EVALSHA`, `GET`,
    /// `SET`, `DEL`, `PTTL` and `TIME`, and for releases that are announced `PUBLISH`; the queue's key is that of the
    /// lock, with `quorumlock-queue:` behind the prefix. Without release notifications the order is the same, and a
    /// program that is next notices within a third of the place's time. A call takes one round trip when the lock is
    /// free and none waits.
    ///
    /// The rules are those of section 15 of the [rules](crate::docs::rules); the proof stands in
    /// `src/algorithm/place.rs`.
    ///
    /// A set of resources cannot be fair: to lock one is an error.
    #[must_use]
    pub fn fair(mut self) -> Mutex {
        self.is_fair = true;
        self
    }

    /// Refuses a fair lock that has no queue.
    pub(super) fn check_fairness(&self) -> Result<()> {
        match self.key {
            LockKey::Set(_) => Err(Error::new(ErrorKind::Config, "a set of resources cannot be fair")),
            LockKey::One(_) => Ok(()),
        }
    }
}
