//! Votes and their count: does a quorum agree?
//!
//! ```text
//!              every node:  undecided ──► granted | refused | fault
//!
//!   grants ≥ q ───────────────────────────► Won
//!   grants + undecided < q
//!        a refusal, and a quorum can answer ► Held
//!        otherwise ────────────────────────► Unavailable
//!   neither ──────────────────────────────► Pending
//! ```
//!
//! A verdict is given as soon as it is certain, so nobody waits for a straggler (SPEC §2.5). Only the first vote of a node
//! counts: a later one belongs to the bookkeeping of its connection, not to the tally.

use super::fault::Fault;
use super::node::{MAX_NODES, NodeId, NodeSet};

/// What one node said in one round, when it said something usable or failed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Yes: our key was set (acquire) or deleted (release).
    Granted,
    /// A definite no: the key is held (acquire) or was not ours (release).
    Refused,
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
    /// A quorum cannot be had any more, and somebody else holds keys.
    Held,
    /// A quorum cannot be had any more, because too few nodes can answer.
    Unavailable,
}

/// What a release has come to (SPEC §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// The undecided nodes still matter.
    Pending,
    /// A quorum deleted our key.
    Released,
    /// A quorum answered, and our key was no longer on a quorum.
    Expired,
    /// Fewer than a quorum can answer.
    Unavailable,
}

/// The votes of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    nodes: u8,
    granted: NodeSet,
    refused: NodeSet,
    faulted: NodeSet,
}

impl Tally {
    /// An empty tally over `nodes` nodes.
    pub fn new(nodes: usize) -> Tally {
        debug_assert!((1..=MAX_NODES).contains(&nodes));
        Tally { nodes: nodes as u8, granted: NodeSet::EMPTY, refused: NodeSet::EMPTY, faulted: NodeSet::EMPTY }
    }

    /// Counts a node's vote; false, and nothing changes, when the node has voted before.
    pub fn record(&mut self, node: NodeId, vote: Vote) -> bool {
        if self.voted().contains(node) {
            return false;
        }
        match vote {
            Vote::Granted => self.granted.insert(node),
            Vote::Refused => self.refused.insert(node),
            Vote::Fault(_) => self.faulted.insert(node),
        }
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

    /// The nodes that gave no usable answer.
    pub fn faulted(&self) -> NodeSet {
        self.faulted
    }

    /// The nodes that have not voted yet.
    pub fn undecided(&self) -> NodeSet {
        NodeSet::first(self.nodes()).without(self.voted())
    }

    /// The verdict, read as an attempt to take the lock.
    pub fn acquisition(&self) -> Outcome {
        let granted = self.granted.len();
        let undecided = self.nodes() - self.voted().len();
        if granted >= self.quorum() {
            Outcome::Won
        } else if granted + undecided >= self.quorum() {
            Outcome::Pending
        } else if !self.refused.is_empty() && self.nodes() - self.faulted.len() >= self.quorum() {
            Outcome::Held
        } else {
            Outcome::Unavailable
        }
    }

    /// The verdict, read as a release.
    pub fn release(&self) -> ReleaseOutcome {
        let deleted = self.granted.len();
        let answered = deleted + self.refused.len();
        let undecided = self.nodes() - self.voted().len();
        if deleted >= self.quorum() {
            ReleaseOutcome::Released
        } else if answered + undecided < self.quorum() {
            ReleaseOutcome::Unavailable
        } else if answered >= self.quorum() && deleted + undecided < self.quorum() {
            ReleaseOutcome::Expired
        } else {
            ReleaseOutcome::Pending
        }
    }

    fn voted(&self) -> NodeSet {
        self.granted.union(self.refused).union(self.faulted)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fault::{Cause, Phase};
    use super::*;
    use proptest::prelude::*;

    /// `g`ranted, `r`efused, fault `x`, undecided `_`: one letter a node.
    fn tally(row: &str) -> Tally {
        let mut tally = Tally::new(row.len());
        for (index, letter) in row.chars().enumerate() {
            let vote = match letter {
                'g' => Vote::Granted,
                'r' => Vote::Refused,
                'x' => Vote::Fault(Fault::new(Phase::Reply, Cause::TimedOut)),
                _ => continue,
            };
            assert!(tally.record(NodeId::new(index), vote));
        }
        tally
    }

    #[test]
    fn acquisitions_are_decided_as_soon_as_they_are_certain() {
        use Outcome::*;
        let table = [
            ("_", Pending),
            ("g", Won),
            ("r", Held),
            ("x", Unavailable),
            ("g_", Pending),
            ("gg", Won),
            ("gr", Held),
            ("r_", Held),
            ("x_", Unavailable),
            ("gx", Unavailable),
            ("g__", Pending),
            ("gg_", Won),
            ("ggr", Won),
            ("ggx", Won),
            ("gr_", Pending),
            ("grr", Held),
            ("rr_", Held),
            ("xx_", Unavailable),
            ("grx", Held),
            ("rx_", Held),
            ("rrx", Held),
            ("rxx", Unavailable),
            ("gxx", Unavailable),
            ("gg__", Pending),
            ("ggg_", Won),
            ("ggr_", Pending),
            ("ggrr", Held),
            ("rr__", Held),
            ("ggxx", Unavailable),
            ("rx__", Held),
            ("xx__", Unavailable),
            ("x___", Pending),
            ("ggxr_", Pending),
            ("ggg__", Won),
            ("gg___", Pending),
            ("ggxrr", Held),
            ("ggxxr", Held),
            ("ggxxx", Unavailable),
            ("rrr__", Held),
            ("rr___", Pending),
            ("rrx__", Held),
            ("xxx__", Unavailable),
            ("rxxx_", Unavailable),
            ("gggg__", Won),
            ("ggg___", Pending),
            ("gggrrr", Held),
            ("rrr___", Held),
            ("xxx___", Unavailable),
            ("gggxxx", Unavailable),
            ("rxx___", Held),
            ("xx____", Pending),
        ];
        for (row, outcome) in table {
            assert_eq!(tally(row).acquisition(), outcome, "{row}");
        }
    }

    #[test]
    fn releases_are_decided_at_a_quorum_of_answers() {
        use ReleaseOutcome::*;
        let table = [
            ("_", Pending),
            ("g", Released),
            ("r", Expired),
            ("x", Unavailable),
            ("gg", Released),
            ("gr", Expired),
            ("g_", Pending),
            ("r_", Pending),
            ("x_", Unavailable),
            ("gg_", Released),
            ("rr_", Expired),
            ("gr_", Pending),
            ("grx", Expired),
            ("gxx", Unavailable),
            ("xx_", Unavailable),
            ("ggg__", Released),
            ("rrr__", Expired),
            ("grr__", Pending),
            ("ggr__", Pending),
            ("ggrxx", Expired),
            ("grrr_", Expired),
            ("ggxxx", Unavailable),
            ("ggxx_", Pending),
            ("rrxx_", Pending),
            ("rr___", Pending),
        ];
        for (row, outcome) in table {
            assert_eq!(tally(row).release(), outcome, "{row}");
        }
    }

    #[test]
    fn a_quorum_is_the_smallest_majority() {
        let quorums: Vec<usize> = (1..=7).map(|nodes| Tally::new(nodes).quorum()).collect();
        assert_eq!(quorums, [1, 2, 2, 3, 3, 4, 4]);
    }

    #[test]
    fn only_the_first_vote_of_a_node_counts() {
        let mut tally = tally("x__");
        assert!(!tally.record(NodeId::new(0), Vote::Granted));
        assert!(tally.granted().is_empty());
        assert_eq!(tally.undecided().len(), 2);
    }

    proptest! {
        /// However the undecided nodes vote, a verdict once given stays, and "Held or Unavailable" never turns into "Won".
        #[test]
        fn verdicts_are_final(row in "[grx_]{1,9}", rest in "[grx]{9}") {
            let full: String = row.chars().zip(rest.chars()).map(|(vote, later)| if vote == '_' { later } else { vote }).collect();
            let (early, late) = (tally(&row), tally(&full));
            prop_assert_ne!(late.acquisition(), Outcome::Pending);
            prop_assert_ne!(late.release(), ReleaseOutcome::Pending);
            if early.acquisition() != Outcome::Pending {
                prop_assert_eq!(early.acquisition() == Outcome::Won, late.acquisition() == Outcome::Won);
            }
            if early.release() != ReleaseOutcome::Pending {
                prop_assert_eq!(early.release(), late.release());
            }
        }
    }
}
