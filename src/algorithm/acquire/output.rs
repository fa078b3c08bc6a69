//! What a call has to do next, and how it ended. The steps are numbered at the top of
//! [`acquire`](super).

use crate::algorithm::fence::Agreement;
use crate::algorithm::lease::Validity;
use crate::algorithm::node::NodeSet;
use crate::algorithm::time::Timestamp;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Make an attempt (step 2).
    Attempt,
    /// Raise the fence on the nodes that are behind (step 3).
    Raise(Agreement),
    /// Release what the lost attempt may have set on these nodes (step 4).
    Undo(NodeSet),
    /// Have these nodes store the ticket (step 5).
    Store(NodeSet),
    /// Wait in the queues of the lock (step 6).
    Enqueue,
    /// Sleep until then at the latest (step 7).
    Wait(Timestamp),
    /// Stop (step 8).
    Done(Verdict),
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The lock is won, and valid for so long.
    Acquired(Validity),
    /// The wait was cancelled.
    Cancelled,
    /// Another client holds it.
    Held,
    /// It is held by a key that never expires.
    NoExpiry,
    /// A quorum granted, but only after the lease had ended.
    TooLate,
    /// Too few nodes can answer.
    Unavailable,
}
