//! How a hold ends.

/// How a hold ends: the field `outcome` of its span.
#[derive(Clone, Copy)]
pub(crate) enum HoldOutcome {
    /// The guard was detached: the lock is held without it.
    Detached,
    /// The guard of a writer was made one of a reader.
    Downgraded,
    /// The guard was dropped in time. No call waits for the release.
    Dropped,
    /// The lease had ended before the release, or the nodes did not have the lock any more.
    Expired,
    /// The loss of the lock was found before the release.
    Lost,
    /// A quorum of nodes has confirmed the release.
    Released,
    /// Other guards of the client share the lock.
    StillHeld,
    /// Too few nodes have confirmed the release.
    Unconfirmed,
}
