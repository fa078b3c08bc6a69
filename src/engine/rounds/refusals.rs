//! What nodes replied about the keys that they refused for: until when, and which of a set.

use super::{Round, Rounds};
use crate::algorithm::node::NodeId;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Tally;
use crate::protocol::lock_key::MOST_KEYS;
use crate::protocol::session::Ticket;

impl Round {
    /// A quorum may be acquired when that many nodes have no other client's key. A verdict may be there before so many
    /// have said: the keys of one lock end together, so that what is known stands for the rest.
    pub(super) fn free_at(&self) -> Timestamp {
        let missing = self.tally.quorum().saturating_sub(self.tally.granted().len());
        let mut ends = self.ends.clone();
        ends.sort_unstable();
        let last = missing.min(ends.len()).checked_sub(1);
        last.and_then(|last| ends.get(last)).copied().unwrap_or(Timestamp::NEVER)
    }

    /// The key of a set to wait for.
    pub(super) fn refused_key(&self) -> Option<usize> {
        refused_key(&self.refusals, &self.tally)
    }
}

impl Rounds {
    /// Records when the key ends for which a node has refused.
    pub(crate) fn record_end(&mut self, ticket: Ticket, node: NodeId, end: Timestamp) {
        self.refused_round(ticket, node).into_iter().for_each(|round| round.ends.push(end));
    }

    /// Records for which keys of a set a node has refused: a bit for each.
    pub(crate) fn record_refused_keys(&mut self, ticket: Ticket, node: NodeId, keys: u64) {
        self.refused_round(ticket, node).into_iter().for_each(|round| round.refusals.push(keys));
    }

    /// Records that the key has no expiry for which a node has refused.
    pub(crate) fn record_endless(&mut self, ticket: Ticket, node: NodeId) {
        self.refused_round(ticket, node).into_iter().for_each(|round| _ = round.endless.insert(node));
    }

    fn refused_round(&mut self, ticket: Ticket, node: NodeId) -> Option<&mut Round> {
        self.round_mut(ticket).filter(|round| round.tally.refused().contains(node))
    }
}

/// The key of a set to wait for, by the keys that each node has refused for.
fn refused_key(refusals: &[u64], tally: &Tally) -> Option<usize> {
    let any = refusals.iter().fold(0, |any, keys| any | keys);
    let refused = |key: usize| refusals.iter().filter(|&keys| keys & 1 << key != 0).count();
    let enough = tally.nodes() - tally.quorum() + 1;
    // Of equals the last one is taken.
    let keys = (0..MOST_KEYS).rev().filter(|key| any & 1 << key != 0);
    keys.max_by_key(|&key| refused(key).min(enough))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_waits_for_the_first_key_that_has_no_quorum() {
        let waits_for = |refusals: &[u64]| refused_key(refusals, &Tally::new(3));
        assert_eq!(waits_for(&[]), None);
        assert_eq!(waits_for(&[0b110, 0b010]), Some(1), "two of three nodes have refused it");
        assert_eq!(waits_for(&[0b111, 0b111, 0b111]), Some(0));
        assert_eq!(waits_for(&[0b001, 0b110, 0b110]), Some(1), "a quorum can be had of the first");
        assert_eq!(waits_for(&[0b100, 0b010]), Some(1), "it is not known which");
        assert_eq!(waits_for(&[1 << 63]), Some(63));
    }
}
