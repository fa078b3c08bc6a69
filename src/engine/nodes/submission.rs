//! What is asked of the nodes: leases, and their release. Attempts and releases have a form that
//! any thread can begin for the one that wants them.

use crate::algorithm::kind::Kind;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::NodeSet;
use crate::algorithm::pending_release::ReleaseConditions;
use crate::algorithm::queue::{QueueRound, TakeRequest, TicketRequest};
use crate::algorithm::time::{Readings, Timestamp};
use crate::events::event_queue::ReleaseContext;
use crate::protocol::lock_key::LockKey;
use crate::protocol::operation::Departure;
use std::num::NonZeroU64;
use std::time::Duration;

/// Something that a thread waits for.
pub(in crate::engine) enum Submission {
    /// An attempt of a call that does not wait in a queue.
    Acquire(AttemptRequest),
    Release(Release),
}

/// What an attempt asks for: the key, or the keys of a set, the value, for how long, and how it
/// asks in its turn.
pub(crate) struct AttemptRequest {
    pub(crate) key: LockKey,
    pub(crate) token: OwnerToken,
    pub(crate) ttl_millis: u64,
    pub(crate) kind: Kind,
    /// None: it takes what is free, whichever calls wait.
    pub(crate) in_turn: Option<InTurn>,
}

/// How a call asks in its turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InTurn {
    pub(crate) request: TakeRequest,
    /// The greatest ticket that the client's clock explains.
    pub(crate) latest: u64,
}

impl InTurn {
    /// Without an entry: it is granted if no call is first.
    pub(crate) const AS_A_NEWCOMER: InTurn = InTurn {
        request: TakeRequest::WITHOUT_ENTRY,
        latest: u64::MAX,
    };

    /// The round that collects the replies.
    pub(super) fn round(&self) -> QueueRound {
        let own = if let TicketRequest::Fixed(ticket) = self.request.ticket {
            Some(ticket)
        } else {
            None
        };
        QueueRound::new(own, self.latest).by_command(self.request.by_command)
    }
}

/// A release that no thread waits for.
pub(in crate::engine) struct Posting {
    pub(in crate::engine) release: Release,
    /// What its outcome is reported with, and when at the latest; none if it is not.
    pub(in crate::engine) report: Option<(ReleaseContext, Timestamp)>,
}

/// What is to be released.
pub(crate) struct Release {
    pub(crate) key: LockKey,
    pub(crate) attempt: AttemptRecord,
    pub(crate) scope: ReleaseScope,
    /// For how long the key can live from now on.
    pub(crate) key_lasts: Duration,
}

/// Where a release goes, and what it does there.
#[derive(Clone, Copy)]
pub(crate) enum ReleaseScope {
    /// To every node that can answer: the verdict is wanted.
    Everywhere {
        /// For how many milliseconds the lock is to remain from now on. None: it is deleted.
        stands_for: Option<NonZeroU64>,
    },
    /// To the nodes that the acquire may have reached and that did not refuse it: the undo of a
    /// lost attempt.
    Reached,
}

/// A lease that is to last longer: the key, or the keys of a set, the value, and for how long.
#[derive(Clone, Copy)]
pub(crate) struct LeaseRequest<'o> {
    pub(crate) key: &'o LockKey,
    pub(crate) token: &'o OwnerToken,
    pub(crate) ttl_millis: u64,
    pub(crate) kind: Kind,
}

/// What a release needs to know of the attempt that it ends.
#[derive(Clone, Debug)]
pub(crate) struct AttemptRecord {
    /// The attempt's token.
    pub(crate) token: OwnerToken,
    /// When the attempt began, read before its first byte was written.
    pub(crate) t0: Readings,
    /// The nodes that may have the key, or the entry of the call. An undo leaves out those that
    /// have refused.
    pub(crate) reached: NodeSet,
    pub(crate) origin: KeyOrigin,
    /// What becomes of the call's entry in the queue of the lock with the release, if it waited
    /// there.
    pub(crate) departure: Option<Departure>,
    pub(crate) kind: Kind,
}

/// Which client has set the key of a lock: decides whether a release is kept for a node that it
/// cannot be queued for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyOrigin {
    /// Another client, or this one before the lock was handed over: the key may be on any node.
    Elsewhere,
    /// This client's attempt: a node that it has written nothing to has no key of it.
    Here,
}

impl Release {
    /// Which nodes need the release, and until when.
    pub(super) fn conditions(&self, now: Timestamp) -> ReleaseConditions {
        // A node's clock may be slower than this one's: by a fiftieth at most, twice the usual
        // allowance.
        let key_ends = now.after(self.key_lasts + self.key_lasts / 50);
        let is_ours = self.attempt.origin == KeyOrigin::Here;
        ReleaseConditions {
            set_since: is_ours.then_some(self.attempt.t0.steady),
            key_ends,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::time::LeaseTime;

    #[test]
    fn a_release_is_kept_while_the_key_may_live_on_a_slow_node_that_was_written_to() {
        let begun = Timestamp::ORIGIN.after(Duration::from_secs(3));
        for (origin, set_since) in [(KeyOrigin::Here, Some(begun)), (KeyOrigin::Elsewhere, None)] {
            let release = Release {
                key: LockKey::One("k".into()),
                attempt: AttemptRecord {
                    token: OwnerToken::from_entropy([0; OwnerToken::ENTROPY]),
                    t0: Readings {
                        steady: begun,
                        lease: LeaseTime::ORIGIN,
                    },
                    reached: NodeSet::EMPTY,
                    origin,
                    departure: None,
                    kind: Kind::Plain,
                },
                scope: ReleaseScope::Reached,
                key_lasts: Duration::from_secs(10),
            };
            let conditions = release.conditions(begun);
            assert_eq!(conditions.set_since, set_since);
            let key_lasts = conditions.key_ends.since(begun);
            assert_eq!(key_lasts, Duration::from_millis(10_200));
        }
    }

    #[test]
    fn a_round_knows_how_it_is_asked() {
        for by_command in [false, true] {
            let request = TakeRequest {
                by_command,
                ..TakeRequest::WITHOUT_ENTRY
            };
            let in_turn = InTurn { request, latest: 9 };
            assert_eq!(in_turn.round().is_by_command, by_command);
        }
    }
}
