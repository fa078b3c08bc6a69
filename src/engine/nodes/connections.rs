//! The connections of all nodes: which of them follow the log of commands, and which are apart.
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
use super::vote_filter::VoteFilter;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::time::{Clock, Timestamp};
use crate::engine::node_connection::NodeConnection;
use crate::engine::node_connection::login::Login;
use crate::events::event::Event;
use crate::events::node_states::NodeStates;
use crate::fault::credentials_error::CredentialsError;
use crate::fault::{Cause, Fault, Phase};
use crate::os::background_call::BackgroundCall;
use crate::os::transport::TransportConfig;
use crate::protocol::moved::NamedMaster;
use crate::protocol::session::{Command, Log};
use std::ops::{Index, IndexMut};
use std::sync::Arc;
use std::time::Duration;

/// The connections, and what a change to one of them concerns.
pub(in crate::engine) struct Connections {
    /// By node.
    pub(super) each: Vec<NodeConnection>,
    pub(super) log: Log,
    /// The nodes that follow the log.
    pub(in crate::engine) followers: NodeSet,
    /// The nodes among them whose votes count as they are. Whatever may change that takes the node
    /// out.
    pub(super) counting: NodeSet,
    /// The nodes that something was queued for which was not written yet.
    pub(super) unsent: NodeSet,
    /// When the latest of it was queued.
    pub(super) queued_at: Timestamp,
    /// The nodes whose sockets did not take all bytes of the last write.
    pub(super) blocked: NodeSet,
    pub(super) poll: PollList,
    /// What is known of each node.
    pub(super) states: NodeStates,
    pub(super) clock: Arc<dyn Clock>,
    /// For how long a node is waited for.
    pub(super) node_timeout: Duration,
}

impl Index<NodeId> for Connections {
    type Output = NodeConnection;

    fn index(&self, node: NodeId) -> &NodeConnection {
        &self.each[node.index()]
    }
}

/// To queue bytes, which [`Connections::on_queued`] or a flush must follow. What changes more calls
/// [`Connections::changing`].
impl IndexMut<NodeId> for Connections {
    fn index_mut(&mut self, node: NodeId) -> &mut NodeConnection {
        &mut self.each[node.index()]
    }
}

impl Connections {
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.each.len()).map(NodeId::new)
    }

    /// The connection, to change its state or its stream: it is listed anew for the next poll.
    pub(super) fn changing(&mut self, node: NodeId) -> &mut NodeConnection {
        self.poll.mark_stale(node);
        self.counting.set(node, false);
        &mut self[node]
    }

    /// The connection, to ask the node something alone: it leaves the log.
    pub(super) fn apart(&mut self, node: NodeId) -> &mut NodeConnection {
        self.leave(node);
        self.changing(node)
    }

    /// The nodes that can be asked without another look at their connections: their votes count as
    /// they are, and a poll a moment ago would have shown the end of one.
    pub(super) fn ready(&self, now: Timestamp) -> NodeSet {
        if self.poll.is_fresh(now) {
            self.counting
        } else {
            NodeSet::EMPTY
        }
    }

    pub(super) fn filter(&mut self, node: NodeId) -> VoteFilter<'_> {
        self.counting.set(node, false);
        VoteFilter {
            node,
            connection: &mut self.each[node.index()],
            states: &mut self.states,
            clock: &*self.clock,
        }
    }

    /// A node leaves the log, if it follows: it is to be asked something alone.
    fn leave(&mut self, node: NodeId) {
        if self.followers.contains(node) {
            self.followers.set(node, false);
            self.counting.set(node, false);
            self.each[node.index()].session.pipeline.leave(&self.log);
            self.poll.mark_stale(node);
        }
    }

    /// Lets a node follow the log if it can, and leave it if it cannot any more. True when it
    /// follows.
    pub(super) fn follow_or_leave(&mut self, node: NodeId) -> bool {
        let connection = &mut self.each[node.index()];
        if !self.followers.contains(node) {
            if connection.may_follow(&self.log) {
                connection
                    .session
                    .follow(&mut self.log, self.followers.is_empty());
                self.followers.insert(node);
            }
        } else if !connection.session.is_alike(&self.log) {
            self.leave(node);
        }
        self.followers.contains(node)
    }

    /// Queues a command for these nodes: once in the log for those that follow, if all that follow
    /// are to be asked, and for each other one alone. Those that follow and need another form leave
    /// the log, and all of these if others follow that are not to be asked. So do those that are to
    /// be asked more than the others when they are looked at.
    pub(super) fn queue(&mut self, command: &Command<'_>, nodes: NodeSet, now: Timestamp) {
        let is_look_due = !command.operation.is_release() && self.log.is_look_due(now);
        let is_for_all = self.followers.without(nodes).is_empty();
        for node in self.followers.iter().filter(|&node| nodes.contains(node)) {
            let connection = &self[node];
            let is_asked_alike = !is_look_due || connection.session.has_asked_for_memory();
            if !(is_for_all && is_asked_alike && connection.session.takes_from_log(command)) {
                self.leave(node);
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
                    .for_each(|node| self[node].session.looked_at(now));
            }
            self.log.append(command, now);
        }
        for node in nodes.without(sharing).iter() {
            self[node].queue(command, now);
        }
        self.on_queued(nodes, now);
    }

    /// Something was queued for these nodes.
    pub(super) fn on_queued(&mut self, nodes: NodeSet, now: Timestamp) {
        self.unsent = self.unsent.union(nodes);
        self.queued_at = self.queued_at.max(now);
    }

    /// Lets nodes leave the log that have not answered in time, or are too far behind.
    pub(super) fn leave_late(&mut self, now: Timestamp) {
        if !self.is_log_late(now) {
            return;
        }
        self.cut_log();
        if self.is_log_late(now) {
            for node in self.followers.iter() {
                if self[node].is_late(&self.log, now) {
                    self.leave(node);
                }
            }
            self.cut_log();
        }
    }

    fn is_log_late(&self, now: Timestamp) -> bool {
        self.log.backlog().is_late(self.node_timeout, now)
    }

    /// Forgets what all nodes that follow have answered.
    pub(super) fn cut_log(&mut self) {
        let cursors = self
            .followers
            .iter()
            .filter_map(|node| self.each[node.index()].session.pipeline.cursor());
        self.log.cut(cursors);
    }

    /// Writes what a connection's socket takes.
    #[inline]
    pub(super) fn flush(&mut self, node: NodeId, now: Timestamp) -> Result<(), Fault> {
        let connection = &mut self.each[node.index()];
        let flushed = connection.flush(&self.log, now);
        self.blocked.set(node, connection.has_unsent(&self.log));
        match &flushed {
            Ok(wants_write) => self.poll.set_wants_write(node, *wants_write),
            // Some errors do not end the connection: it is polled until it takes the bytes.
            Err(_) => self.poll.mark_stale(node),
        }
        flushed.map(|_| ())
    }

    /// Whether a node has not answered a release.
    pub(super) fn await_release(&self) -> bool {
        self.each
            .iter()
            .any(|connection| connection.awaits_release(&self.log))
    }

    /// The nodes that have not run all releases, each with what keeps it from that.
    pub(in crate::engine) fn unsettled(&self) -> Vec<(NodeId, Fault)> {
        let fault = |node: NodeId| {
            let connection = &self[node];
            let is_left = !connection.pending.is_empty() || connection.awaits_release(&self.log);
            let late = Fault::new(connection.phase(), Cause::TimedOut);
            let fault = if connection.runs_releases() {
                connection.pending.refusal().unwrap_or(late)
            } else {
                connection.health.fault()
            };
            is_left.then_some((node, fault))
        };
        self.nodes().filter_map(fault).collect()
    }

    /// Whether an attempt that began now would depend on connections that are still being made:
    /// fewer than a quorum can answer without them.
    pub(in crate::engine) fn have_to_be_made(&self, now: Timestamp) -> bool {
        let ready = self
            .each
            .iter()
            .filter(|connection| connection.is_responsive(now));
        ready.count() <= self.each.len() / 2 && self.are_connecting()
    }

    /// Whether a node is being connected to.
    pub(super) fn are_connecting(&self) -> bool {
        self.each.iter().any(NodeConnection::is_connecting)
    }

    /// The nodes that vote and answer in time, as far as is known.
    pub(in crate::engine) fn voting(&mut self, now: Timestamp) -> NodeSet {
        self.leave_late(now);
        let votes = |node: &NodeId| self.states.is_up(*node) && self[*node].is_responsive(now);
        self.nodes().filter(votes).collect()
    }

    /// One server has one vote, however many URLs lead to it: the one that answered first (rule
    /// 7.3). The second one is rejected, whatever its place in the list, because the first may have
    /// voted already.
    pub(super) fn reject_duplicate(&mut self, node: NodeId, now: Timestamp) {
        let Some(run_id) = self[node].run_id(now) else {
            return;
        };
        let is_same = |&other: &NodeId| other != node && self[other].run_id(now) == Some(run_id);
        if let Some(first) = self.nodes().find(is_same) {
            let fault = Fault::new(Phase::Handshake, Cause::Duplicate(first.index()));
            self.changing(node).reject(fault, now);
            self.filter(node).on_failure(fault, now);
        }
    }

    /// Has connections lead to the master that a server of the node has named.
    pub(super) fn follow_master(&mut self, node: NodeId, master: NamedMaster) {
        let connection = self.changing(node);
        let replica = connection.session.identity().run_id();
        connection.quarantine.moved(replica);
        let followed = connection.link.follow(master);
        if let Some(address) = followed.map(ToString::to_string) {
            self.states.push(|names| Event::NodeMoved {
                node: names.node(node),
                master: address.into(),
            });
        }
    }

    /// Has connections to a node log in with what a provider returns.
    pub(in crate::engine) fn log_in_by(&mut self, node: NodeId, provider: BackgroundCall) {
        self.changing(node).link.login = Some(Login::new(provider));
    }

    /// The server has refused credentials that were to replace others.
    pub(super) fn on_login_refused(&mut self, node: NodeId, fault: Fault) {
        if let Some(login) = &mut self.changing(node).link.login {
            login.refused();
        }
        self.report_credentials(node, fault);
    }

    /// The server has accepted the credentials of the provider, if there is one.
    pub(super) fn on_logged_in(&mut self, node: NodeId) {
        self.changing(node)
            .link
            .login
            .iter_mut()
            .for_each(Login::accepted);
    }

    /// Reports why credentials are not replaced, unless the same was reported since they were.
    pub(super) fn report_credentials(&mut self, node: NodeId, fault: Fault) {
        let login = &mut self.changing(node).link.login;
        if login.as_mut().is_some_and(|login| !login.is_news(fault)) {
            return;
        }
        self.states.push(|names| Event::CredentialsFailed {
            node: names.node(node),
            fault: names.fault(node, fault),
        });
    }

    /// Certificates have changed. Connections are protected by them from the next handshake on.
    pub(in crate::engine) fn on_certificates(
        &mut self,
        changed: Result<Vec<TransportConfig>, CredentialsError>,
    ) {
        match changed {
            Ok(transports) => {
                for (connection, transport) in self.each.iter_mut().zip(transports) {
                    connection.link.transport = transport;
                }
            }
            Err(error) => {
                let fault = Fault::new(Phase::Handshake, Cause::Credentials(error));
                for node in self.nodes() {
                    if !matches!(self[node].link.transport, TransportConfig::Plain) {
                        self.report_credentials(node, fault);
                    }
                }
            }
        }
    }
}
