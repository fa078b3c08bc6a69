//! The question to all nodes which holder has a lock. It changes nothing there.

use super::Nodes;
use crate::algorithm::inspection::Inspection;
use crate::algorithm::node::NodeId;
use crate::algorithm::time::Timestamp;
use crate::engine::rounds::Purpose;
use crate::protocol::session::{Inspected, Session, Ticket};

impl Nodes {
    /// Asks every node that can be asked which holder has a lock.
    pub(in crate::engine) fn inspect(&mut self, key: &[u8], is_fenced: bool, now: Timestamp) -> Ticket {
        let inspect = |session: &mut Session, ticket| session.inspect(ticket, key, is_fenced, now);
        self.ask_alone(Purpose::Inspect(Inspection::default()), inspect, now)
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
