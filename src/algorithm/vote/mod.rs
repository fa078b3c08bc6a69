//! Votes and their count: does a quorum agree?
//!
//! ```text
//!              every node:  undecided ──► granted | refused | absent | fault
//!
//!   grants ≥ q ───────────────────────────► Won
//!   grants + undecided < q
//!        a refusal, and a quorum can answer ► Held
//!        otherwise ────────────────────────► Unavailable
//!   neither ──────────────────────────────► Pending
//! ```
//!
//! A verdict is given as soon as it is certain, so no caller waits for a straggler (rule 2.5). Only
//! the first vote of a node counts: a later one belongs to the bookkeeping of its connection, not
//! to the tally.

use super::node::{MAX_NODES, NodeId, NodeSet};
use crate::fault::Fault;

/// What one node replied in one round, if the reply was usable, or its failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Yes: our key was set (acquire), deleted (release) or lives on (extension).
    Granted,
    /// A definite no: the key is held (acquire) or was not ours (release, extension).
    Refused,
    /// A definite no to an acquire of several keys, which leaves something to undo: one is held,
    /// and others were set.
    Partial,
    /// A definite no to an extension: there is no such key, as after a restart without data. It may
    /// be set again.
    Absent,
    /// No usable answer.
    Fault(Fault),
}

/// What an attempt to take the lock has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The undecided nodes still matter.
    Pending,
    /// A quorum granted.
    Won,
    /// A quorum is not possible any more, and another client holds keys.
    Held,
    /// A quorum is not possible any more, because too few nodes can answer.
    Unavailable,
}

/// What a release has come to (rule 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseVerdict {
    /// The undecided nodes still matter.
    Pending,
    /// A quorum deleted our key.
    Released,
    /// So many nodes refused that a quorum cannot have held our token.
    Expired,
    /// Neither is known: a node that never had the key refuses as well, and one that hangs may hold
    /// it.
    Unavailable,
}

/// What an extension has come to (rule 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionVerdict {
    /// The undecided nodes still matter.
    Pending,
    /// Our key lives on at a quorum.
    Extended,
    /// Neither is known. A node that did not answer may hold the key, so that another try may win.
    Unavailable,
    /// So many nodes refused that a quorum cannot hold our token.
    Lost,
}

/// The votes of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    nodes: u8,
    granted: NodeSet,
    refused: NodeSet,
    /// The nodes among them that have set some of several keys.
    partial: NodeSet,
    absent: NodeSet,
    faulted: NodeSet,
    /// The nodes among them whose faults time does not cure.
    permanent: NodeSet,
}

impl Tally {
    /// An empty tally over `nodes` nodes.
    pub fn new(nodes: usize) -> Tally {
        debug_assert!((1..=MAX_NODES).contains(&nodes));
        Tally {
            nodes: nodes as u8,
            granted: NodeSet::EMPTY,
            refused: NodeSet::EMPTY,
            partial: NodeSet::EMPTY,
            absent: NodeSet::EMPTY,
            faulted: NodeSet::EMPTY,
            permanent: NodeSet::EMPTY,
        }
    }

    /// Counts a node's vote; false, and nothing changes, when the node has voted before.
    pub fn record(&mut self, node: NodeId, vote: Vote) -> bool {
        if self.voted().contains(node) {
            return false;
        }
        match vote {
            Vote::Granted => self.granted.insert(node),
            Vote::Refused => self.refused.insert(node),
            Vote::Partial => self.refused.insert(node) && self.partial.insert(node),
            Vote::Absent => self.absent.insert(node),
            Vote::Fault(fault) => {
                if fault.cause.is_permanent() {
                    self.permanent.insert(node);
                }
                self.faulted.insert(node)
            }
        }
    }

    /// The node granted on another connection to it. That counts in place of its own vote, which is
    /// a refusal when the request on this connection ran second.
    pub fn granted_at(&mut self, node: NodeId) {
        for other in [
            &mut self.refused,
            &mut self.absent,
            &mut self.faulted,
            &mut self.permanent,
        ] {
            other.set(node, false);
        }
        self.granted.insert(node);
    }

    /// Whether a quorum may still grant.
    pub fn can_be_won(&self) -> bool {
        self.granted.len() + self.undecided().len() >= self.quorum()
    }

    /// The node's grant is as if it had not come. False where it has not granted.
    pub fn take_back(&mut self, node: NodeId) -> bool {
        let has_granted = self.granted.contains(node);
        self.granted.set(node, false);
        has_granted
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        usize::from(self.nodes)
    }

    /// The smallest majority: `N / 2 + 1`.
    pub fn quorum(&self) -> usize {
        self.nodes() / 2 + 1
    }

    /// The nodes that granted.
    pub fn granted(&self) -> NodeSet {
        self.granted
    }

    /// The nodes that definitely refused.
    pub fn refused(&self) -> NodeSet {
        self.refused
    }

    /// The nodes that definitely refused, and have set nothing.
    pub fn untouched(&self) -> NodeSet {
        self.refused.without(self.partial)
    }

    /// The nodes that have no such key: to be repaired where the extension is won (rule 4.6).
    pub fn absent(&self) -> NodeSet {
        self.absent
    }

    /// The nodes without a usable answer.
    pub fn faulted(&self) -> NodeSet {
        self.faulted
    }

    /// The nodes that have not voted yet.
    pub fn undecided(&self) -> NodeSet {
        NodeSet::first(self.nodes()).without(self.voted())
    }

    /// Whether so many nodes have faults that time does not cure that no quorum is possible.
    pub fn is_quorum_impossible(&self) -> bool {
        self.nodes() - self.permanent.len() < self.quorum()
    }

    /// The verdict, read as an attempt to take the lock.
    pub fn acquisition(&self) -> Outcome {
        if self.granted.len() >= self.quorum() {
            Outcome::Won
        } else if self.can_be_won() {
            Outcome::Pending
        } else if !self.denied().is_empty() && self.nodes() - self.faulted.len() >= self.quorum() {
            Outcome::Held
        } else {
            Outcome::Unavailable
        }
    }

    /// The verdict, read as a release. More refusals than `N − q` are needed to call a lock
    /// expired: fewer may all come from nodes that never had its key, because they were down at the
    /// acquire.
    pub fn release(&self) -> ReleaseVerdict {
        let undecided = self.nodes() - self.voted().len();
        let may_hold = self.nodes() - self.denied().len();
        if self.granted.len() >= self.quorum() {
            ReleaseVerdict::Released
        } else if may_hold < self.quorum() {
            ReleaseVerdict::Expired
        } else if self.granted.len() + undecided >= self.quorum()
            || may_hold - undecided < self.quorum()
        {
            ReleaseVerdict::Pending
        } else {
            ReleaseVerdict::Unavailable
        }
    }

    /// The verdict, read as an extension: a yes and a definite no count as they do in a release.
    pub fn extension(&self) -> ExtensionVerdict {
        match self.release() {
            ReleaseVerdict::Pending => ExtensionVerdict::Pending,
            ReleaseVerdict::Released => ExtensionVerdict::Extended,
            ReleaseVerdict::Expired => ExtensionVerdict::Lost,
            ReleaseVerdict::Unavailable => ExtensionVerdict::Unavailable,
        }
    }

    /// The nodes that definitely refused.
    fn denied(&self) -> NodeSet {
        self.refused.union(self.absent)
    }

    fn voted(&self) -> NodeSet {
        self.granted.union(self.denied()).union(self.faulted)
    }
}

#[cfg(test)]
mod tests;
