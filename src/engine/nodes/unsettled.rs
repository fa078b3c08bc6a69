//! Which nodes have releases to send, and which threads wait until none is left.

use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::pending_release::Settled;
use crate::algorithm::time::Timestamp;
use crate::engine::driver::WaitSlots;
use crate::engine::node_connection::NodeConnection;
use crate::engine::rounds::Rounds;
use crate::protocol::session::Ticket;

/// The nodes that have releases to send, and the threads that wait until none is left.
#[derive(Default)]
pub(super) struct UnsettledReleases {
    /// The nodes that have pending releases.
    pending: NodeSet,
    /// The nodes whose sockets did not take all bytes of the last write.
    blocked: NodeSet,
    /// The waits for releases, and what each of them waits for.
    waits: Vec<(Ticket, Settled)>,
}

impl UnsettledReleases {
    /// Notes that a node has pending releases.
    pub(super) fn insert_pending(&mut self, node: NodeId) {
        self.pending.insert(node);
    }

    /// Notes that a node has no pending release any more.
    pub(super) fn remove_pending(&mut self, node: NodeId) {
        self.pending = self.pending.without(NodeSet::from_iter([node]));
    }

    /// The nodes that may need to be served.
    pub(super) fn nodes(&self) -> NodeSet {
        self.pending.union(self.blocked)
    }

    /// Whether a poll is bounded by something to do for releases.
    pub(super) fn bounds_poll(&self) -> bool {
        !(self.pending.is_empty() && self.waits.is_empty())
    }

    /// Whether a thread waits for releases.
    pub(super) fn is_awaited(&self) -> bool {
        !self.waits.is_empty()
    }

    /// Whether the node has pending releases.
    pub(super) fn is_pending(&self, node: NodeId) -> bool {
        self.pending.contains(node)
    }

    /// Whether a release is left that this client could send, now or later.
    pub(super) fn has_any(&self, connections: &[NodeConnection]) -> bool {
        !self.pending.is_empty() || self.blocked.iter().any(|node| connections[node.index()].has_unsent_release())
    }

    /// Notes whether the node's socket took all bytes of a write.
    pub(super) fn note_written(&mut self, node: NodeId, connection: &NodeConnection) {
        match connection.has_unsent() {
            false => self.blocked = self.blocked.without(NodeSet::from_iter([node])),
            true => {
                self.blocked.insert(node);
            }
        }
    }

    /// When there is something to do for pending releases next.
    pub(super) fn due(&self, connections: &[NodeConnection]) -> Timestamp {
        let blocked = self.blocked.iter().filter(|node| connections[node.index()].has_unsent_release());
        let due = |node: NodeId| connections[node.index()].pending_due();
        self.pending.iter().chain(blocked).map(due).min().unwrap_or(Timestamp::NEVER)
    }

    /// When there is something to do for releases next, if any is left: now, while one is on its way, or its answer.
    pub(super) fn next(&self, connections: &[NodeConnection], now: Timestamp) -> Option<Timestamp> {
        let is_moving = |connection: &NodeConnection| {
            connection.has_release_on_its_way(now)
                || !connection.pending.is_empty() && !connection.is_closed() && connection.session.traffic.backlog() > 0
        };
        if connections.iter().any(is_moving) {
            return Some(now);
        }
        (!self.pending.is_empty()).then(|| self.due(connections))
    }

    /// Registers a wait.
    pub(super) fn enter(&mut self, ticket: Ticket, target: Settled) {
        self.waits.push((ticket, target));
    }

    /// Ends a wait.
    pub(super) fn leave(&mut self, ticket: Ticket, rounds: &mut Rounds) {
        self.waits.retain(|&(other, _)| other != ticket);
        rounds.unrefer(ticket);
    }

    /// Ends the waits for what has been reached.
    pub(super) fn notify(
        &self,
        connections: &[NodeConnection],
        rounds: &mut Rounds,
        now: Timestamp,
        notify: &mut WaitSlots,
    ) {
        for &(ticket, target) in &self.waits {
            let is_reached = match target {
                Settled::Answered => !connections.iter().any(NodeConnection::awaits_release),
                Settled::Run => self.pending.is_empty() && !connections.iter().any(NodeConnection::awaits_release),
                Settled::Sent => self.next(connections, now).is_none_or(|due| due > now),
            };
            if is_reached {
                rounds.end_wait(ticket, notify);
            }
        }
    }

    /// Ends all waits.
    pub(super) fn notify_all(&self, rounds: &mut Rounds, notify: &mut WaitSlots) {
        for &(ticket, _) in &self.waits {
            rounds.end_wait(ticket, notify);
        }
    }
}
