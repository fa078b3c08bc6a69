//! Which nodes follow the log of commands, and which are apart.
//!
//! ```text
//!             has answered all, owes no release, is sent what the others are
//!    apart ──────────────────────────────────────────────────────────────────► follows
//!          ◄──────────────────────────────────────────────────────────────────
//!             late, lost, rejected, to be asked anything alone, or has not run a release
//! ```
//!
//! A command for all nodes that follow is encoded and kept once. A node that is apart has a queue of its own.

use super::Nodes;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::time::Timestamp;
use crate::engine::node_connection::NodeConnection;
use crate::protocol::operation::Operation;
use crate::protocol::session::{Log, Ticket};
use std::time::Duration;

/// The log, and the nodes that follow it.
pub(super) struct Following {
    pub(super) log: Log,
    followers: NodeSet,
    /// Those of them whose votes count as they are. Whatever may change that takes the node out.
    pub(super) counting: NodeSet,
}

impl Following {
    pub(super) fn new(connections: &[NodeConnection]) -> Following {
        let node_key = connections.first().and_then(|connection| connection.link.endpoint.handshake().node_key.clone());
        Following { log: Log::new(node_key), followers: NodeSet::EMPTY, counting: NodeSet::EMPTY }
    }

    fn leave(&mut self, node: NodeId, connection: &mut NodeConnection) {
        if self.followers.contains(node) {
            self.followers.set(node, false);
            self.counting.set(node, false);
            connection.session.pipeline.leave(&self.log);
        }
    }

    /// The nodes of these that follow, if the operation can be in the log: all that follow are to be asked. Those that
    /// need another form leave it, and all of these if others follow that are not to be asked. So do those that are to
    /// be asked more than the others when they are looked at.
    fn sharing(
        &mut self,
        connections: &mut [NodeConnection],
        operation: &Operation,
        nodes: NodeSet,
        is_look_due: bool,
    ) -> NodeSet {
        let is_for_all = self.followers.without(nodes).is_empty();
        for node in self.followers.iter().filter(|&node| nodes.contains(node)) {
            let connection = &mut connections[node.index()];
            let is_asked_alike = !is_look_due || connection.session.has_asked_for_memory();
            if !(is_for_all && is_asked_alike && connection.session.takes_from_log(operation)) {
                self.leave(node, connection);
            }
        }
        if is_for_all { self.followers } else { NodeSet::EMPTY }
    }

    /// Asks the nodes that follow whether they are still what they were.
    fn look(&mut self, connections: &mut [NodeConnection], now: Timestamp) {
        self.log.look(now);
        self.followers.iter().for_each(|node| connections[node.index()].session.looked_at(now));
    }

    fn is_late(&self, node_timeout: Duration, now: Timestamp) -> bool {
        self.log.backlog().is_late(node_timeout, now)
    }

    /// Forgets what all nodes that follow have answered.
    pub(super) fn cut_log(&mut self, connections: &[NodeConnection]) {
        self.log.cut(self.followers.iter().filter_map(|node| connections[node.index()].session.pipeline.cursor()));
    }
}

impl Nodes {
    /// The connection, to ask the node something alone: it leaves the log.
    pub(super) fn apart(&mut self, node: NodeId) -> &mut NodeConnection {
        self.following.leave(node, &mut self.connections[node.index()]);
        self.node_mut(node)
    }

    /// Lets a node follow the log if it can, and leave it if it cannot any more.
    pub(super) fn follow_or_leave(&mut self, node: NodeId) {
        let Following { log, followers, .. } = &mut self.following;
        let connection = &mut self.connections[node.index()];
        if !followers.contains(node) {
            if connection.may_follow(log) {
                connection.session.follow(log, followers.is_empty());
                followers.insert(node);
            }
        } else if !connection.session.is_alike(log) {
            self.apart(node);
        }
        let counts = self.following.followers.contains(node) && self.counts_as_it_is(node);
        self.following.counting.set(node, counts);
    }

    /// Whether nothing is known of a node that follows which would change its votes, or which a vote would change.
    fn counts_as_it_is(&self, node: NodeId) -> bool {
        let connection = self.node(node);
        self.states.is_up(node)
            && !self.states.is_refusing(node)
            && !self.incarnations.is_doubtful(node)
            && !connection.quarantine.is_on()
            && !connection.is_suspect()
    }

    /// Queues the command of a round for these nodes, and lets the round wait for their replies.
    pub(super) fn queue(&mut self, ticket: Ticket, nodes: NodeSet, now: Timestamp) {
        let Nodes { rounds, connections, following, poll, commands, .. } = self;
        rounds.refer(ticket, nodes);
        let Some(command) = rounds.command(ticket) else { return };
        let is_look_due = !command.operation.is_release() && following.log.is_look_due(now);
        let before = following.followers;
        let sharing = following.sharing(connections, command.operation, nodes, is_look_due);
        before.without(following.followers).iter().for_each(|node| poll.mark_stale(node));
        if !sharing.is_empty() {
            if is_look_due {
                following.look(connections, now);
            }
            following.log.append(&command, now);
        }
        for node in nodes.without(sharing).iter() {
            connections[node.index()].queue(&command, now);
        }
        commands.on_queued(nodes, now);
    }

    /// Lets nodes leave the log that have not answered in time, or are too far behind.
    pub(super) fn leave_late(&mut self, now: Timestamp) {
        let timeout = self.incarnations.node_timeout;
        if !self.following.is_late(timeout, now) {
            return;
        }
        self.following.cut_log(&self.connections);
        if self.following.is_late(timeout, now) {
            for node in self.following.followers.iter() {
                if self.node(node).is_late(&self.following.log, now) {
                    self.apart(node);
                }
            }
            self.following.cut_log(&self.connections);
        }
    }
}
