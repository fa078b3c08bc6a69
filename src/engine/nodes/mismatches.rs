//! Reports how what nodes remember does not fit this client: once for a node and change, and not for each look.

use super::Nodes;
use crate::algorithm::fault::Cause;
use crate::algorithm::incarnation::Seen;
use crate::algorithm::incarnation::mismatch::Mismatch;
use crate::algorithm::node::NodeId;
use crate::events::event_queue::PendingEvent;

impl Nodes {
    /// The node was looked at, or has answered a note. While it is silent, as one that stores nothing, what was last
    /// known holds.
    pub(super) fn report_mismatches(&mut self, node: NodeId) {
        let seen = &self.incarnations.seen[node.index()];
        if *seen == Seen::Silent {
            return;
        }
        let mut mismatches = self.incarnations.rules.mismatches(seen, self.connections.len());
        let refusal = self.connections[node.index()].session.identity().look.refusal;
        if *seen == Seen::Untold && refusal == Some(Cause::NoPermission) {
            mismatches.push(Mismatch::Rights);
        }
        let reported = &mut self.incarnations.mismatches[node.index()];
        for &mismatch in mismatches.iter().filter(|mismatch| !reported.contains(mismatch)) {
            self.states.push(PendingEvent::Mismatched(node, mismatch));
        }
        *reported = mismatches;
    }
}
