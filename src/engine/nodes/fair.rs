//! Places in the queues of fair locks that are left.

use super::Nodes;
use super::commands::Command;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::lock_kind::LockKind;
use crate::algorithm::node::NodeSet;
use crate::algorithm::place::{Departure, PlaceId};
use crate::algorithm::time::Timestamp;
use crate::engine::rounds::Purpose;

impl Nodes {
    /// Queues a leave for the nodes that may have a place of a call, and are connected: a place elsewhere ends by
    /// itself. No thread waits for it. With a successor, it puts a place at the end for that call.
    pub(in crate::engine) fn leave(
        &mut self,
        (key, kind): (&[u8], LockKind),
        (id, departure): (PlaceId, Departure),
        nodes: NodeSet,
        now: Timestamp,
    ) {
        let Some(operation) = self.commands.leave(kind, id, departure) else { return };
        let token = OwnerToken::from_entropy([0; OwnerToken::ENTROPY]);
        let ticket = self.rounds.open_command(Purpose::Leave, (key, &token), LockKind::Plain);
        let ready = nodes.iter().filter(|node| self.node(*node).runs_releases()).collect();
        self.queue(&Command::new(ticket, key, &token, operation), ready, now);
        self.rounds.mark_decided(ticket);
        self.rounds.unrefer(ticket);
    }
}
