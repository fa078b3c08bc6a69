//! The question to all nodes which holder has a lock. It changes nothing there.

use super::Nodes;
use crate::algorithm::fence::FencingToken;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::lock_kind::LockKind;
use crate::algorithm::node::NodeId;
use crate::algorithm::time::Timestamp;
use crate::engine::rounds::Purpose;
use crate::protocol::session::{Inspected, Ticket};

impl Nodes {
    /// Asks every node that can be asked which holder has a lock.
    pub(in crate::engine) fn inspect(&mut self, key: &[u8], is_fenced: bool, now: Timestamp) -> Ticket {
        let kind = if is_fenced { LockKind::Fenced(FencingToken::MAX) } else { LockKind::Plain };
        self.expire_background(now);
        // No node is shown a token.
        let no_token = OwnerToken::from_entropy([0; OwnerToken::ENTROPY]);
        let ticket = self.rounds.open_command(Purpose::Inspect, (key, &no_token), kind);
        let ready = self.prepare_all(ticket, now);
        for node in ready.iter() {
            let connection = self.apart(node);
            connection.note_request(now);
            connection.session.inspect(ticket, key, is_fenced, now);
        }
        self.rounds.refer(ticket, ready);
        self.commands.on_queued(ready, now);
        ticket
    }

    /// Notes what a node has answered. Apart from what runs for each reply.
    #[inline(never)]
    pub(super) fn note_inspected(&mut self, ticket: Ticket, node: NodeId, inspected: &mut Inspected, now: Timestamp) {
        if let Some(inspection) = self.rounds.inquiry(ticket) {
            inspection.record_waiting(inspected.waiting);
            inspected.occupant.take().into_iter().for_each(|occupant| inspection.record(node, occupant, now));
        }
    }
}
