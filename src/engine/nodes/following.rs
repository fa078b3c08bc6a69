//! Which nodes follow the log of commands, and which are apart.
//!
//! ```text
//!             has answered all, owes no release, is sent what the others are
//!    apart ──────────────────────────────────────────────────────────────────► follows
//!          ◄──────────────────────────────────────────────────────────────────
//!             late, lost, rejected, to be asked anything alone, or has not run a release
//! ```
//!
//! A command for all nodes that follow is encoded and kept once. A node that is apart has a queue
//! of its own.

use super::poll_list::PollList;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::time::Timestamp;
use crate::engine::node_connection::NodeConnection;
use crate::protocol::session::{Command, Log};
use std::time::Duration;

/// The log, and the nodes that follow it.
pub(super) struct Following {
    pub(super) log: Log,
    followers: NodeSet,
    /// The nodes among them whose votes count as they are. Whatever may change that takes the node
    /// out.
    pub(super) counting: NodeSet,
}

impl Following {
    pub(super) fn new(connections: &[NodeConnection]) -> Following {
        let node_key = connections
            .first()
            .and_then(|connection| connection.link.endpoint.handshake().node_key.clone());
        Following {
            log: Log::new(node_key),
            followers: NodeSet::EMPTY,
            counting: NodeSet::EMPTY,
        }
    }

    /// A node leaves the log, if it follows: it is to be asked something alone.
    pub(super) fn leave(
        &mut self,
        node: NodeId,
        connection: &mut NodeConnection,
        poll: &mut PollList,
    ) {
        if self.followers.contains(node) {
            self.followers.set(node, false);
            self.counting.set(node, false);
            connection.session.pipeline.leave(&self.log);
            poll.mark_stale(node);
        }
    }

    /// Lets a node follow the log if it can, and leave it if it cannot any more. True when it
    /// follows.
    pub(super) fn follow_or_leave(
        &mut self,
        node: NodeId,
        connection: &mut NodeConnection,
        poll: &mut PollList,
    ) -> bool {
        if !self.followers.contains(node) {
            if connection.may_follow(&self.log) {
                connection
                    .session
                    .follow(&mut self.log, self.followers.is_empty());
                self.followers.insert(node);
            }
        } else if !connection.session.is_alike(&self.log) {
            self.leave(node, connection, poll);
        }
        self.followers.contains(node)
    }

    /// Queues a command for these nodes: once in the log for those that follow, if all that follow
    /// are to be asked, and for each other one alone. Those that follow and need another form leave
    /// the log, and all of these if others follow that are not to be asked. So do those that are to
    /// be asked more than the others when they are looked at.
    pub(super) fn queue(
        &mut self,
        command: &Command<'_>,
        nodes: NodeSet,
        connections: &mut [NodeConnection],
        poll: &mut PollList,
        now: Timestamp,
    ) {
        let is_look_due = !command.operation.is_release() && self.log.is_look_due(now);
        let is_for_all = self.followers.without(nodes).is_empty();
        for node in self.followers.iter().filter(|&node| nodes.contains(node)) {
            let connection = &mut connections[node.index()];
            let is_asked_alike = !is_look_due || connection.session.has_asked_for_memory();
            if !(is_for_all
                && is_asked_alike
                && connection.session.takes_from_log(command.operation))
            {
                self.leave(node, connection, poll);
            }
        }
        let sharing = if is_for_all {
            self.followers
        } else {
            NodeSet::EMPTY
        };
        if !sharing.is_empty() {
            if is_look_due {
                // Whether the nodes that follow are still what they were.
                self.log.look(now);
                sharing
                    .iter()
                    .for_each(|node| connections[node.index()].session.looked_at(now));
            }
            self.log.append(command, now);
        }
        for node in nodes.without(sharing).iter() {
            connections[node.index()].queue(command, now);
        }
    }

    /// Lets nodes leave the log that have not answered in time, or are too far behind.
    pub(super) fn leave_late(
        &mut self,
        connections: &mut [NodeConnection],
        poll: &mut PollList,
        node_timeout: Duration,
        now: Timestamp,
    ) {
        if !self.is_late(node_timeout, now) {
            return;
        }
        self.cut_log(connections);
        if self.is_late(node_timeout, now) {
            for node in self.followers.iter() {
                let connection = &mut connections[node.index()];
                if connection.is_late(&self.log, now) {
                    self.leave(node, connection, poll);
                }
            }
            self.cut_log(connections);
        }
    }

    fn is_late(&self, node_timeout: Duration, now: Timestamp) -> bool {
        self.log.backlog().is_late(node_timeout, now)
    }

    /// Forgets what all nodes that follow have answered.
    pub(super) fn cut_log(&mut self, connections: &[NodeConnection]) {
        self.log.cut(
            self.followers
                .iter()
                .filter_map(|node| connections[node.index()].session.pipeline.cursor()),
        );
    }
}
