//! For how long nodes keep what is beside a lock, or remains after it.

use super::Builder;
use std::time::Duration;

impl Builder {
    /// How long nodes keep the key of a [fenced](crate::Mutex::fenced) lock after the lock was last acquired, extended
    /// or released, and the key of a read-write lock after a fenced writer acquired or extended the lock.
    /// Default: 24 h. Never less than [`max_ttl`](Builder::max_ttl) and two minutes more, whatever is set. At most 366
    /// days. Give all clients the same: the last one that uses a fenced lock determines how long its key stays.
    ///
    /// The key holds the last fence. Without it, the next one comes from the wall clocks of client and server, and
    /// grows all the same unless they disagree, or have been set back, by more than the time that the lock was not used
    /// for. Two minutes are what a fence can be ahead of a server's clock, and a minute for the clocks of servers and
    /// clients among themselves.
    ///
    /// A read-write lock has the last number in its key. Nodes keep it from when a fenced writer acquired or extended
    /// the lock, for the longest time that a client asked for.
    #[must_use]
    pub fn fence_retention(mut self, time: Duration) -> Builder {
        self.fence_retention = time;
        self
    }

    /// How long a program that is first in the queue of a lock may let the others wait. Default: 1 s. From 1 ms to an
    /// hour.
    ///
    /// A program that has ended costs the others nothing: its entry is removed when it is first. One that is stopped,
    /// or hangs, cannot be told from one that is about to ask. A call that has seen it in front for so long, while the
    /// lock was free or changed hands, has all entries in front of its own removed. Those that live store theirs again,
    /// at the same place, within a round trip.
    ///
    /// A call that waits and gets no message asks the nodes once in this time, and later the more are in front of it:
    /// one millisecond for each.
    #[must_use]
    pub fn place_lease(mut self, time: Duration) -> Builder {
        self.place_lease = time;
        self
    }
}
