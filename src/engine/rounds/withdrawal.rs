//! Grants that were counted, and of which it turns out that they do not count, or not yet.

use super::{Purpose, Rounds};
use crate::algorithm::fault::Fault;
use crate::algorithm::fence::FencingToken;
use crate::algorithm::node::NodeId;
use crate::protocol::session::Ticket;

impl Rounds {
    /// A node turns out not to count: nor do its grants, and their fences, in attempts that are not decided.
    pub(crate) fn withdraw(&mut self, node: NodeId, fault: Fault) {
        for round in self.slots.iter_mut().filter(|round| round.purpose == Purpose::Acquire && !round.decided) {
            if round.tally.withdraw(node) {
                round.faults[node.index()] = fault;
                round.fences.forget(node);
            }
        }
    }

    /// It is open whether a node counts: so are its grants in attempts that are not decided. Gives them, with their
    /// fences, and refers to their rounds once more.
    pub(crate) fn take_back(&mut self, node: NodeId) -> Vec<(Ticket, Option<FencingToken>)> {
        let mut taken = Vec::new();
        for (slot, round) in (0..).zip(&mut self.slots) {
            let is_open = round.references > 0 && round.purpose == Purpose::Acquire && !round.decided;
            if is_open && round.tally.take_back(node) {
                round.references += 1;
                taken.push((Ticket { slot, generation: round.generation }, round.fences.forget(node)));
            }
        }
        taken
    }
}
