//! The question to all nodes which holder has a lock. It changes nothing there.

use super::Nodes;
use crate::algorithm::inspection::Inspection;
use crate::algorithm::node::NodeId;
use crate::algorithm::time::Timestamp;
use crate::engine::rounds::Purpose;
use crate::protocol::session::{Session, Ticket};

impl Nodes {
    /// Asks every node that can be asked which holder has a lock.
    pub(in crate::engine) fn inspect(&mut self, key: &[u8], is_fenced: bool, now: Timestamp) -> Ticket {
        let inspect = |session: &mut Session, ticket| session.inspect(ticket, key, is_fenced, now);
        self.ask_alone(Purpose::Inspect(Inspection::default()), inspect, now)
    }

    /// Notes what a node has answered. Apart from what runs for each reply.
    #[inline(never)]
    pub(super) fn note_inspected(&mut self, ticket: Ticket, node: NodeId, now: Timestamp) {
        let session = &mut self.connections[node.index()].session;
        let (occupant, waiting) = (session.take_occupant(), session.take_waiting());
        if let Some(inspection) = self.rounds.inquiry(ticket) {
            inspection.record_waiting(waiting);
            occupant.into_iter().for_each(|occupant| inspection.record(node, occupant, now));
        }
    }
}
