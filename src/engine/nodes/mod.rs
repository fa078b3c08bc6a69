//! All connections of one client and its rounds in flight: what the waiting threads drive in turn.
//!
//! Commands of all threads go to a node on its one connection, in order. Each reply is handed to
//! the round it belongs to. A node that cannot be asked votes with its fault at once, so that no
//! thread waits for it. Nothing here waits: sockets are written and read as far as they go, and the
//! [`driver`](super::driver) does the rest.
//!
//! [`requests`] begins the operations, [`connections`] queues their commands, [`dispatch`] hands
//! out the replies, [`vote_filter`] judges them, [`judging`] judges the nodes, [`pending`] keeps
//! what a node has not run, [`subscribers`] receives what calls that wait are told, and [`reactor`]
//! is what the driver asks.

mod connections;
mod dispatch;
mod incarnations;
mod judging;
mod pending;
mod poll_list;
mod reactor;
pub(crate) mod requests;
pub(crate) mod status;
pub(super) mod submission;
pub(super) mod subscribers;
#[cfg(test)]
mod tests;
mod vote_filter;

use super::driver::Reactor;
use super::node_connection::NodeConnection;
use super::node_connection::login::{Provider, Renewal, Use};
use super::rounds::{Purpose, RoundResult, Rounds};
use crate::algorithm::incarnation::Rules;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::pending_release::Settled;
use crate::algorithm::time::{Clock, Timestamp};
use crate::algorithm::vote::Vote;
use crate::events::event_queue::EventQueue;
use crate::events::node_states::NodeStates;
use crate::fault::credentials_error::CredentialsError;
use crate::fault::{Cause, Fault, Phase};
use crate::os::waker::Waker;
use crate::os::watch::Watch;
use crate::protocol::credentials::Credentials;
use crate::protocol::session::{Abandoned, HandshakeState, Log, Ticket};
use connections::Connections;
use incarnations::Incarnations;
use pending::UnsettledReleases;
use poll_list::PollList;
use std::sync::Arc;
use std::time::Duration;
use subscribers::Subscribers;

/// The connections and rounds of one client.
pub(super) struct Nodes {
    pub(super) connections: Connections,
    pub(super) rounds: Rounds,
    /// For how long nodes keep the key of a fenced lock.
    retention_millis: u64,
    pub(super) releases: UnsettledReleases,
    pub(super) subscribers: Subscribers,
    incarnations: Incarnations,
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
        let size = connections.len();
        let node_key = connections
            .first()
            .and_then(|connection| connection.link.endpoint.handshake().node_key.clone());
        Nodes {
            connections: Connections {
                each: connections,
                log: Log::new(node_key),
                followers: NodeSet::EMPTY,
                counting: NodeSet::EMPTY,
                unsent: NodeSet::EMPTY,
                queued_at: Timestamp::ORIGIN,
                blocked: NodeSet::EMPTY,
                poll: PollList::new(waker, size, config.spin),
                states: NodeStates::new(config.events.clone(), size, clock.now()),
                clock,
                node_timeout: config.node_timeout,
            },
            rounds: Rounds::new(size, config.events.clone()),
            retention_millis: u64::try_from(config.retention.as_millis()).unwrap_or(u64::MAX),
            releases: UnsettledReleases::default(),
            subscribers: Subscribers::new(size, config.release_notifications, config.events),
            incarnations: Incarnations::new(config.rules, size),
        }
    }

    /// Closes this process's copies of all connections, and sends nothing: after a fork, the parent
    /// goes on using them. Nothing is used here any more.
    pub(super) fn close_inherited(&mut self) {
        self.connections.poll.watch = None;
        self.connections
            .each
            .iter_mut()
            .for_each(NodeConnection::close_inherited);
        self.subscribers.connections.clear();
    }

    /// Processes what has happened to a connection since it was last used, and closes it if it
    /// exceeded a limit.
    fn refresh(&mut self, node: NodeId, now: Timestamp) {
        let due = self.connections[node].due(now);
        let was_open = self.connections[node].is_open();
        if !was_open || due < Timestamp::NEVER {
            if let Err(fault) = self.connections.changing(node).advance(now) {
                self.lose(node, fault, now);
            }
            // Another address is tried, which the driver does not poll for yet.
            self.connections.poll.record_change(due <= now);
            if self.connections[node].is_open() && !was_open {
                self.connections.unsent.insert(node);
            }
        }
        if self.connections[node].needs_read(now) {
            self.read_to_end(node, now);
        }
        if let Some(fault) = self.connections[node].exceeded_limit(now) {
            self.lose(node, fault, now);
        }
    }

    /// Polls without waiting, in place of a read of each connection.
    fn look(&mut self, now: Timestamp) {
        let mut watch = self.watch(false, now);
        Nodes::poll(&mut watch, Duration::ZERO);
        let readable = watch.readable;
        for node in self.connections.counting.without(readable).iter() {
            self.connections[node].session.incoming.read_at = now;
        }
        self.absorb(watch, now);
        for node in readable.iter() {
            if self.connections[node].is_open() {
                self.read_to_end(node, now);
            }
        }
    }

    /// Begins to connect, and queues the pending releases.
    fn open(&mut self, node: NodeId, now: Timestamp) -> Result<(), Fault> {
        // A server that is near, and has an address in numbers, is connected to at once: the drop
        // of a guard does not wait, and may be the last call.
        let connection = self.connections.changing(node);
        if let Err(fault) = connection.open(now).and_then(|()| connection.advance(now)) {
            self.lose(node, fault, now);
            return Err(fault);
        }
        self.connections.poll.record_change(true);
        self.releases
            .flush(node, &mut self.connections, &mut self.rounds, now);
        if self.connections[node].is_open() {
            self.connections.unsent.insert(node);
        }
        Ok(())
    }

    /// The provider of a node's credentials has returned. True when the server is asked to accept
    /// them.
    pub(super) fn on_credentials(
        &mut self,
        node: NodeId,
        returned: Result<Credentials, CredentialsError>,
        now: Timestamp,
    ) -> bool {
        if let Err(error) = returned {
            let fault = Fault::new(Phase::Handshake, Cause::Credentials(error));
            self.connections.report_credentials(node, fault);
        }
        let learned = match self.connections[node].learn_credentials(returned, now) {
            Ok(Use::Keep) => return false,
            Ok(used) => self.connections.apart(node).log_in(used, now),
            Err(fault) => Err(fault),
        };
        // Also where this is the node's vote: a thread that polls may wait for it.
        self.connections.poll.record_change(true);
        if let Err(fault) = learned {
            self.lose(node, fault, now);
            return false;
        }
        let is_open = self.connections[node].is_open();
        if is_open {
            self.connections.unsent.insert(node);
        }
        is_open
    }

    /// The server has accepted new credentials. A connection that is subscribed cannot log in anew.
    fn on_logged_in_anew(&mut self, node: NodeId) {
        self.connections.on_logged_in(node);
        self.subscribers
            .close(NodeSet::only(node), &mut self.connections.poll);
    }

    /// Closes a connection that has failed: each round that expects a reply gets the fault as the
    /// node's vote, and unanswered releases become pending. Where the server has closed a
    /// connection that was in use, what was not written is queued on another one, and so are
    /// questions (rule 2.11).
    fn lose(&mut self, node: NodeId, fault: Fault, now: Timestamp) {
        if self.connections.changing(node).asks_for_tls(fault, now) {
            return self.connections.poll.record_change(true);
        }
        // A server that rejects the client may close next; the rejection is more specific.
        let connection = &self.connections[node];
        let fault = match connection.session.standing() {
            HandshakeState::Rejected(rejection) => rejection,
            HandshakeState::Pending | HandshakeState::Accepted => connection.most_specific(fault),
        };
        let is_idle = self.connections.apart(node).is_idle_end(fault);
        let master = self.connections[node].named_master().cloned();
        let is_redirected = master.is_some();
        if !is_idle && !is_redirected {
            self.connections.filter(node).on_failure(fault, now);
        }
        let connection = self.connections.changing(node);
        let is_closed_in_use = connection.is_in_use() && fault.cause == Cause::Closed;
        let is_asked_anew = is_closed_in_use || is_redirected;
        let abandoned: Vec<_> = connection.session.abandon().collect();
        connection.close(fault, now);
        if let Some(master) = master {
            self.connections.follow_master(node, master);
            // An entry counts as dead where its channel has no subscriber.
            self.subscribers
                .close(NodeSet::only(node), &mut self.connections.poll);
        }
        self.connections
            .poll
            .forget_closed(node, &self.connections.each[node.index()]);
        self.subscribers
            .on_left(NodeSet::only(node), &mut self.connections.poll, now);
        let mut again = Vec::new();
        for (ticket, request) in abandoned {
            match request {
                // A question may be asked twice.
                Abandoned::Unwritten | Abandoned::Check
                    if is_asked_anew && self.rounds.resend(ticket, node) =>
                {
                    again.push(ticket);
                }
                // A replica has not run it.
                Abandoned::Acquire | Abandoned::Extend
                    if is_redirected && self.rounds.resend(ticket, node) =>
                {
                    again.push(ticket);
                }
                Abandoned::Unwritten
                | Abandoned::Acquire
                | Abandoned::Check
                | Abandoned::Extend => {
                    self.rounds.count(ticket, node, &Vote::Fault(fault));
                }
                Abandoned::Release => self.defer_abandoned(node, ticket, fault, is_asked_anew, now),
            }
        }
        if !again.is_empty() {
            self.queue_again(node, &again, fault, now);
        }
        self.on_silence(node, fault, is_idle, now);
    }

    /// Keeps a release that a lost connection left unanswered, if its key may be on the node. The
    /// node's vote is the fault. It has none yet if the release is sent at once on another
    /// connection: when the server has closed one that was in use, or has named the master.
    fn defer_abandoned(
        &mut self,
        node: NodeId,
        ticket: Ticket,
        fault: Fault,
        is_asked_anew: bool,
        now: Timestamp,
    ) {
        let Nodes {
            connections,
            rounds,
            releases,
            ..
        } = self;
        let is_needed = rounds
            .conditions(ticket)
            .is_some_and(|conditions| connections[node].may_hold(conditions));
        if !(is_needed && is_asked_anew && rounds.resend(ticket, node)) {
            rounds.vote(ticket, node, &Vote::Fault(fault));
        }
        match is_needed {
            true => releases.defer(node, ticket, None, connections, rounds, now),
            false => rounds.unrefer(ticket),
        }
    }

    /// Does what is due for pending releases: drops those whose keys have ended, makes connections
    /// again, sends.
    fn serve_pending(&mut self, now: Timestamp) {
        for node in self.releases.to_serve(&self.connections).iter() {
            if let Some(fault) = self.connections[node].exceeded_limit(now) {
                self.lose(node, fault, now);
            }
            if self.connections[node].pending_due() > now {
                continue;
            }
            if let Some(fault) = self.connections[node].retry_reason(now)
                && !self.connections[node].runs_releases()
            {
                self.lose(node, fault, now);
            }
            self.releases
                .flush(node, &mut self.connections, &mut self.rounds, now);
            let connection = &self.connections[node];
            if !connection.pending.is_empty()
                && connection.is_closed()
                && connection.health.may_ask(now).is_ok()
                && let Err(fault) = self.open(node, now)
            {
                // This is the node's vote in the releases that were to be sent on another
                // connection.
                for ticket in self.connections[node].pending.tickets() {
                    if self
                        .rounds
                        .round(ticket)
                        .is_some_and(|round| round.resent.contains(node))
                    {
                        self.rounds.vote(ticket, node, &Vote::Fault(fault));
                    }
                }
            }
            self.connections.on_queued(NodeSet::only(node), now);
        }
    }

    /// Ends the background releases whose deadlines are not after `last`: those that no thread
    /// waits for, and whose outcome is reported as an event. The votes decide such a round like any
    /// other. As no thread's deadline ends it, the next operation on the nodes, or the helper,
    /// counts the nodes that have not answered as timed out.
    pub(in crate::engine) fn expire_background(&mut self, last: Timestamp, now: Timestamp) {
        while let Some(ticket) = self.releases.take_late(last, &self.rounds) {
            self.expire(ticket, now);
        }
    }

    /// Begins to wait for releases.
    pub(in crate::engine) fn await_settled(&mut self, target: Settled, now: Timestamp) -> Ticket {
        let ticket = self.rounds.open(Purpose::Wait);
        self.releases.waits.push((ticket, target));
        // The driver has to bound its poll by what is due for releases.
        self.connections.poll.record_change(true);
        self.end_settled(now);
        ticket
    }

    /// Ends the waits for what has been reached.
    fn end_settled(&mut self, now: Timestamp) {
        let is_judging = self.incarnations.judging.is_some();
        self.releases
            .end_waits(is_judging, &self.connections, &mut self.rounds, now);
    }

    /// Writes what a connection's socket takes.
    fn write(&mut self, node: NodeId, now: Timestamp) {
        if let Err(fault) = self.connections.flush(node, now) {
            // The server may have sent the reason before it closed.
            if self.read(node, now) {
                self.lose(node, fault, now);
            }
        }
    }

    /// Writes and reads what a poll has found the connection ready for.
    fn serve(&mut self, node: NodeId, watch: &Watch, now: Timestamp) {
        let interest = watch.streams[node.index()].as_ref();
        if !interest.is_some_and(|interest| self.connections[node].is_on(&interest.stream)) {
            return;
        }
        if watch.writable.contains(node) {
            match self.connections.changing(node).advance(now) {
                Ok(()) => self.write(node, now),
                Err(fault) => self.lose(node, fault, now),
            }
        }
        if watch.readable.contains(node) && self.connections[node].is_open() {
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
        let now = self.connections.clock.now();
        for &(node, fault) in &result.faults {
            if fault.cause != Cause::Quarantined {
                self.connections.filter(node).on_failure(fault, now);
            }
        }
        result
    }
}
