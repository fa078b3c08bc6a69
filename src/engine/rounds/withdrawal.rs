//! Grants that were counted, and of which it turns out that they do not count, or not yet.

use super::{Purpose, Round, Rounds};
use crate::algorithm::fault::Fault;
use crate::algorithm::fence::FencingToken;
use crate::algorithm::node::NodeId;
use crate::algorithm::vote::Vote;
use crate::protocol::session::Ticket;

impl Rounds {
    /// A node turns out not to count: nor do its grants, and their fences, in attempts that are not decided.
    pub(crate) fn withdraw(&mut self, node: NodeId, fault: Fault) {
        for (_, round, _) in self.reopened(node) {
            round.tally.record(node, Vote::Fault(fault));
            round.faults[node.index()] = fault;
        }
    }

    /// It is open whether a node counts: so are its grants in attempts that are not decided. Returns them, with
    /// their fences, and refers to their rounds once more.
    pub(crate) fn take_back(&mut self, node: NodeId) -> Vec<(Ticket, Option<FencingToken>)> {
        let refer = |(ticket, round, fence): (Ticket, &mut Round, _)| {
            round.references += 1;
            (ticket, fence)
        };
        self.reopened(node).map(refer).collect()
    }

    /// The attempts that are not decided and had a grant of the node, as if it had not voted; and the fence of its
    /// grant.
    fn reopened(&mut self, node: NodeId) -> impl Iterator<Item = (Ticket, &mut Round, Option<FencingToken>)> {
        (0..).zip(&mut self.slots).filter_map(move |(slot, round)| {
            let ticket = Ticket { slot, generation: round.generation };
            let Purpose::Acquire(attempt) = &mut round.purpose else { return None };
            if round.references == 0 || round.is_decided || !round.tally.take_back(node) {
                return None;
            }
            let fence = attempt.fences.forget(node);
            Some((ticket, round, fence))
        })
    }
}
