//! What nodes replied about the keys that they refused for: until when, and which of a set.

use crate::algorithm::node::{NodeId, NodeSet, ascending};
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Tally;
use crate::protocol::lock_key::MOST_KEYS;

/// What a node has replied about the key that it refused for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The key has no expiry.
    Endless,
    /// For a set: a bit for each of its keys.
    Keys(u64),
    /// The key ends then.
    Until(Timestamp),
}

/// The refusals of a round, as far as the nodes have replied with details.
#[derive(Debug, Default)]
pub(super) struct Refusals(Vec<(NodeId, Refusal)>);

impl Refusals {
    pub(super) fn record(&mut self, node: NodeId, refusal: Refusal) {
        self.0.push((node, refusal));
    }

    /// A quorum may be acquired when that many nodes have no other client's key. A verdict may be
    /// there before so many have replied: the keys of one lock end together, so that what is known
    /// holds for the rest.
    pub(super) fn free_at(&self, tally: &Tally) -> Timestamp {
        let end = |&(_, refusal): &_| {
            if let Refusal::Until(end) = refusal {
                Some(end)
            } else {
                None
            }
        };
        let ends = ascending(self.0.iter().filter_map(end));
        let missing = tally.quorum().saturating_sub(tally.granted().len());
        let last = missing.min(ends.len()).checked_sub(1);
        last.map_or(Timestamp::NEVER, |last| ends[last])
    }

    /// The key of a set to wait for.
    pub(super) fn key(&self, tally: &Tally) -> Option<usize> {
        let keys = |&(_, refusal): &_| {
            if let Refusal::Keys(keys) = refusal {
                keys
            } else {
                0
            }
        };
        let any = self.0.iter().map(keys).fold(0, |any, keys| any | keys);
        let refused = |key: usize| {
            self.0
                .iter()
                .map(keys)
                .filter(|keys| keys & 1 << key != 0)
                .count()
        };
        let enough = tally.nodes() - tally.quorum() + 1;
        let end = MOST_KEYS - any.leading_zeros() as usize;
        // Of equals the last one is taken. One that no node has refused is none of them.
        (0..end).rev().max_by_key(|&key| refused(key).min(enough))
    }

    /// The nodes that refused for a key without expiry.
    pub(super) fn endless(&self) -> NodeSet {
        self.0
            .iter()
            .filter(|(_, refusal)| *refusal == Refusal::Endless)
            .map(|&(node, _)| node)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_waits_for_the_first_key_that_has_no_quorum() {
        let waits_for = |refusals: &[u64]| {
            let refusals = refusals
                .iter()
                .map(|&keys| (NodeId::new(0), Refusal::Keys(keys)));
            Refusals(refusals.collect()).key(&Tally::new(3))
        };
        assert_eq!(waits_for(&[]), None);
        assert_eq!(
            waits_for(&[0b110, 0b010]),
            Some(1),
            "two of three nodes have refused it"
        );
        assert_eq!(waits_for(&[0b111, 0b111, 0b111]), Some(0));
        assert_eq!(
            waits_for(&[0b001, 0b110, 0b110]),
            Some(1),
            "a quorum can be had of the first"
        );
        assert_eq!(waits_for(&[0b100, 0b010]), Some(1), "it is not known which");
        assert_eq!(waits_for(&[1 << 63]), Some(63));
    }

    /// Three of five nodes have to refuse a key, so that no quorum can grant it.
    #[test]
    fn a_set_on_more_nodes_waits_for_a_key_that_more_of_them_have_refused() {
        let refusals = [0b10, 0b11, 0b11, 0b11].map(|keys| (NodeId::new(0), Refusal::Keys(keys)));
        let refusals = Refusals(refusals.into());
        assert_eq!(refusals.key(&Tally::new(5)), Some(0), "three are enough");
        let refusals = Refusals(refusals.0[..3].to_vec());
        assert_eq!(refusals.key(&Tally::new(5)), Some(1));
    }

    #[test]
    fn the_nodes_whose_keys_have_no_expiry_are_named() {
        let refusals = [
            (NodeId::new(0), Refusal::Until(Timestamp::ORIGIN)),
            (NodeId::new(2), Refusal::Endless),
        ];
        let endless = Refusals(refusals.into()).endless();
        assert_eq!(endless, NodeSet::only(NodeId::new(2)));
    }
}
