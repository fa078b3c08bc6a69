//! What is asked of the nodes: leases, and their release. Attempts and releases have a form that any thread can begin
//! for the one that wants them.

use crate::algorithm::lease::OwnerToken;
use crate::algorithm::lock_kind::LockKind;
use crate::algorithm::node::NodeSet;
use crate::algorithm::pending_release::ReleaseConditions;
use crate::algorithm::place::{PlaceId, PlaceRequest};
use crate::algorithm::time::{Readings, Timestamp};
use crate::events::event_queue::ReleaseContext;
use crate::protocol::lock_key::LockKey;
use std::num::NonZeroU64;
use std::time::Duration;

/// Something that a thread waits for.
pub(in crate::engine) enum Submission {
    /// An attempt of a call that has not waited.
    Acquire { key: LockKey, token: OwnerToken, ttl_millis: u64, kind: LockKind, place: Option<PlaceRequest> },
    /// The release of a lock whose key lives for so long at most.
    Release { key: LockKey, attempt: AttemptRecord, key_lasts: Duration },
}

/// A release that no thread waits for.
pub(in crate::engine) struct Posting {
    pub(in crate::engine) key: LockKey,
    pub(in crate::engine) attempt: AttemptRecord,
    pub(in crate::engine) scope: ReleaseScope,
    pub(in crate::engine) key_lasts: Duration,
    /// What its outcome is reported with, and when at the latest; none if it is not.
    pub(in crate::engine) report: Option<(ReleaseContext, Timestamp)>,
}

/// Where a release goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum ReleaseScope {
    /// To every node that can answer: the verdict is wanted.
    Everywhere,
    /// To the nodes that the acquire may have reached and that did not refuse it: the undo of a lost attempt.
    Reached,
}

/// A lease that is asked for: the key, or those of a set, the value, and for how long.
#[derive(Clone, Copy)]
pub(crate) struct LeaseRequest<'o> {
    pub(crate) key: &'o [u8],
    pub(crate) token: &'o OwnerToken,
    pub(crate) ttl_millis: u64,
    pub(crate) kind: LockKind,
}

/// What is to be released.
#[derive(Clone, Copy)]
pub(in crate::engine) struct ReleaseRequest<'o> {
    pub(in crate::engine) key: &'o [u8],
    pub(in crate::engine) attempt: &'o AttemptRecord,
    pub(in crate::engine) scope: ReleaseScope,
    /// For how long the key can live from now on.
    pub(in crate::engine) key_lasts: Duration,
}

/// What a release needs to know of the attempt that it ends.
#[derive(Clone, Debug)]
pub(crate) struct AttemptRecord {
    /// The attempt's token.
    pub(crate) token: OwnerToken,
    /// When the attempt began, read before its first byte was written.
    pub(crate) t0: Readings,
    /// The nodes where the key may have been set. Of an undo: less those that refused.
    pub(crate) reached: NodeSet,
    pub(crate) origin: KeyOrigin,
    /// Whether the lock was waited for, and other programs were waiting too.
    pub(crate) has_waited: bool,
    pub(crate) kind: LockKind,
    /// Of an attempt for a fair lock: the call.
    pub(crate) place: Option<PlaceId>,
    /// Of a release: for how many milliseconds the lock is to stand from now on. None: it is deleted.
    pub(crate) stands_for: Option<NonZeroU64>,
}

/// Which client has set the key of a lock: decides whether a release is kept for a node that it cannot be queued for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyOrigin {
    /// Another client, or this one before the lock was handed over: the key may be on any node.
    Elsewhere,
    /// This client's attempt: a node that it has written nothing to has no key of it.
    Here,
}

impl ReleaseRequest<'_> {
    /// Which nodes need the release, and until when.
    pub(super) fn conditions(&self, now: Timestamp) -> ReleaseConditions {
        // A node's clock may be slower than this one's: by a fiftieth at most, twice the usual allowance.
        let key_ends = now.after(self.key_lasts + self.key_lasts / 50);
        let is_ours = self.attempt.origin == KeyOrigin::Here;
        ReleaseConditions { set_since: is_ours.then_some(self.attempt.t0.steady), key_ends }
    }
}
