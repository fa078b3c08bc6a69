//! Why a call ended without the lock, and why a lock was lost.

/// Why a call for a lock ended without it. `Display` is one phrase for a log.
///
/// ```
/// use quorumlock::event::GaveUpReason;
///
/// assert_eq!(GaveUpReason::TimedOut.to_string(), "the limit of the wait passed");
/// ```
// C has the same numbers, and counters have them as indices: they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GaveUpReason {
    /// The wait was [cancelled](crate::ErrorKind::Cancelled).
    Cancelled = 1,
    /// The call could not be made, and asked no node: [`Config`](crate::ErrorKind::Config),
    /// [`Entropy`](crate::ErrorKind::Entropy), or no thread for the watchdog.
    Failed = 2,
    /// A call of [`try_lock`](crate::Mutex::try_lock) found the lock held.
    Held = 3,
    /// The limit of the wait passed while the lock was held.
    TimedOut = 4,
    /// A quorum granted the lock, but only after its lease had ended. The error is of kind
    /// [`Unavailable`](crate::ErrorKind::Unavailable).
    TooLate = 5,
    /// Too few nodes could reply, or the lock is held by a key without expiry:
    /// [`Unavailable`](crate::ErrorKind::Unavailable).
    Unavailable = 6,
    /// The client is shut down: [`ShutDown`](crate::ErrorKind::ShutDown).
    ShutDown = 7,
}

words! { GaveUpReason:
    Cancelled => "the wait was cancelled",
    Failed => "the call could not be made",
    Held => "another client holds the lock",
    ShutDown => "the client was shut down",
    TimedOut => "the limit of the wait passed",
    TooLate => "granted only after the lease had ended",
    Unavailable => "too few nodes available",
}

/// Why a lock was lost. `Display` is one phrase for a log.
///
/// ```
/// use quorumlock::event::LossReason;
///
/// assert_eq!(LossReason::KeyGone.to_string(), "the key is gone on a majority of nodes");
/// assert_eq!(LossReason::LeaseEnded.to_string(), "lease expired");
/// ```
// Counters have these numbers as indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// So many nodes replied that the key is gone or another client's that no quorum can hold it:
    /// it was evicted, deleted, or forgotten in a restart.
    KeyGone = 0,
    /// The lease expired: no extension was sent, or too few nodes replied.
    LeaseEnded = 1,
}

words! { LossReason:
    KeyGone => "the key is gone on a majority of nodes",
    LeaseEnded => "lease expired",
}
