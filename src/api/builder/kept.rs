//! For how long nodes keep what stands beside a lock, or stays after it.

use super::Builder;
use std::time::Duration;

impl Builder {
    /// How long nodes keep the key of a [fenced](crate::Mutex::fenced) lock after it was last taken, extended or
    /// released, and that of a read-write lock after a [fenced writer](crate::RwMutex::fenced) took or extended it.
    /// Default: 24 h. Never less than [`max_ttl`](Builder::max_ttl) and two minutes more, whatever is set. At most 366
    /// days. Give all clients the same: the last one that uses a fenced lock says how long its key stays.
    ///
    /// The key holds the last fence. Without it, the next one comes from the wall clocks of client and server, and
    /// grows all the same unless they disagree, or have been set back, by more than the time that the lock was not used
    /// for. Two minutes are what a fence can be ahead of a server's clock, and a minute for the clocks of servers and
    /// clients among themselves.
    ///
    /// Of a read-write lock it is the number that is kept in the key, from when a [fenced](crate::RwMutex::fenced)
    /// writer got or extended the lock, for the longest time that any of them has asked for.
    #[must_use]
    pub fn fence_retention(mut self, time: Duration) -> Builder {
        self.fence_retention = time;
        self
    }

    /// How long a place in the queue of a [fair](crate::Mutex::fair) lock counts, unless it is renewed: a program that
    /// waits does that within a third of it. Default: 1 s. Never less than four times the longest
    /// [`retry_delay`](Builder::retry_delay), whatever is set, and at most an hour. A place of a call counts for twice
    /// as long as its last attempt took, where that is longer.
    ///
    /// For as long, a program that waits to write a [read-write](crate::Redlock::rw_mutex) lock keeps new readers out.
    ///
    /// So long the others wait for one that has ended while it was the next. A program that stands still for longer
    /// loses its place, and goes on with it when it is back, if no other one has had the lock since.
    #[must_use]
    pub fn place_lease(mut self, time: Duration) -> Builder {
        self.place_lease = time;
        self
    }
}
