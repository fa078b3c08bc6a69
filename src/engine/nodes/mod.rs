//! All connections of one client and its rounds in flight: what the waiting threads drive in turn.
//!
//! Commands of all threads go to a node on its one connection, in order. Each reply is handed to
//! the round it belongs to. A node that cannot be asked votes with its fault at once, so that no
//! thread waits for it. Nothing here waits: sockets are written and read as far as they go, and the
//! [`driver`](super::driver) does the rest.
//!
//! [`requests`] begins the operations, [`commands`] makes their commands, [`following`] queues
//! those, [`dispatch`] hands out the replies, [`vote_filter`] judges them, [`pending`] sends again
//! what a node has not run, [`subscribers`] receives what calls that wait are told, and [`reactor`]
//! is what the driver asks.

pub(super) mod commands;
mod dispatch;
mod following;
mod incarnations;
mod judging;
mod pending;
mod poll_list;
mod reactor;
pub(crate) mod requests;
pub(crate) mod status;
pub(super) mod submission;
pub(super) mod subscribers;
mod vote_filter;

use super::background_call::BackgroundCall;
use super::credentials::{Provider, Renewal};
use super::node_connection::login::Login;
use super::node_connection::{NodeConnection, Received};
use super::rounds::{Purpose, RoundResult, Rounds};
use crate::algorithm::incarnation::Rules;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::pending_release::Settled;
use crate::algorithm::time::{Clock, Timestamp};
use crate::algorithm::vote::Vote;
use crate::events::event::Event;
use crate::events::event_queue::EventQueue;
use crate::events::node_states::NodeStates;
use crate::fault::credentials_error::CredentialsError;
use crate::fault::{Cause, Fault, Phase};
use crate::os::transport::TransportConfig;
use crate::os::waker::Waker;
use crate::os::watch::Watch;
use crate::protocol::credentials::Credentials;
use crate::protocol::session::{Abandoned, HandshakeState, Ticket};
use commands::Commands;
use following::Following;
use incarnations::Incarnations;
use poll_list::PollList;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use subscribers::Subscribers;
use vote_filter::VoteFilter;

/// The connections and rounds of one client.
pub(super) struct Nodes {
    connections: Vec<NodeConnection>,
    pub(super) rounds: Rounds,
    clock: Arc<dyn Clock>,
    /// What is known of each node.
    states: NodeStates,
    commands: Commands,
    poll: PollList,
    releases: UnsettledReleases,
    /// The background releases that have no verdict yet, in the order of their deadlines.
    background: VecDeque<(Ticket, Timestamp)>,
    pub(super) subscribers: Subscribers,
    incarnations: Incarnations,
    following: Following,
}

/// The nodes that have releases to send, and the threads that wait until none is left.
struct UnsettledReleases {
    /// The nodes that have pending releases.
    pending: NodeSet,
    /// The nodes whose sockets did not take all bytes of the last write.
    blocked: NodeSet,
    /// The waits for releases, and what each of them waits for.
    waits: Vec<(Ticket, Settled)>,
    /// When a node last sent anything: releases may be behind other requests.
    heard_at: Timestamp,
}

/// The configuration of an engine, without its nodes.
pub(crate) struct EngineConfig {
    /// For how long the driver may poll without sleeping.
    pub(crate) spin: Duration,
    /// Whether releases are published and subscribed to.
    pub(crate) release_notifications: bool,
    /// For how long nodes keep the key of a fenced lock.
    pub(crate) retention: Duration,
    /// By what nodes are judged that remember something of themselves.
    pub(crate) rules: Rules,
    /// For how long a node is waited for.
    pub(crate) node_timeout: Duration,
    /// What nodes are logged in with whose URLs contain no password, if the program decides it.
    pub(crate) provider: Option<Provider>,
    /// Where certificates are in files: what is to be used from now on.
    pub(crate) renewal: Option<Renewal>,
    /// Where events are reported that concern no caller, if anywhere.
    pub(crate) events: Option<Arc<EventQueue>>,
}

impl Nodes {
    pub(super) fn new(
        connections: Vec<NodeConnection>,
        clock: Arc<dyn Clock>,
        waker: Arc<Waker>,
        config: EngineConfig,
    ) -> Nodes {
        let EngineConfig {
            spin,
            release_notifications,
            retention,
            rules,
            node_timeout,
            events,
            ..
        } = config;
        let size = connections.len();
        Nodes {
            following: Following::new(&connections),
            connections,
            rounds: Rounds::new(size, events.clone()),
            states: NodeStates::new(events.clone(), size, clock.now()),
            clock,
            commands: Commands::new(retention),
            poll: PollList::new(waker, size, spin),
            releases: UnsettledReleases {
                pending: NodeSet::EMPTY,
                blocked: NodeSet::EMPTY,
                waits: Vec::new(),
                heard_at: Timestamp::ORIGIN,
            },
            background: VecDeque::new(),
            subscribers: Subscribers::new(size, release_notifications, events),
            incarnations: Incarnations::new(rules, node_timeout, size),
        }
    }

    /// Closes this process's copies of all connections, and sends nothing: after a fork, the parent
    /// goes on using them. Nothing is used here any more.
    pub(super) fn close_inherited(&mut self) {
        self.poll.watch = None;
        self.connections
            .iter_mut()
            .for_each(NodeConnection::close_inherited);
        self.subscribers.connections.clear();
    }

    fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.connections.len()).map(NodeId::new)
    }

    fn node(&self, node: NodeId) -> &NodeConnection {
        &self.connections[node.index()]
    }

    /// The connection, to change its state or its stream: it is listed anew for the next poll. A
    /// function that only queues bytes can use `connections` directly, and must call
    /// [`Commands::on_queued`] or write the bytes.
    fn node_mut(&mut self, node: NodeId) -> &mut NodeConnection {
        self.poll.mark_stale(node);
        self.following.counting.set(node, false);
        &mut self.connections[node.index()]
    }

    /// The connection, to ask the node something alone: it leaves the log.
    fn apart(&mut self, node: NodeId) -> &mut NodeConnection {
        self.following
            .leave(node, &mut self.connections[node.index()], &mut self.poll);
        self.node_mut(node)
    }

    fn filter(&mut self, node: NodeId) -> VoteFilter<'_> {
        self.following.counting.set(node, false);
        let connection = &mut self.connections[node.index()];
        VoteFilter {
            node,
            connection,
            states: &mut self.states,
            clock: &*self.clock,
        }
    }

    /// Lets nodes leave the log that are late.
    fn leave_late(&mut self, now: Timestamp) {
        let timeout = self.incarnations.node_timeout;
        self.following
            .leave_late(&mut self.connections, &mut self.poll, timeout, now);
    }

    /// Processes what has happened to a connection since it was last used, and closes it if it
    /// exceeded a limit.
    fn refresh(&mut self, node: NodeId, now: Timestamp) {
        let was_open = self.node(node).is_open();
        let is_due = self.node(node).due(now) <= now;
        if let Err(fault) = self.node_mut(node).advance(now) {
            self.lose(node, fault, now);
        }
        // Another address is tried, which the driver does not poll for yet.
        self.poll.note_change(is_due);
        if self.node(node).is_open() && !was_open {
            self.commands.unsent.insert(node);
        }
        if self.node(node).needs_read(now) {
            // The end of a connection shows only when nothing is left before it.
            self.read_while(|received| received != Received::Nothing, node, now);
        }
        if let Some(fault) = self.node(node).exceeded_limit(now) {
            self.lose(node, fault, now);
        }
    }

    /// Begins to connect, and queues the pending releases.
    fn open(&mut self, node: NodeId, now: Timestamp) -> Result<(), Fault> {
        // A server that is near is connected to at once: the drop of a guard does not wait, and may
        // be the last call.
        let connection = self.node_mut(node);
        if let Err(fault) = connection.open(now).and_then(|()| connection.advance(now)) {
            self.lose(node, fault, now);
            return Err(fault);
        }
        self.poll.note_change(true);
        self.flush_pending(node, now);
        if self.node(node).is_open() {
            self.commands.unsent.insert(node);
        }
        Ok(())
    }

    /// Has connections to a node log in with what a provider returns.
    pub(super) fn log_in_by(&mut self, node: NodeId, provider: BackgroundCall) {
        self.node_mut(node).link.login = Some(Login::new(provider));
    }

    /// The provider of a node's credentials has returned.
    pub(super) fn on_credentials(
        &mut self,
        node: NodeId,
        returned: Result<Credentials, CredentialsError>,
        now: Timestamp,
    ) {
        if let Err(error) = returned {
            let fault = Fault::new(Phase::Handshake, Cause::Credentials(error));
            self.report_credentials(node, fault);
        }
        if let Err(fault) = self.apart(node).on_credentials(returned, now) {
            return self.lose(node, fault, now);
        }
        self.poll.note_change(true);
        if self.node(node).is_open() {
            self.commands.unsent.insert(node);
        }
    }

    /// Certificates have changed. Connections are protected by them from the next handshake on.
    pub(super) fn on_certificates(
        &mut self,
        changed: Result<Vec<TransportConfig>, CredentialsError>,
    ) {
        match changed {
            Ok(transports) => {
                for (connection, transport) in self.connections.iter_mut().zip(transports) {
                    connection.link.transport = transport;
                }
            }
            Err(error) => {
                let fault = Fault::new(Phase::Handshake, Cause::Credentials(error));
                for node in self.nodes() {
                    if !matches!(self.node(node).link.transport, TransportConfig::Plain) {
                        self.report_credentials(node, fault);
                    }
                }
            }
        }
    }

    /// The server has accepted new credentials. A connection that is subscribed cannot log in anew.
    fn on_logged_in_anew(&mut self, node: NodeId) {
        self.subscribers.close(NodeSet::only(node), &mut self.poll);
    }

    /// The server has refused credentials that were to replace others.
    fn on_login_refused(&mut self, node: NodeId, fault: Fault) {
        if let Some(login) = &mut self.node_mut(node).link.login {
            login.refused();
        }
        self.report_credentials(node, fault);
    }

    fn report_credentials(&self, node: NodeId, fault: Fault) {
        self.states.push(|names| Event::CredentialsFailed {
            node: names.node(node),
            fault: names.fault(node, fault),
        });
    }

    /// Closes a connection that has failed: each round that expects a reply gets the fault as the
    /// node's vote, and unanswered releases become pending. Where the server has closed a
    /// connection that was in use, what was not written is queued on another one (rule 2.11).
    fn lose(&mut self, node: NodeId, fault: Fault, now: Timestamp) {
        if self.node_mut(node).asks_for_tls(fault, now) {
            return self.poll.note_change(true);
        }
        // A server that rejects the client may close next; the rejection is more specific.
        let fault = match self.node(node).session.standing() {
            HandshakeState::Rejected(rejection) => rejection,
            HandshakeState::Pending | HandshakeState::Accepted => {
                self.node(node).most_specific(fault)
            }
        };
        let is_idle = self.apart(node).is_idle_end(fault);
        if !is_idle {
            self.filter(node).note_failure(fault, now);
        }
        let connection = self.node_mut(node);
        let is_closed_in_use = connection.is_in_use() && fault.cause == Cause::Closed;
        let abandoned: Vec<_> = connection.session.abandon().collect();
        connection.close(fault, now);
        self.poll
            .forget_closed(node, &self.connections[node.index()]);
        self.subscribers
            .note_left(NodeSet::only(node), &mut self.poll, now);
        let mut unwritten = Vec::new();
        for (ticket, request) in abandoned {
            match request {
                Abandoned::Unwritten if is_closed_in_use && self.rounds.resend(ticket, node) => {
                    unwritten.push(ticket);
                }
                Abandoned::Unwritten
                | Abandoned::Acquire
                | Abandoned::Check
                | Abandoned::Extend => {
                    self.rounds.count(ticket, node, &Vote::Fault(fault));
                }
                Abandoned::Release => {
                    self.defer_abandoned(node, ticket, fault, is_closed_in_use, now)
                }
            }
        }
        if !unwritten.is_empty() {
            self.queue_unwritten(node, &unwritten, fault, now);
        }
        self.on_silence(node, fault, is_idle, now);
    }

    /// Writes what a connection's socket takes.
    fn write(&mut self, node: NodeId, now: Timestamp) {
        if let Err(fault) = self.flush_node(node, now) {
            // The server may have sent the reason before it closed.
            if self.read(node, now) {
                self.lose(node, fault, now);
            }
        }
    }

    fn flush_node(&mut self, node: NodeId, now: Timestamp) -> Result<(), Fault> {
        let connection = &mut self.connections[node.index()];
        let flushed = connection.flush(&self.following.log, now);
        self.releases
            .blocked
            .set(node, connection.has_unsent(&self.following.log));
        match &flushed {
            Ok(wants_write) => self.poll.set_wants_write(node, *wants_write),
            // Some errors do not end the connection: it is polled until it takes the bytes.
            Err(_) => self.poll.mark_stale(node),
        }
        flushed.map(|_| ())
    }

    /// Writes and reads what a poll has found the connection ready for.
    fn serve(&mut self, node: NodeId, watch: &Watch, now: Timestamp) {
        let interest = watch.streams[node.index()].as_ref();
        if !interest.is_some_and(|interest| self.node(node).is_on(&interest.stream)) {
            return;
        }
        if watch.writable.contains(node) {
            match self.node_mut(node).advance(now) {
                Ok(()) => self.write(node, now),
                Err(fault) => self.lose(node, fault, now),
            }
        }
        if watch.readable.contains(node) && self.node(node).is_open() {
            self.read(node, now);
        }
    }

    /// The nodes that have not voted in a round that has no verdict.
    fn undecided(&self, ticket: Ticket) -> NodeSet {
        self.rounds
            .round(ticket)
            .map_or(NodeSet::EMPTY, |round| round.tally.undecided())
    }

    /// Asks every node whether it may vote, and begins to connect to those that there is no
    /// connection to.
    pub(in crate::engine) fn check(&mut self, now: Timestamp) -> Ticket {
        self.ask_alone(
            Purpose::Check,
            |session, ticket| session.check(ticket, now),
            now,
        )
    }

    /// The result of a check. The state of each node that failed notes its fault.
    pub(in crate::engine) fn conclude_check(&mut self, ticket: Ticket) -> RoundResult {
        let result = self.rounds.conclude(ticket);
        let now = self.clock.now();
        for &(node, fault) in result
            .faults
            .iter()
            .filter(|(_, fault)| fault.cause != Cause::Quarantined)
        {
            self.filter(node).note_failure(fault, now);
        }
        result
    }

    /// The nodes that vote and answer in time, as far as is known.
    pub(in crate::engine) fn voting(&mut self, now: Timestamp) -> NodeSet {
        self.leave_late(now);
        let votes = |node: &NodeId| self.states.is_up(*node) && self.node(*node).is_responsive(now);
        self.nodes().filter(votes).collect()
    }
}
