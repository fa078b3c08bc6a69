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
use crate::protocol::fenced::{FencedOp, FencedRequest};
use crate::protocol::session::Ticket;

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
            let deed = FencedOp::Acquire { ttl_millis: order.ttl_millis, floor };
            self.ask_fenced(ticket, asked, deed, order.key, order.token, t0);
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
        self.ask_fenced(ticket, asked, FencedOp::Raise(agreement.fence()), key, token, now);
        ticket
    }

    /// Queues the same request for these nodes, and refers to its round for each.
    pub(super) fn ask_fenced(
        &mut self,
        ticket: Ticket,
        nodes: NodeSet,
        deed: FencedOp,
        key: &[u8],
        token: &OwnerToken,
        now: Timestamp,
    ) {
        let (ask, is_question) =
            (FencedRequest { deed, retention_millis: self.retention_millis }, !matches!(deed, FencedOp::Release(_)));
        for node in nodes.iter() {
            if is_question {
                self.links[node.index()].asks(now);
            }
            self.links[node.index()].session.fenced(ticket, ask, key, token, now);
        }
        self.rounds.refer(ticket, nodes);
        self.queued(nodes, now);
    }

    /// Asks once more, by the script's text. What takes the key is not said any more when its owner has given up: the release
    /// has been queued, or will be, and must be the last word.
    pub(super) fn ask_fenced_again(&mut self, node: NodeId, ticket: Ticket, ask: FencedRequest, now: Timestamp) {
        let takes = matches!(ask.deed, FencedOp::Acquire { .. });
        match self.rounds.round(ticket) {
            Some(round) if !takes || !self.rounds.is_decided(ticket) => {
                self.links[node.index()].session.fenced(ticket, ask, round.key(), round.token(), now);
            }
            _ => self.rounds.unrefer(ticket),
        }
    }

    fn failed(&mut self, node: NodeId, fault: Fault, now: Timestamp) -> Vote {
        self.note_failure(node, fault, now);
        Vote::Fault(fault)
    }
}
