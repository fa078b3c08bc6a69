//! The connections of one client to servers that the test plays, driven step by step.

// There are no sockets in the simulator, where other unit tests are run too.
#![cfg(not(feature = "simulated"))]

use super::submission::{
    AttemptRecord, AttemptRequest, InTurn, KeyOrigin, LeaseRequest, Release, ReleaseScope,
};
use super::*;
use crate::algorithm::kind::Kind;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::quarantine::{Quarantine, RestartPolicy};
use crate::algorithm::time::{LeaseTime, Readings};
use crate::engine::tests::{MASTER, PlayedServer, Stopped, at, config, soon, ticket};
use crate::events::names::Names;
use crate::events::node_states::NodeMode;
use crate::os::background_call::BackgroundCall;
use crate::os::transport::TransportConfig;
use crate::protocol::endpoint::Endpoint;
use crate::protocol::lock_key::LockKey;

mod judging;
mod polling;
mod replies;
mod requests;
mod subscribers;

const NODE_TIMEOUT: Duration = Duration::from_millis(100);
const TTL: Duration = Duration::from_secs(10);
const EVERYWHERE: ReleaseScope = ReleaseScope::Everywhere { stands_for: None };

fn node(index: usize) -> NodeId {
    NodeId::new(index)
}

fn key() -> LockKey {
    LockKey::One("k".into())
}

fn token() -> OwnerToken {
    OwnerToken::from_entropy([1; OwnerToken::ENTROPY])
}

/// A lock that has been held since 1 ms.
fn record(reached: NodeSet) -> AttemptRecord {
    AttemptRecord {
        token: token(),
        t0: Readings {
            steady: at(1),
            lease: LeaseTime::ORIGIN,
        },
        reached,
        origin: KeyOrigin::Here,
        departure: None,
        kind: Kind::Plain,
    }
}

/// A client, and its servers.
struct Cluster {
    nodes: Nodes,
    servers: Vec<PlayedServer>,
    events: Arc<EventQueue>,
}

impl Cluster {
    /// Not connected.
    fn of(count: usize) -> Cluster {
        Cluster::with(count, RestartPolicy::Off, |endpoint| endpoint)
    }

    fn with(count: usize, policy: RestartPolicy, change: fn(Endpoint) -> Endpoint) -> Cluster {
        let servers: Vec<_> = (0..count).map(|_| PlayedServer::new()).collect();
        let names: Vec<String> = (0..count).map(|index| format!("node {index}")).collect();
        let events = Arc::new(EventQueue::new(
            Arc::new(Names::new(&names, "")),
            None,
            true,
        ));
        let waker = Arc::new(Waker::new().unwrap());
        let connect = |(index, server): (usize, &PlayedServer)| {
            NodeConnection::new(
                node(index),
                change(Endpoint::parse(&server.url()).unwrap()),
                TransportConfig::Plain,
                Quarantine::new(policy, TTL),
                NODE_TIMEOUT,
                Arc::clone(&waker),
            )
        };
        let connections = servers.iter().enumerate().map(connect).collect();
        let config = EngineConfig {
            events: Some(Arc::clone(&events)),
            ..config(Rules::new(policy, TTL), NODE_TIMEOUT)
        };
        let nodes = Nodes::new(connections, Arc::new(Stopped(at(1))), waker, config);
        Cluster {
            nodes,
            servers,
            events,
        }
    }

    /// All connected, and with one lock held since then.
    fn in_use(count: usize, now: Timestamp) -> Cluster {
        let mut cluster = Cluster::of(count);
        let ticket = cluster.acquire(now);
        for index in 0..count {
            cluster.welcome(index);
            cluster.servers[index].received();
            cluster.servers[index].send("+OK\r\n");
        }
        cluster.await_grants(ticket, NodeSet::first(count), now);
        cluster.nodes.rounds.conclude(ticket);
        cluster.delivered();
        cluster
    }

    /// Accepts a connection, and replies to its handshake.
    fn welcome(&mut self, index: usize) {
        self.servers[index].accept();
        self.servers[index].introduce(index, MASTER);
    }

    /// Queues an attempt, and writes it.
    fn acquire(&mut self, now: Timestamp) -> Ticket {
        let ticket = self.queue(now);
        self.nodes.flush();
        ticket
    }

    fn queue(&mut self, now: Timestamp) -> Ticket {
        self.attempt(Kind::Plain, None, now)
    }

    fn attempt(&mut self, kind: Kind, in_turn: Option<InTurn>, now: Timestamp) -> Ticket {
        let request = AttemptRequest {
            key: key(),
            token: token(),
            ttl_millis: 1000,
            kind,
            in_turn,
        };
        self.nodes.acquire(&request, now)
    }

    /// Polls once, and takes what has arrived.
    fn step(&mut self, now: Timestamp) {
        let mut watch = self.nodes.watch(true, now);
        Nodes::poll(&mut watch, Duration::from_millis(1));
        self.nodes.absorb(watch, now);
        self.nodes.flush();
    }

    /// A node ends its connection, which is read.
    fn end(&mut self, index: usize, now: Timestamp) {
        self.servers[index].end();
        self.drive(now, |nodes| nodes.connections[node(index)].is_closed());
    }

    fn drive(&mut self, now: Timestamp, mut is_done: impl FnMut(&Nodes) -> bool) {
        soon(|| {
            self.step(now);
            is_done(&self.nodes).then_some(())
        });
    }

    /// The nodes whose grants count so far.
    fn granted(&self, ticket: Ticket) -> NodeSet {
        self.nodes.rounds.round(ticket).unwrap().tally.granted()
    }

    /// Drives until the grants of exactly these nodes count.
    fn await_grants(&mut self, ticket: Ticket, granted: NodeSet, now: Timestamp) {
        self.drive(now, |nodes| {
            nodes.rounds.round(ticket).unwrap().tally.granted() == granted
        });
    }

    /// The nodes that have failed so far.
    fn faulted(&self, ticket: Ticket) -> NodeSet {
        self.nodes.rounds.round(ticket).unwrap().tally.faulted()
    }

    /// The events since the last ones.
    fn delivered(&self) -> Vec<String> {
        let mut delivered = Vec::new();
        self.events
            .deliver(usize::MAX, |event| delivered.push(event.to_string()));
        delivered
    }

    /// Releases the lock that has been held since 1 ms.
    fn release(&mut self, scope: ReleaseScope, reached: NodeSet, now: Timestamp) -> Ticket {
        self.release_attempt(record(reached), scope, now)
    }

    fn release_attempt(
        &mut self,
        attempt: AttemptRecord,
        scope: ReleaseScope,
        now: Timestamp,
    ) -> Ticket {
        let release = Release {
            key: key(),
            attempt,
            scope,
            key_lasts: TTL,
        };
        let ticket = self.nodes.release(&release, now);
        self.nodes.flush();
        ticket
    }
}

#[test]
fn a_connection_that_ends_while_it_owes_nothing_is_no_failure_of_its_node() {
    let mut cluster = Cluster::in_use(3, at(1));
    cluster.end(0, at(2));
    assert!(cluster.nodes.connections.states.is_up(node(0)));
    let watch = cluster.nodes.connections.poll.watch.as_ref().unwrap();
    assert!(watch.streams[0].is_none(), "the list does not keep it open");
    assert!(watch.streams[1].is_some());
    // One with a request that was written is one: it is not known what has become of it.
    let ticket = cluster.acquire(at(2));
    cluster.end(1, at(2));
    assert!(!cluster.nodes.connections.states.is_up(node(1)));
    assert!(cluster.faulted(ticket).contains(node(1)));
}

#[test]
fn what_was_not_written_is_sent_on_another_connection_once() {
    let mut cluster = Cluster::in_use(3, at(1));
    let ticket = cluster.queue(at(1));
    for is_again in [true, false] {
        cluster.servers[0].end();
        soon(|| {
            cluster.nodes.read(node(0), at(2));
            let is_over = cluster.faulted(ticket).contains(node(0));
            let is_anew = cluster.nodes.connections[node(0)].is_connecting();
            (is_over || is_anew).then_some(())
        });
        assert_eq!(cluster.faulted(ticket).contains(node(0)), !is_again);
        if is_again {
            cluster.welcome(0);
            cluster.drive(at(2), |nodes| nodes.connections[node(0)].is_in_use());
            assert!(cluster.servers[0].received().contains("SET"));
        }
    }
}

#[test]
fn a_question_is_asked_again_on_another_connection_though_it_was_written() {
    for ask in [
        (|nodes: &mut Nodes| nodes.check(at(1))) as fn(&mut Nodes) -> Ticket,
        |nodes| nodes.inspect("k", false, at(1)),
    ] {
        let mut cluster = Cluster::in_use(3, at(1));
        let ticket = ask(&mut cluster.nodes);
        cluster.nodes.flush();
        let asked = cluster.servers[0].received();
        cluster.servers[0].end();
        cluster.drive(at(2), |nodes| nodes.connections[node(0)].is_connecting());
        cluster.welcome(0);
        cluster.drive(at(2), |nodes| nodes.connections[node(0)].is_open());
        let again = cluster.servers[0].received();
        let question = asked.rsplit("*2").next().unwrap();
        assert!(again.ends_with(question), "{again:?} {question:?}");
        assert!(cluster.faulted(ticket).is_empty());
        // Once, however long the other one has lasted.
        cluster.servers[0].end();
        cluster.drive(at(2000), |nodes| !nodes.connections[node(0)].is_open());
        assert_eq!(cluster.faulted(ticket), NodeSet::only(node(0)));
    }
}

#[test]
fn a_deadline_leaves_no_vote_unread_and_the_others_late() {
    let mut cluster = Cluster::in_use(3, at(1));
    let ticket = cluster.acquire(at(2));
    cluster.nodes.rounds.set_soft_deadline(ticket, true);
    cluster.nodes.expire(ticket, at(150));
    assert!(cluster.faulted(ticket).is_empty());
    cluster.nodes.rounds.set_soft_deadline(ticket, false);
    cluster.servers[0].received();
    cluster.servers[0].send("+OK\r\n");
    // It has arrived when the same bytes could be read.
    soon(|| {
        cluster.nodes.read(node(0), at(150));
        let round = cluster.nodes.rounds.round(ticket).unwrap();
        (!round.tally.granted().is_empty()).then_some(())
    });
    cluster.nodes.expire(ticket, at(150));
    assert!(cluster.nodes.rounds.is_decided(ticket));
    assert_eq!(
        cluster.faulted(ticket),
        [1, 2].map(node).into_iter().collect()
    );
    assert!(
        cluster
            .nodes
            .rounds
            .conclude(ticket)
            .faults
            .iter()
            .all(|(_, fault)| { fault.cause == Cause::TimedOut })
    );
}

#[test]
fn so_many_nodes_that_deny_messages_that_no_quorum_arrives_are_named() {
    for (count, denied, is_too_many) in [
        (1, 1, true),
        (3, 1, false),
        (3, 2, true),
        (4, 1, false),
        (4, 2, true),
        (5, 2, false),
        (5, 3, true),
    ] {
        let mut cluster = Cluster::of(count);
        let denied = NodeSet::first(denied);
        cluster.nodes.subscribers.subscribe_denied = denied;
        let named = cluster.nodes.denied_subscriptions();
        assert_eq!(named, is_too_many.then_some(denied), "of {count}");
    }
}

#[test]
fn an_attempt_depends_on_connections_that_are_made_while_fewer_than_a_quorum_are_there() {
    let mut cluster = Cluster::of(4);
    assert!(
        !cluster.nodes.connections.have_to_be_made(at(1)),
        "none is made"
    );
    cluster.acquire(at(1));
    for ready in 0..4 {
        let have_to_be_made = cluster.nodes.connections.have_to_be_made(at(1));
        assert_eq!(have_to_be_made, ready < 3, "{ready} of 4");
        cluster.welcome(ready);
        cluster.servers[ready].send("+OK\r\n");
        cluster.drive(at(1), |nodes| {
            nodes.connections[node(ready)].may_follow(&nodes.connections.log)
                || nodes.connections.followers.contains(node(ready))
        });
        let voting = cluster.nodes.connections.voting(at(1));
        assert_eq!(voting, NodeSet::first(ready + 1));
    }
    assert!(!cluster.nodes.connections.have_to_be_made(at(1)));
    // Nodes that are late do not vote.
    cluster.acquire(at(1));
    assert_eq!(cluster.nodes.connections.voting(at(200)), NodeSet::EMPTY);
}

#[test]
fn why_credentials_are_not_replaced_is_reported_once() {
    let cluster = &mut Cluster::of(3);
    let refused = Fault::new(Phase::Handshake, Cause::Auth);
    let failed = Fault::new(
        Phase::Handshake,
        Cause::Credentials(CredentialsError::Failed),
    );
    let provider = BackgroundCall::start("test", || None).unwrap();
    cluster.nodes.connections.log_in_by(node(1), provider);
    assert!(cluster.nodes.connections[node(1)].link.login.is_some());
    let mut reported = |report: &mut dyn FnMut(&mut Nodes)| {
        report(&mut cluster.nodes);
        cluster.delivered().len()
    };
    for (fault, count) in [(refused, 1), (refused, 0), (failed, 1)] {
        let times = reported(&mut |nodes| nodes.connections.report_credentials(node(1), fault));
        assert_eq!(times, count);
    }
    let accepted = reported(&mut |nodes| nodes.on_logged_in_anew(node(1)));
    assert_eq!(accepted, 0);
    let refused = reported(&mut |nodes| nodes.connections.on_login_refused(node(1), failed));
    assert_eq!(refused, 1, "it was accepted meanwhile");
    let unusable = || Err(CredentialsError::Failed);
    let certificates = reported(&mut |nodes| nodes.connections.on_certificates(unusable()));
    assert_eq!(certificates, 0, "no node speaks TLS");
    let returned = Err(CredentialsError::Failed);
    assert!(!cluster.nodes.on_credentials(node(2), returned, at(1)));
    assert_eq!(cluster.delivered().len(), 1);
}

#[test]
fn a_master_that_is_named_is_reported_and_followed() {
    let mut cluster = Cluster::in_use(3, at(1));
    cluster.end(1, at(2));
    let master = cluster.servers[0].as_master();
    for times in [1, 0] {
        let connections = &mut cluster.nodes.connections;
        connections.follow_master(node(1), master.clone());
        assert_eq!(cluster.delivered().len(), times);
    }
    assert!(cluster.nodes.connections[node(1)].named_master().is_none());
}

/// They are the parent's.
#[test]
fn the_connections_of_another_process_are_closed_and_nothing_is_sent() {
    let mut cluster = Cluster::in_use(3, at(1));
    cluster.queue(at(1));
    cluster.nodes.close_inherited();
    assert!(
        cluster
            .nodes
            .connections
            .each
            .iter()
            .all(NodeConnection::is_closed)
    );
    assert!(cluster.nodes.connections.poll.watch.is_none());
    for server in &mut cluster.servers {
        assert_eq!(server.received(), "");
    }
}

#[test]
fn a_node_is_up_when_it_votes_in_time_and_in_quarantine_until_that_ends() {
    let mut cluster = Cluster::in_use(3, at(1));
    let failed = Fault::new(Phase::Reply, Cause::TimedOut);
    let mut answers = |prepare: &dyn Fn(&mut Connections), now| {
        let connections = &mut cluster.nodes.connections;
        connections.states.mark_down(node(0), failed, at(1));
        prepare(connections);
        connections.filter(node(0)).on_answer(now);
        let state = connections.states.of(node(0)).state;
        connections.states.clear_refusing(node(0));
        state
    };
    assert_eq!(answers(&|_| {}, at(1)), NodeMode::Up);
    let refuse = |connections: &mut Connections| {
        connections.states.mark_refusing(node(0), failed, at(1));
    };
    assert_eq!(answers(&refuse, at(1)), NodeMode::Down);
    let ask = |connections: &mut Connections| {
        connections.apart(node(0)).session.check(ticket(9), at(1));
    };
    assert_eq!(answers(&ask, at(200)), NodeMode::Down, "it is late");
    let restart = |connections: &mut Connections| {
        let quarantine = &mut connections[node(0)].quarantine;
        assert!(quarantine.wait_by_note(TTL, [at(1); 2], at(1)));
    };
    assert_eq!(answers(&restart, at(1)), NodeMode::Quarantined);
    let be_up = |connections: &mut Connections| connections.states.mark_up(node(0), at(1));
    assert_eq!(answers(&be_up, at(1)), NodeMode::Quarantined);
}

#[test]
fn a_node_that_does_not_permit_messages_is_reported_once() {
    let mut cluster = Cluster::of(3);
    let denied = Fault::new(Phase::Reply, Cause::NoPermission);
    for (index, times) in [(0, 1), (0, 0), (1, 1)] {
        let subscribers = &mut cluster.nodes.subscribers;
        subscribers.on_publish_denied(node(index), denied);
        assert_eq!(cluster.delivered().len(), times);
    }
}

#[test]
fn a_check_notes_why_nodes_may_not_vote_and_not_that_they_wait() {
    let mut cluster = Cluster::in_use(3, at(1));
    let ticket = cluster.nodes.check(at(1));
    let rounds = &mut cluster.nodes.rounds;
    for (index, cause) in [(0, Cause::Quarantined), (1, Cause::OutOfMemory)] {
        let fault = Fault::new(Phase::Reply, cause);
        rounds.vote(ticket, node(index), &Vote::Fault(fault));
    }
    assert_eq!(cluster.nodes.conclude_check(ticket).faults.len(), 2);
    let up = |index| cluster.nodes.connections.states.is_up(node(index));
    assert_eq!([0, 1, 2].map(up), [true, false, true]);
}
