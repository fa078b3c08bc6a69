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
//! A verdict is given as soon as it is certain, so nobody waits for a straggler (SPEC §2.5). Only the first vote of a node
//! counts: a later one belongs to the bookkeeping of its connection, not to the tally.

use super::fault::Fault;
use super::node::{MAX_NODES, NodeId, NodeSet};

/// What one node said in one round, when it said something usable or failed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Yes: our key was set (acquire), deleted (release) or lives on (extension).
    Granted,
    /// A definite no: the key is held (acquire) or was not ours (release, extension).
    Refused,
    /// A definite no to an extension: there is no such key, as after a restart without data. It may be set again.
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

/// What an extension has come to (SPEC §4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionOutcome {
    /// The undecided nodes still matter.
    Pending,
    /// Our key lives on at a quorum.
    Extended,
    /// Fewer than a quorum can answer.
    Unavailable,
    /// A quorum answered, and our key lives on at less than a quorum.
    Lost,
}

/// The votes of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    nodes: u8,
    granted: NodeSet,
    refused: NodeSet,
    absent: NodeSet,
    faulted: NodeSet,
}

impl Tally {
    /// An empty tally over `nodes` nodes.
    pub fn new(nodes: usize) -> Tally {
        debug_assert!((1..=MAX_NODES).contains(&nodes));
        Tally {
            nodes: nodes as u8,
            granted: NodeSet::EMPTY,
            refused: NodeSet::EMPTY,
            absent: NodeSet::EMPTY,
            faulted: NodeSet::EMPTY,
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
            Vote::Absent => self.absent.insert(node),
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

    /// The nodes that have no such key: to be repaired where the extension is won (SPEC §4.6).
    pub fn absent(&self) -> NodeSet {
        self.absent
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
        } else if !self.denied().is_empty() && self.nodes() - self.faulted.len() >= self.quorum() {
            Outcome::Held
        } else {
            Outcome::Unavailable
        }
    }

    /// The verdict, read as a release.
    pub fn release(&self) -> ReleaseOutcome {
        let deleted = self.granted.len();
        let answered = deleted + self.denied().len();
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

    /// The verdict, read as an extension: a yes and a definite no count as they do in a release.
    pub fn extension(&self) -> ExtensionOutcome {
        match self.release() {
            ReleaseOutcome::Pending => ExtensionOutcome::Pending,
            ReleaseOutcome::Released => ExtensionOutcome::Extended,
            ReleaseOutcome::Expired => ExtensionOutcome::Lost,
            ReleaseOutcome::Unavailable => ExtensionOutcome::Unavailable,
        }
    }

    /// Whether an extension that was not won may be won by trying again: a node that did not answer may hold our key, so
    /// that one restarted node and one slow one do not cost a lock that a quorum holds.
    pub fn may_be_extended(&self) -> bool {
        self.nodes() - self.denied().len() >= self.quorum()
    }

    /// The nodes that gave a definite no.
    fn denied(&self) -> NodeSet {
        self.refused.union(self.absent)
    }

    fn voted(&self) -> NodeSet {
        self.granted.union(self.denied()).union(self.faulted)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fault::{Cause, Phase};
    use super::*;
    use proptest::prelude::*;

    /// `g`ranted, `r`efused, `a`bsent, fault `x`, undecided `_`: one letter a node.
    fn tally(row: &str) -> Tally {
        let mut tally = Tally::new(row.len());
        for (index, letter) in row.chars().enumerate() {
            let vote = match letter {
                'g' => Vote::Granted,
                'r' => Vote::Refused,
                'a' => Vote::Absent,
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
    fn extensions_are_lost_only_where_a_quorum_says_so() {
        use ExtensionOutcome::*;
        let table = [
            ("_", Pending),
            ("g", Extended),
            ("r", Lost),
            ("a", Lost),
            ("x", Unavailable),
            ("gg", Extended),
            ("ga", Lost),
            ("g_", Pending),
            ("a_", Pending),
            ("x_", Unavailable),
            ("gg_", Extended),
            ("gga", Extended),
            ("ggr", Extended),
            ("ggx", Extended),
            ("ga_", Pending),
            ("gx_", Pending),
            ("ra_", Lost),
            ("aa_", Lost),
            ("gra", Lost),
            ("gax", Lost),
            ("ax_", Pending),
            ("axx", Unavailable),
            ("gxx", Unavailable),
            ("xx_", Unavailable),
            ("ggg_", Extended),
            ("ggaa", Lost),
            ("ggxx", Unavailable),
            ("ggaxr", Lost),
            ("ggg__", Extended),
            ("ggaa_", Pending),
            ("ggxx_", Pending),
            ("raa__", Lost),
            ("gaa__", Pending),
            ("gaar_", Lost),
            ("ra___", Pending),
            ("raxx_", Pending),
            ("raxxx", Unavailable),
            ("ggxxx", Unavailable),
            ("xxx__", Unavailable),
            ("gggaaa", Lost),
            ("ggg___", Pending),
            ("gggg__", Extended),
            ("aaa___", Pending),
            ("aaaa__", Lost),
            ("gggxxx", Unavailable),
        ];
        for (row, outcome) in table {
            assert_eq!(tally(row).extension(), outcome, "{row}");
        }
        assert_eq!(tally("gar_a").absent(), [1, 4].map(NodeId::new).into_iter().collect());
    }

    #[test]
    fn a_lost_key_may_be_extended_while_the_silent_nodes_may_hold_it() {
        let table = [
            ("r", false),
            ("x", true),
            ("gax", true),
            ("gra", false),
            ("aax", false),
            ("gxx", true),
            ("ga", false),
            ("ggaxr", true),
            ("graxr", false),
            ("gga", true),
        ];
        for (row, may) in table {
            assert_eq!(tally(row).may_be_extended(), may, "{row}");
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
        fn verdicts_are_final(row in "[grax_]{1,9}", rest in "[grax]{9}") {
            let full: String = row.chars().zip(rest.chars()).map(|(vote, later)| if vote == '_' { later } else { vote }).collect();
            let (early, late) = (tally(&row), tally(&full));
            prop_assert_ne!(late.acquisition(), Outcome::Pending);
            prop_assert_ne!(late.release(), ReleaseOutcome::Pending);
            prop_assert_ne!(late.extension(), ExtensionOutcome::Pending);
            if early.acquisition() != Outcome::Pending {
                prop_assert_eq!(early.acquisition() == Outcome::Won, late.acquisition() == Outcome::Won);
            }
            if early.release() != ReleaseOutcome::Pending {
                prop_assert_eq!(early.release(), late.release());
            }
            if early.extension() != ExtensionOutcome::Pending {
                prop_assert_eq!(early.extension(), late.extension());
            }
            prop_assert!(early.may_be_extended() || !late.may_be_extended());
        }

        /// A verdict is given as early as it is certain: while it is not, the undecided nodes can still turn it.
        #[test]
        fn extensions_are_pending_no_longer_than_they_must(row in "[grax_]{1,9}") {
            let ends: Vec<_> = ["g", "a", "x"].map(|vote| tally(&row.replace('_', vote)).extension()).into();
            let certain = ends.iter().all(|end| *end == ends[0]);
            prop_assert_eq!(tally(&row).extension() != ExtensionOutcome::Pending, certain, "{:?}", ends);
        }

        /// No key is absent from the counts of an attempt or a release: it is one more that is not ours.
        #[test]
        fn elsewhere_an_absent_key_is_a_refusal(row in "[grax_]{1,9}") {
            let (absent, refused) = (tally(&row), tally(&row.replace('a', "r")));
            prop_assert_eq!(absent.acquisition(), refused.acquisition());
            prop_assert_eq!(absent.release(), refused.release());
            prop_assert_eq!(absent.undecided(), refused.undecided());
        }
    }
}
