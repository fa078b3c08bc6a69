//! What is asked of all nodes about the key of a fenced lock: take, raise, extend, let go.

use super::Nodes;
use super::requests::LeaseRequest;
use crate::algorithm::fault::Fault;
use crate::algorithm::fence::{Agreement, FencingToken};
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::engine::driver::WaitSlots;
use crate::engine::rounds::Purpose;
use crate::protocol::operation::{FenceRequest, Operation};
use crate::protocol::session::{SentOperation, Ticket};

impl Nodes {
    /// Queues an acquire for every node that may be asked, at a time that was read before any byte of it is written.
    pub(in crate::engine) fn acquire_fenced(
        &mut self,
        order: &LeaseRequest<'_>,
        floor: FencingToken,
        t0: Timestamp,
        bells: &mut WaitSlots,
    ) -> Ticket {
        self.settle_posts(t0, bells);
        self.rest(t0);
        let ticket = self.rounds.open_fenced(Purpose::Acquire, order.key, order.token);
        let asked = self.prepare_all(ticket, t0, bells);
        // When no quorum is left to ask, the others are spared what would only have to be undone.
        if !self.rounds.is_decided(ticket) {
            let operation = Operation::Acquire { ttl_millis: order.ttl_millis, fence: self.fence(Some(floor)) };
            self.queue_all(ticket, asked, operation, order.key, order.token, t0);
        }
        ticket
    }

    /// Queues a raise for the nodes that have answered less than the greatest fence. The others have their votes already:
    /// those that answered the greatest have granted, and whoever was not counted is not asked.
    pub(in crate::engine) fn raise(
        &mut self,
        (key, token): (&[u8], &OwnerToken),
        agreement: &Agreement,
        now: Timestamp,
        bells: &mut WaitSlots,
    ) -> Ticket {
        self.settle_posts(now, bells);
        let ticket = self.rounds.open_fenced(Purpose::Acquire, key, token);
        let mut asked = NodeSet::EMPTY;
        for node in self.nodes() {
            let vote = if agreement.settled().contains(node) {
                Vote::Granted
            } else if !agreement.behind().contains(node) {
                Vote::Absent
            } else {
                match self.prepare_to_ask(node, now, bells) {
                    Ok(()) => {
                        asked.insert(node);
                        continue;
                    }
                    Err(fault) => self.failed(node, fault, now),
                }
            };
            self.rounds.vote(ticket, node, vote, bells);
        }
        let fence = FenceRequest { least: agreement.fence(), retention_millis: self.retention_millis };
        self.queue_all(ticket, asked, Operation::Raise(fence), key, token, now);
        ticket
    }

    /// Queues the same operation for these nodes, and refers to its round for each.
    pub(super) fn queue_all(
        &mut self,
        ticket: Ticket,
        nodes: NodeSet,
        operation: Operation,
        key: &[u8],
        token: &OwnerToken,
        now: Timestamp,
    ) {
        for node in nodes.iter() {
            self.links[node.index()].asks(now);
            self.links[node.index()].session.queue(ticket, operation, key, token, now);
        }
        self.rounds.refer(ticket, nodes);
        self.queued(nodes, now);
    }

    /// Queues an operation once more, in another dialect. An acquisition is not queued any more when its owner has given up: the
    /// release has been queued, or will be, and must be the last word.
    pub(super) fn ask_again(&mut self, node: NodeId, again: SentOperation, now: Timestamp) {
        let takes = matches!(again.operation(), Operation::Acquire { .. });
        match self.rounds.round(again.ticket()) {
            Some(round) if !takes || !self.rounds.is_decided(again.ticket()) => {
                self.links[node.index()].session.ask_again(again, round.key(), round.token(), now);
            }
            _ => self.rounds.unrefer(again.ticket()),
        }
    }

    /// What an operation says of the fence, if the lock has one.
    pub(super) fn fence(&self, least: Option<FencingToken>) -> Option<FenceRequest> {
        least.map(|least| FenceRequest { least, retention_millis: self.retention_millis })
    }

    fn failed(&mut self, node: NodeId, fault: Fault, now: Timestamp) -> Vote {
        self.note_failure(node, fault, now);
        Vote::Fault(fault)
    }
}
