//! Releases that nodes have not run: what decides whether they are owed, and how far they are
//! waited for.

use super::time::Timestamp;
use crate::fault::Cause;
use crate::fault::server_error::ServerError;

/// What decides whether a node that has not run a release is sent it again.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReleaseConditions {
    /// Before this time this client has written nothing that sets the key. None: any node may have
    /// it from elsewhere.
    pub set_since: Option<Timestamp>,
    /// When the key has ended by itself.
    pub key_ends: Timestamp,
}

/// Whether an error that kept a node from running a release concerns all releases alike, until the
/// condition passes that it names. Any other one may concern a single key.
pub fn concerns_all_releases(cause: Cause) -> bool {
    match cause {
        Cause::Auth | Cause::Loading | Cause::OutOfMemory | Cause::ReadOnly => true,
        Cause::Server(error) => matches!(
            error,
            ServerError::Busy
                | ServerError::MasterDown
                | ServerError::Misconf
                | ServerError::NoReplicas
        ),
        _ => false,
    }
}

/// How far releases are to have come that are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// No node that can be reached has one to answer.
    Answered,
    /// None is left anywhere.
    Run,
    /// Each was sent, or cannot be sent now, and no node is being judged.
    Sent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_concern_a_single_key_keeps_no_other_release_back() {
        for cause in [
            Cause::Auth,
            Cause::Loading,
            Cause::OutOfMemory,
            Cause::ReadOnly,
            Cause::Server(ServerError::Busy),
            Cause::Server(ServerError::MasterDown),
            Cause::Server(ServerError::Misconf),
            Cause::Server(ServerError::NoReplicas),
        ] {
            assert!(concerns_all_releases(cause), "{cause:?}");
        }
        for cause in [
            Cause::Closed,
            Cause::NoPermission,
            Cause::Server(ServerError::WrongType),
            Cause::TimedOut,
        ] {
            assert!(!concerns_all_releases(cause), "{cause:?}");
        }
    }
}
