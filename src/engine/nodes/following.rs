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
use crate::protocol::session::Ticket;

impl Nodes {
    /// The connection, to ask the node something alone: it leaves the log.
    pub(super) fn apart(&mut self, node: NodeId) -> &mut NodeConnection {
        if self.followers.contains(node) {
            self.followers.set(node, false);
            self.connections[node.index()].session.pipeline.leave(&self.log);
        }
        self.node_mut(node)
    }

    /// Lets a node follow the log if it can, and leave it if it cannot any more.
    pub(super) fn follow_or_leave(&mut self, node: NodeId) {
        let Nodes { log, followers, connections, .. } = self;
        let connection = &mut connections[node.index()];
        if !followers.contains(node) {
            if connection.may_follow(log) {
                connection.session.follow(log, followers.is_empty());
                followers.insert(node);
            }
        } else if !connection.session.is_alike(log) {
            self.apart(node);
        }
        let counts = self.followers.contains(node) && self.counts_as_it_is(node);
        self.counting.set(node, counts);
    }

    /// Whether nothing is known of a node that follows which would change its votes, or which a vote would change.
    fn counts_as_it_is(&self, node: NodeId) -> bool {
        let connection = self.node(node);
        self.states.is_up(node)
            && !self.states.is_refusing(node)
            && !self.incarnations.is_doubtful(node)
            && !connection.quarantine.is_on()
            && !connection.health.is_suspect()
    }

    /// Queues the operation of a round for these nodes, and lets the round wait for their replies.
    pub(super) fn queue(&mut self, ticket: Ticket, operation: Operation, nodes: NodeSet, now: Timestamp) {
        self.rounds.ask(ticket, operation, nodes);
        let is_look_due = !operation.is_release() && self.log.is_look_due(now);
        let sharing = self.sharing(&operation, nodes, is_look_due);
        if is_look_due && !sharing.is_empty() {
            self.look_at_followers(now);
        }
        let Some(command) = self.rounds.command(ticket) else { return };
        if !sharing.is_empty() {
            self.log.append(&command, now);
        }
        for node in nodes.without(sharing).iter() {
            self.connections[node.index()].queue(&command, now);
        }
        self.commands.on_queued(nodes, now);
    }

    /// The nodes of these that follow, if the operation can be in the log: all that follow are to be asked. Those that
    /// need another form leave it, and all of these if others follow that are not to be asked. So do those that are to
    /// be asked more than the others when they are looked at.
    fn sharing(&mut self, operation: &Operation, nodes: NodeSet, is_look_due: bool) -> NodeSet {
        let is_for_all = self.followers.without(nodes).is_empty();
        for node in self.followers.iter().filter(|&node| nodes.contains(node)) {
            let session = &self.node(node).session;
            let is_asked_alike = !is_look_due || session.has_asked_for_memory();
            if !(is_for_all && is_asked_alike && session.takes_from_log(operation)) {
                self.apart(node);
            }
        }
        if is_for_all { self.followers } else { NodeSet::EMPTY }
    }

    /// Asks the nodes that follow whether they are still what they were.
    fn look_at_followers(&mut self, now: Timestamp) {
        let Nodes { log, followers, connections, .. } = self;
        log.look(now);
        followers.iter().for_each(|node| connections[node.index()].session.looked_at(now));
    }

    /// Lets nodes leave the log that have not answered in time, or are too far behind.
    pub(super) fn leave_late(&mut self, now: Timestamp) {
        if !self.is_late(now) {
            return;
        }
        self.cut_log();
        if self.is_late(now) {
            for node in self.followers.iter() {
                if self.node(node).is_late(&self.log, now) {
                    self.apart(node);
                }
            }
            self.cut_log();
        }
    }

    fn is_late(&self, now: Timestamp) -> bool {
        self.log.backlog().is_late(self.incarnations.node_timeout, now)
    }

    /// Forgets what all nodes that follow have answered.
    pub(super) fn cut_log(&mut self) {
        let Nodes { log, followers, connections, .. } = self;
        log.cut(followers.iter().filter_map(|node| connections[node.index()].session.pipeline.cursor()));
    }
}
