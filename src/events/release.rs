//! How a release ended.

use crate::algorithm::vote::ReleaseVerdict;
use std::fmt;

/// How a release ended. Neither is a failure. `Display` writes one phrase for a log.
///
/// ```
/// assert_eq!(quorumlock::ReleaseOutcome::Released.to_string(), "released");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "another client may have held a lock that was released too late"]
#[non_exhaustive]
pub enum ReleaseOutcome {
    /// The lease had ended before the release, or so many nodes refused it that no quorum can have
    /// held the key any more: another client may have held the lock since. A program that relies on
    /// mutual exclusion must check its work now.
    ///
    /// Fewer refusals prove nothing, because a node that was down at the acquire never had the key.
    /// With nodes that do not answer, `unlock` then fails as
    /// [`Unavailable`](crate::ErrorKind::Unavailable).
    Expired,
    /// The lock was held until the release, and a quorum of nodes has deleted it; or, if it was to
    /// remain [for longer](crate::Mutex::min_hold), has set its end to that time.
    Released,
    /// Nothing was sent: so many other guards of this client share the lock. They are the other
    /// levels of a [reentrant](crate::Mutex::reentrant) lock, or the other threads that read.
    StillHeld(usize),
}

impl ReleaseOutcome {
    /// The outcome for a lease that was, or was not, valid when the release was sent. None when the
    /// replies show neither a deletion by a quorum nor the loss of the lock.
    pub(crate) fn of(outcome: ReleaseVerdict, was_valid: bool) -> Option<ReleaseOutcome> {
        match outcome {
            ReleaseVerdict::Released if was_valid => Some(ReleaseOutcome::Released),
            ReleaseVerdict::Released | ReleaseVerdict::Expired => Some(ReleaseOutcome::Expired),
            ReleaseVerdict::Pending | ReleaseVerdict::Unavailable => None,
        }
    }
}

impl fmt::Display for ReleaseOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReleaseOutcome::Expired => f.pad("expired before the release"),
            ReleaseOutcome::Released => f.pad("released"),
            ReleaseOutcome::StillHeld(1) => f.pad("still held, by 1 more guard"),
            ReleaseOutcome::StillHeld(guards) => {
                f.pad(&format!("still held, by {guards} more guards"))
            }
        }
    }
}
