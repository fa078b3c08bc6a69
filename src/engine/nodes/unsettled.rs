//! Which nodes have releases to send, and which threads wait until none is left.

use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::pending_release::Settled;
use crate::algorithm::time::Timestamp;
use crate::engine::node_connection::NodeConnection;
use crate::engine::rounds::Rounds;
use crate::protocol::session::{Log, Ticket};

/// The nodes that have releases to send, and the threads that wait until none is left.
pub(super) struct UnsettledReleases {
    /// The nodes that have pending releases.
    pub(super) pending: NodeSet,
    /// The nodes whose sockets did not take all bytes of the last write.
    blocked: NodeSet,
    /// The waits for releases, and what each of them waits for.
    waits: Vec<(Ticket, Settled)>,
    /// When a node last answered a release.
    pub(super) answered_at: Timestamp,
}

impl UnsettledReleases {
    pub(super) fn new() -> UnsettledReleases {
        let (pending, blocked) = (NodeSet::EMPTY, NodeSet::EMPTY);
        UnsettledReleases { pending, blocked, waits: Vec::new(), answered_at: Timestamp::ORIGIN }
    }

    /// The nodes that may need to be served. While a thread waits for releases, it also finds out which nodes are
    /// silent.
    pub(super) fn nodes(&self, connections: &[NodeConnection], log: &Log) -> NodeSet {
        let left = self.pending.union(self.blocked);
        if self.waits.is_empty() {
            return left;
        }
        let silent = connections.iter().enumerate().filter(|(_, connection)| connection.awaits_release(log));
        left.union(silent.map(|(index, _)| NodeId::new(index)).collect())
    }

    /// Whether a poll is bounded by something to do for releases.
    pub(super) fn bounds_poll(&self) -> bool {
        !(self.pending.is_empty() && self.waits.is_empty())
    }

    /// Whether a thread waits for releases.
    pub(super) fn is_awaited(&self) -> bool {
        !self.waits.is_empty()
    }

    /// Whether a release is left that no node has answered, or that is to be sent again.
    pub(super) fn has_any(&self, connections: &[NodeConnection], log: &Log) -> bool {
        !self.pending.is_empty() || connections.iter().any(|connection| connection.awaits_release(log))
    }

    /// A write to the node's socket has ended, with or without all bytes.
    pub(super) fn on_written(&mut self, node: NodeId, connection: &NodeConnection, log: &Log) {
        self.blocked.set(node, connection.has_unsent(log));
    }

    /// When there is something to do for pending releases next.
    pub(super) fn due(&self, connections: &[NodeConnection], log: &Log) -> Timestamp {
        let blocked = self.blocked.iter().filter(|node| connections[node.index()].has_unsent_release(log));
        let due = |node: NodeId| connections[node.index()].pending_due();
        self.pending.iter().chain(blocked).map(due).min().unwrap_or(Timestamp::NEVER)
    }

    /// When there is something to do for releases next, if any is left: now, while one is on its way; when the answers
    /// were not looked for, after a while.
    pub(super) fn next(&self, connections: &[NodeConnection], log: &Log, now: Timestamp) -> Option<Timestamp> {
        let pending = if self.pending.is_empty() { Timestamp::NEVER } else { self.due(connections, log) };
        let dues = connections.iter().map(|connection| connection.release_due(log, now));
        Some(dues.fold(pending, Timestamp::min)).filter(|&due| due < Timestamp::NEVER)
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

    /// Ends the waits for what has been reached. `is_sent`: nothing is left to do at once.
    pub(super) fn notify(&self, connections: &[NodeConnection], log: &Log, is_sent: bool, rounds: &mut Rounds) {
        let is_answered = !connections.iter().any(|connection| connection.awaits_release(log));
        for &(ticket, target) in &self.waits {
            let is_reached = match target {
                Settled::Answered => is_answered,
                Settled::Run => self.pending.is_empty() && is_answered,
                Settled::Sent => is_sent,
            };
            if is_reached {
                rounds.end_wait(ticket);
            }
        }
    }

    /// Ends all waits.
    pub(super) fn notify_all(&self, rounds: &mut Rounds) {
        for &(ticket, _) in &self.waits {
            rounds.end_wait(ticket);
        }
    }
}
