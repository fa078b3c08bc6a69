//! What nodes reply about the queue, and what becomes of a call's entry there.

use super::{Round, Rounds};
use crate::algorithm::node::NodeId;
use crate::algorithm::queue::{QueueReply, QueueRound, QueuedCall, Setup};
use crate::protocol::session::Ticket;
use std::time::Duration;

impl Round {
    /// Whether an attempt is lost to which so few nodes have replied that its call gets no ticket, and so many are
    /// still to reply that it may. Where only refusals decide, a call with a ticket waits as well, or it would have to
    /// repeat the round: with an even number of nodes, half of them are enough to refuse.
    pub(super) fn lacks_ticket(&self) -> bool {
        let Some(queue) = &self.queue else { return false };
        let answered = self.tally.granted().len() + self.tally.refused().len();
        let setup = Setup { nodes: self.tally.nodes(), place_lease: Duration::ZERO };
        let has_ticket = queue.has_ticket() && !self.tally.faulted().is_empty();
        QueuedCall::lacks_ticket(has_ticket, &setup, answered, self.tally.undecided().len())
    }
}

impl Rounds {
    /// Lets an attempt collect what nodes reply about the queue.
    pub(crate) fn collect_replies(&mut self, ticket: Ticket, queue: QueueRound) {
        if let Some(round) = self.round_mut(ticket) {
            round.queue = Some(Box::new(queue));
        }
    }

    /// Takes what a node that has not granted replied about the queue. To be called before its vote.
    pub(crate) fn record_queue_reply(&mut self, ticket: Ticket, node: NodeId, reply: &QueueReply) {
        if let Some(round) = self.round_mut(ticket)
            && round.tally.undecided().contains(node)
            && let Some(queue) = &mut round.queue
        {
            queue.on_refused(node, *reply);
        }
    }
}
