//! What the owner of a round takes out of it.

use super::refusals::Refusals;
use crate::algorithm::fence::Agreement;
use crate::algorithm::inspection::{Inspection, InspectionVerdict};
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::queue::QueueRound;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::{ExtensionVerdict, Outcome, Tally};
use crate::fault::Fault;

/// What its owner takes out of a round.
#[derive(Debug)]
pub(crate) struct RoundResult {
    /// The votes, as far as they mattered.
    pub(crate) tally: Tally,
    /// The nodes that the command was queued for, and may have reached.
    pub(crate) reached: NodeSet,
    /// Each failed node's fault. None if a quorum granted, but for a check: then they are of no
    /// interest.
    pub(crate) faults: Vec<(NodeId, Fault)>,
    /// What the nodes that refused have replied about the key.
    pub(super) refusals: Refusals,
    /// What the fences of a fenced attempt come to. None without a grant.
    pub(crate) agreement: Option<Agreement>,
    /// What the nodes replied about the queue that did not grant an attempt that was made in turn.
    pub(crate) queue: Option<Box<QueueRound>>,
    /// What the nodes have answered to a question that changes nothing.
    pub(crate) inquiry: Option<Inspection>,
}

impl RoundResult {
    /// Whether an extension was won.
    pub(crate) fn is_extended(&self) -> bool {
        self.tally.extension() == ExtensionVerdict::Extended
    }

    /// Whether an extension found that a quorum cannot hold the key any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.tally.extension() == ExtensionVerdict::Lost
    }

    /// Which holder has the lock that the nodes were asked about.
    pub(crate) fn holding(&self) -> InspectionVerdict {
        let verdict = |inspection: &Inspection| inspection.verdict(&self.tally);
        self.inquiry
            .as_ref()
            .map_or(InspectionVerdict::Unknown, verdict)
    }

    /// When so many keys have ended by themselves that a quorum may be acquired, as far as nodes
    /// have replied; otherwise never.
    pub(crate) fn free_at(&self) -> Timestamp {
        self.refusals.free_at(&self.tally)
    }

    /// For a set: the first key for which no quorum granted, or else the one that most nodes
    /// refused for.
    pub(crate) fn refused_key(&self) -> Option<usize> {
        self.refusals.key(&self.tally)
    }

    /// The nodes that refused for a key without expiry, as far as they have replied.
    pub(crate) fn endless(&self) -> NodeSet {
        self.refusals.endless()
    }

    /// Whether a quorum granted.
    pub(crate) fn is_won(&self) -> bool {
        self.tally.acquisition() == Outcome::Won
    }
}
