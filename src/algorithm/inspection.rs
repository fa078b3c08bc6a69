//! Which holder has a lock: a question to all nodes, decided by a quorum. It is never part of
//! taking the lock.
//!
//! ```text
//!    q nodes have one value under the key                       held
//!    no value can be on q nodes, whatever the others have       free
//!    neither is possible any more                               unknown
//! ```
//!
//! A value on fewer nodes than a quorum is a lost attempt, or a lock that ends: no client may rely
//! on it. A node that failed may have any value.

use super::holder::HolderTag;
use super::label::HolderLabel;
use super::node::{NodeId, NodeSet, ascending};
use super::time::Timestamp;
use super::vote::Tally;
use std::time::Duration;

/// What the key of a lock holds on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// The tag of the value that signs the key.
    pub tag: HolderTag,
    /// What the value contains beside the token.
    pub label: HolderLabel,
    /// How long the key or the lock lasts there; none, if it has no expiry.
    pub left: Option<Duration>,
}

/// The answers of all nodes. In its tally, a node with a value has granted, and one without is
/// absent.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// With the end; never, if it has no expiry.
    found: Vec<(NodeId, Occupant, Timestamp)>,
    waiting: u64,
}

/// What the answers come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InspectionVerdict {
    /// No client has a quorum.
    Free,
    /// One value is on a quorum.
    Held(Holding),
    /// Further answers decide.
    Pending,
    /// Too few nodes have answered.
    Unknown,
}

/// A lock that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The label of the holder.
    pub label: HolderLabel,
    /// Until when a quorum of the nodes has it.
    pub end: Timestamp,
    /// The nodes that have it, as far as they have answered.
    pub nodes: NodeSet,
    /// How many calls wait for it, by the node that has most of those that have answered.
    pub waiting: u64,
}

impl Inspection {
    /// A node has this under the key at present. Only its first answer counts.
    pub fn record(&mut self, node: NodeId, occupant: Occupant, now: Timestamp) {
        if self.found.iter().all(|(other, ..)| *other != node) {
            let left = occupant.left;
            let end = left.map_or(Timestamp::NEVER, |left| now.after(left));
            self.found.push((node, occupant, end));
        }
    }

    /// So many calls wait for the lock on a node.
    pub fn record_waiting(&mut self, count: u64) {
        self.waiting = self.waiting.max(count);
    }

    /// Whether further answers change nothing.
    pub fn is_decided(&self, tally: &Tally) -> bool {
        self.verdict(tally) != InspectionVerdict::Pending
    }

    /// What the answers come to, counted by this tally.
    pub fn verdict(&self, tally: &Tally) -> InspectionVerdict {
        // A value that does not count, for whatever reason, is a fault in the tally.
        let counted = || {
            self.found
                .iter()
                .filter(|(node, ..)| tally.granted().contains(*node))
        };
        let having = |tag| counted().filter(move |(_, occupant, _)| occupant.tag == tag);
        let most = counted()
            .map(|(_, occupant, _)| occupant)
            .max_by_key(|occupant| having(occupant.tag).count());
        let count = most.map_or(0, |occupant| having(occupant.tag).count());
        let quorum = tally.quorum();
        if let Some(occupant) = most.filter(|_| count >= quorum) {
            let ends = ascending(having(occupant.tag).map(|(.., end)| *end));
            let nodes = having(occupant.tag).map(|(node, ..)| *node).collect();
            let label = occupant.label.clone();
            // The latest time at which a quorum has it.
            let end = ends[count - quorum];
            let waiting = self.waiting;
            return InspectionVerdict::Held(Holding {
                label,
                end,
                nodes,
                waiting,
            });
        }
        let undecided = tally.undecided().len();
        let faulted = tally.faulted().len();
        match () {
            () if count + undecided + faulted < quorum => InspectionVerdict::Free,
            () if count + undecided >= quorum || count + faulted < quorum => {
                InspectionVerdict::Pending
            }
            () => InspectionVerdict::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::vote::Vote;
    use super::*;
    use crate::fault::{Cause, Fault, Phase};

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ORIGIN.after(Duration::from_secs(seconds))
    }

    /// A letter for each node: its value, which ends at 10 s on the first node and a second later
    /// on each next one; `-` nothing, `x` a fault, `.` no answer yet.
    fn verdict(nodes: &str) -> InspectionVerdict {
        let mut inspection = Inspection::default();
        let mut tally = Tally::new(nodes.len());
        for (index, letter) in nodes.chars().enumerate() {
            let node = NodeId::new(index);
            let vote = match letter {
                '.' => continue,
                '-' => Vote::Absent,
                'x' => Vote::Fault(Fault::new(Phase::Reply, Cause::TimedOut)),
                value => {
                    let text = value.to_string();
                    let label = HolderLabel::new(text.as_bytes()).unwrap();
                    let occupant = Occupant {
                        tag: HolderTag::of(text.as_bytes()),
                        label,
                        left: Some(Duration::from_secs(10)),
                    };
                    inspection.record(node, occupant, at(index as u64));
                    Vote::Granted
                }
            };
            tally.record(node, vote);
        }
        let verdict = inspection.verdict(&tally);
        let is_decided = verdict != InspectionVerdict::Pending;
        assert_eq!(inspection.is_decided(&tally), is_decided);
        verdict
    }

    #[test]
    fn a_quorum_decides_who_holds_a_lock() {
        use InspectionVerdict::{Free, Pending, Unknown};
        for (expected, rows) in [
            (Free, "- --- --. --x a-- ab- abc aabb- aa---"),
            (Unknown, "x -xx a-x abx aabbx aa--x xxx.."),
            (Pending, ". -.. -x. a-. ab. aabb. aab.. aaxx."),
        ] {
            for nodes in rows.split(' ') {
                assert_eq!(verdict(nodes), expected, "{nodes}");
            }
        }
        let table = [
            ("a", "a", 10, 1),
            ("aa-", "a", 10, 2),
            ("aa.", "a", 10, 2),
            ("bbb", "b", 11, 3),
            ("xbbxb", "b", 11, 3),
        ];
        for (nodes, label, end, count) in table {
            let InspectionVerdict::Held(holding) = verdict(nodes) else {
                panic!("{nodes}")
            };
            assert_eq!(
                (holding.label.as_str(), holding.end, holding.nodes.len()),
                (Some(label), at(end), count),
                "{nodes}"
            );
        }
    }

    #[test]
    fn the_greatest_number_of_a_node_waits() {
        let mut inspection = Inspection::default();
        let mut tally = Tally::new(3);
        for (index, waiting) in [2, 7, 0].into_iter().enumerate() {
            let occupant = Occupant {
                tag: HolderTag::of(b"a"),
                label: HolderLabel::NONE,
                left: None,
            };
            inspection.record(NodeId::new(index), occupant, at(0));
            inspection.record_waiting(waiting);
            tally.record(NodeId::new(index), Vote::Granted);
        }
        let InspectionVerdict::Held(holding) = inspection.verdict(&tally) else {
            panic!()
        };
        assert_eq!(holding.waiting, 7);
    }

    #[test]
    fn a_value_that_does_not_count_is_no_value() {
        let mut inspection = Inspection::default();
        let mut tally = Tally::new(1);
        let occupant = Occupant {
            tag: HolderTag::of(b"a"),
            label: HolderLabel::NONE,
            left: None,
        };
        inspection.record(NodeId::new(0), occupant, at(0));
        tally.record(
            NodeId::new(0),
            Vote::Fault(Fault::new(Phase::Handshake, Cause::NotMaster)),
        );
        assert_eq!(inspection.verdict(&tally), InspectionVerdict::Unknown);
    }
}
