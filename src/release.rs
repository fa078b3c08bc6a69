//! How a release ended.

use crate::proto::vote::ReleaseOutcome;

/// How a release ended. Neither is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Release {
    /// The lease had ended before the release, or the key was no longer on a quorum of nodes: somebody else may have held
    /// the lock since. Whoever relies on having been alone must find out now.
    Expired,
    /// The lock was ours to the end, and a quorum of nodes has deleted it.
    Released,
}

impl Release {
    /// What a quorum's answers mean for a lease that was, or was not, valid when the release was sent. None when there is
    /// no quorum of answers.
    pub(crate) fn of(outcome: ReleaseOutcome, was_valid: bool) -> Option<Release> {
        match outcome {
            ReleaseOutcome::Released if was_valid => Some(Release::Released),
            ReleaseOutcome::Released | ReleaseOutcome::Expired => Some(Release::Expired),
            ReleaseOutcome::Pending | ReleaseOutcome::Unavailable => None,
        }
    }
}
