//! Fenced locks: those that give a number to each acquisition.
//!
//! Their keys stand in a space of their own, because a fenced lock's key holds more than a token, and lives longer than
//! its lock. Names that would be keys of that space are refused, so no plain lock is there.

use super::Mutex;
use super::fenced_mutex::FencedMutex;
use crate::events::error::{Error, ErrorKind, Result};
use crate::protocol::key_space::{self, KeyKind};
use crate::protocol::lock_key::LockKey;

impl Mutex {
    /// Gives every acquisition a number, greater than that of every acquisition before it:
    /// [`FencedGuard::fence`](crate::FencedGuard::fence). Default: no number, and a lock that other libraries
    /// understand.
    ///
    /// A lease can end while its holder is stopped and does not know. When it goes on it still writes, and no lock can
    /// keep it from that. The resource can, if every write brings its number and the resource refuses a smaller one
    /// than it has seen:
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use quorumlock::FenceChecker;
    ///
    /// // In front of whatever must not be written twice.
    /// let fence = FenceChecker::new();
    ///
    /// let mutex = redlock.mutex("orders/42").fenced();
    /// let slow = mutex.lock()?.fence();
    /// // Its lease ends, and another client takes the lock and writes.
    /// let quick = mutex.lock()?.fence();
    /// assert!(fence.check("orders/42", quick).is_ok());
    /// // Then the first goes on.
    /// assert!(fence.check("orders/42", slow).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The numbers grow whatever clocks, networks and clients do, as long as no node forgets what it has written. If
    /// nodes do forget, the numbers go on from the wall clocks: they are microseconds since 1970, or more. One
    /// acquisition takes one round trip, as that of a plain lock, unless clients compete for it in that very moment, or
    /// this machine's wall clock is more than a minute ahead: then it may take two, each with the node timeout.
    ///
    /// A number that is more than a day ahead of the wall clock of its node or of this machine is damage, or was
    /// written with a wrong clock. Such a node does not count for this lock
    /// ([`Cause::FenceAhead`](crate::Cause::FenceAhead)), and nothing is written there; the others go on, and their
    /// numbers stay as they are. The key ends with its retention, or delete it on that node. **A machine whose own wall
    /// clock is more than a day behind takes no fenced lock that others use:** to it, all nodes are ahead.
    ///
    /// **A fenced lock and a plain lock of the same name are two different locks: a holder of one does not exclude a
    /// holder of the other.** All programs that use a resource must agree on which it is. The key of a fenced lock is
    /// `quorumlock-fence:`, the prefix and the name, and no other library understands it. No name with its prefix may
    /// begin with that.
    ///
    /// Nodes need scripts: one that runs none, or none for this user, does not count
    /// ([`Cause::NoScripts`](crate::Cause::NoScripts)). The user needs `EVAL`, `EVALSHA`, `GET`, `SET` and `TIME`. A
    /// key that holds something else is left as it is ([`Cause::UnexpectedValue`](crate::Cause::UnexpectedValue)). A
    /// node whose memory is full extends and releases what is held, if the user may run `PEXPIRE` too. Keys stay on the
    /// nodes for [`Builder::fence_retention`](crate::Builder::fence_retention) after the last use.
    #[must_use]
    pub fn fenced(mut self) -> FencedMutex {
        // A fenced mutex that was made a `Mutex` again is fenced once.
        if let (false, LockKey::One(key)) = (self.is_fenced, self.key()) {
            let key = LockKey::One(KeyKind::Fenced.key("", key).into());
            self.local = self.client.local_lock(&key);
        }
        self.is_fenced = true;
        FencedMutex::new(self)
    }

    /// Refuses a name whose key would be that of another kind, and a fenced lock of several resources.
    pub(super) fn check_key_space(&self) -> Result<()> {
        if let (true, LockKey::Set(_)) = (self.is_fenced, self.key()) {
            return Err(Error::new(ErrorKind::Config, "a set of resources cannot be fenced"));
        }
        if self.is_fair {
            self.check_fairness()?;
        }
        let marker = match (self.access, self.is_fenced) {
            (Some(_), _) => KeyKind::ReadWrite,
            (None, true) => KeyKind::Fenced,
            (None, false) => KeyKind::Plain,
        }
        .marker();
        match self.key().each().iter().find_map(|key| key_space::reserved(&key[marker.len()..])) {
            Some((beginning, what)) => {
                let message =
                    format!("a prefix and resource name that begin with {beginning:?}: such keys are those of {what}");
                Err(Error::new(ErrorKind::Config, message))
            }
            None => Ok(()),
        }
    }
}
