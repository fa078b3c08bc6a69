//! Which of several locks is free: a question to all nodes, decided by a quorum. A permit's slots are such locks.
//!
//! ```text
//!    a slot is free on q nodes                       it is worth an attempt
//!    no slot can be free on q nodes any more         all are held; when the first of them ends is known
//! ```
//!
//! In the tally, a node that has said how long each slot lasts has granted. The answer decides nothing but which lock
//! is tried next: only an attempt acquires one.

use super::node::{NodeId, NodeSet};
use super::time::Timestamp;
use super::vote::Tally;

/// The answers of all nodes.
#[derive(Clone, Debug, Default)]
pub struct SlotSurvey {
    /// When the key of each slot ends: at [`FREE`](SlotSurvey::FREE) if there is none, never if it has no expiry.
    answers: Vec<(NodeId, Vec<Timestamp>)>,
}

impl SlotSurvey {
    /// The end of a key that is not there.
    pub const FREE: Timestamp = Timestamp::ORIGIN;

    /// A node has said when the key of each slot ends. Only its first answer counts.
    pub fn record(&mut self, node: NodeId, ends: Vec<Timestamp>) {
        if self.answers.iter().all(|&(other, _)| other != node) {
            self.answers.push((node, ends));
        }
    }

    /// Whether further answers change nothing of interest.
    pub fn is_decided(&self, tally: &Tally) -> bool {
        let most = (0..self.slots()).map(|slot| self.free_on(slot, tally)).max().unwrap_or(0);
        most >= tally.quorum() || most + tally.undecided().len() < tally.quorum()
    }

    /// The slot that is free on most nodes, and on a quorum at least, of those that `is_open`. Of several, the first
    /// one from `start` on.
    pub fn free_slot(&self, tally: &Tally, start: usize, is_open: impl Fn(usize) -> bool) -> Option<usize> {
        let slots = self.slots();
        let from_start = (0..slots).map(|slot| (start + slot) % slots);
        let open = from_start.filter(|&slot| self.free_on(slot, tally) >= tally.quorum() && is_open(slot));
        // Of several that are the greatest, `max_by_key` gives the last.
        open.rev().max_by_key(|&slot| self.free_on(slot, tally))
    }

    /// When the first of the slots that are held may be acquired, as far as the nodes have said; otherwise never.
    pub fn free_at(&self, tally: &Tally) -> Timestamp {
        let end = |slot: usize| {
            let mut ends: Vec<Timestamp> = self.counted(tally).map(|ends| ends[slot]).collect();
            ends.sort_unstable();
            let last = tally.quorum().min(ends.len()).checked_sub(1)?;
            Some(ends[last]).filter(|&end| end > SlotSurvey::FREE)
        };
        (0..self.slots()).filter_map(end).min().unwrap_or(Timestamp::NEVER)
    }

    /// The nodes on which no slot has an expiry.
    pub fn endless(&self, tally: &Tally) -> NodeSet {
        let is_endless = |ends: &[Timestamp]| ends.iter().all(|&end| end == Timestamp::NEVER);
        let counted = self.answers.iter().filter(|(node, _)| tally.granted().contains(*node));
        counted.filter(|(_, ends)| is_endless(ends)).map(|&(node, _)| node).collect()
    }

    /// The slots whose keys have no expiry on a quorum, each with the nodes that have said so.
    pub fn endless_slots(&self, tally: &Tally) -> impl Iterator<Item = (usize, NodeSet)> {
        let nodes = |slot: usize| -> NodeSet {
            let counted = self.answers.iter().filter(|(node, _)| tally.granted().contains(*node));
            counted.filter(|(_, ends)| ends[slot] == Timestamp::NEVER).map(|&(node, _)| node).collect()
        };
        let slots = (0..self.slots()).map(move |slot| (slot, nodes(slot)));
        slots.filter(|(_, nodes)| nodes.len() >= tally.quorum())
    }

    /// On how many nodes a slot is free.
    fn free_on(&self, slot: usize, tally: &Tally) -> usize {
        self.counted(tally).filter(|ends| ends[slot] == SlotSurvey::FREE).count()
    }

    /// An answer that does not count, for whatever reason, is a fault in the tally.
    fn counted<'s>(&'s self, tally: &'s Tally) -> impl Iterator<Item = &'s [Timestamp]> {
        self.answers.iter().filter(|(node, _)| tally.granted().contains(*node)).map(|(_, ends)| &ends[..])
    }

    fn slots(&self) -> usize {
        self.answers.first().map_or(0, |(_, ends)| ends.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fault::{Cause, Fault, Phase};
    use super::super::vote::Vote;
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ORIGIN.after(Duration::from_secs(seconds))
    }

    /// A word for each node, with a letter for each slot: `-` free, a digit its end, `e` without expiry; or `x` for a
    /// fault, `.` for no answer yet.
    fn survey(nodes: &str) -> (SlotSurvey, Tally) {
        let words: Vec<&str> = nodes.split(' ').collect();
        let (mut survey, mut tally) = (SlotSurvey::default(), Tally::new(words.len()));
        for (index, word) in words.into_iter().enumerate() {
            let end = |letter: char| match letter {
                '-' => SlotSurvey::FREE,
                'e' => Timestamp::NEVER,
                digit => at(u64::from(digit.to_digit(10).unwrap())),
            };
            let node = NodeId::new(index);
            let vote = match word {
                "." => continue,
                "x" => Vote::Fault(Fault::new(Phase::Reply, Cause::TimedOut)),
                slots => {
                    survey.record(node, slots.chars().map(end).collect());
                    Vote::Granted
                }
            };
            tally.record(node, vote);
        }
        (survey, tally)
    }

    #[test]
    fn a_slot_that_is_free_on_most_nodes_is_tried() {
        for (nodes, is_decided, free) in [
            (". . .", false, None),
            ("-1- . .", false, None),
            ("-1- 11- .", true, Some(2)),
            ("-1- -1- 1--", true, Some(2)),
            ("111 111 .", true, None),
            ("111 -11 .", false, None),
            ("111 -11 x", true, None),
            ("-11 -11 x", true, Some(0)),
            ("x x .", true, None),
            ("x x x", true, None),
            ("1- -1 1- -- --", true, Some(1)),
            ("11 11 11 . .", true, None),
            ("-1 11 11 . .", false, None),
        ] {
            let (survey, tally) = survey(nodes);
            assert_eq!(survey.is_decided(&tally), is_decided, "{nodes}");
            assert_eq!(survey.free_slot(&tally, 0, |_| true), free, "{nodes}");
        }
    }

    #[test]
    fn of_slots_that_are_as_free_the_first_open_one_from_the_start_is_tried() {
        let (survey, tally) = survey("1-- 1-- 1-1");
        let free = |start, taken| survey.free_slot(&tally, start, |slot| slot != taken);
        assert_eq!([free(0, 9), free(2, 9), free(0, 1), free(2, 1)], [Some(1), Some(1), Some(2), Some(2)]);
        let (survey, tally) = super::tests::survey("-- -- --");
        let starts = [0, 1, 2].map(|start| survey.free_slot(&tally, start, |_| true));
        assert_eq!(starts, [Some(0), Some(1), Some(0)]);
    }

    #[test]
    fn the_first_slot_that_ends_on_a_quorum_ends_the_wait() {
        for (nodes, seconds) in [("19 29 39", 2), ("93 94 .", 4), ("9 x x", 9), ("-5 -6 -7", 6)] {
            let (survey, tally) = survey(nodes);
            assert_eq!(survey.free_at(&tally), at(seconds), "{nodes}");
        }
        let (survey, tally) = survey("e e e");
        assert_eq!((survey.free_at(&tally), survey.endless(&tally).len()), (Timestamp::NEVER, 3));
        let (survey, tally) = super::tests::survey("e9 e9 ee");
        assert_eq!((survey.free_at(&tally), survey.endless(&tally).len()), (at(9), 1));
    }
}
