//! What is polled, for how long, what ends a poll, and what is read after it.

use super::*;
use crate::engine::busy_poll::Spin;
#[cfg(feature = "embedded-tls")]
use crate::engine::tests::by_tls;
use crate::engine::tests::interrupt;
use std::{io, thread};

impl Cluster {
    /// Whether what has happened since the list was taken ends the poll.
    pub(super) fn ends_poll(&mut self, mut watch: Box<Watch>, now: Timestamp) -> bool {
        self.nodes.interrupt();
        Nodes::poll(&mut watch, Duration::ZERO);
        let is_ended = watch.woken;
        self.nodes.absorb(watch, now);
        is_ended
    }

    /// All servers reply, and nothing is read.
    fn reply_all(&mut self, reply: &str, now: Timestamp) {
        for server in &mut self.servers {
            server.received();
            server.send(reply);
        }
        let all = NodeSet::first(self.servers.len());
        soon(|| {
            let mut watch = self.nodes.watch(true, now);
            Nodes::poll(&mut watch, Duration::from_millis(1));
            (watch.readable == all).then_some(())
        });
    }
}

#[test]
fn a_thread_that_is_alone_spins_unless_its_wait_is_long_or_not_urgent() {
    let mut cluster = Cluster::in_use(1, at(1));
    cluster.nodes.connections.poll.spin = Spin::new(Duration::from_micros(1));
    let spins = |nodes: &mut Nodes, alone| !nodes.watch(alone, at(2)).spin.is_zero();
    assert!(spins(&mut cluster.nodes, true) && !spins(&mut cluster.nodes, false));
    let ticket = cluster.nodes.await_work(at(2));
    assert!(!spins(&mut cluster.nodes, true));
    cluster.nodes.leave_work(ticket);
    assert!(spins(&mut cluster.nodes, true));
    let registry = &mut cluster.nodes.subscribers.registry;
    let (_, call) = registry.enter(&interrupt(), 1);
    registry.sleep(call, ticket);
    assert!(!spins(&mut cluster.nodes, true));
}

#[test]
fn whether_a_thread_spins_depends_on_how_long_it_has_waited() {
    let mut cluster = Cluster::of(1);
    cluster.nodes.connections.poll.spin = Spin::new(Duration::from_micros(1));
    let is_over = (0..100).any(|_| {
        cluster
            .nodes
            .record_solitary_wait(Duration::from_micros(100));
        cluster.nodes.watch(true, at(1)).spin.is_zero()
    });
    assert!(is_over, "the other way is tried");
}

#[test]
fn a_thread_that_waits_for_releases_can_be_interrupted() {
    let mut cluster = Cluster::in_use(1, at(1));
    cluster.release(EVERYWHERE, NodeSet::first(1), at(2));
    let ticket = cluster.nodes.await_settled(Settled::Answered, at(2));
    let watch = cluster.nodes.watch(true, at(2));
    assert!(!cluster.nodes.is_decided(ticket));
    cluster.nodes.interrupt_work();
    assert!(cluster.nodes.is_decided(ticket));
    assert!(cluster.ends_poll(watch, at(2)));
}

#[test]
fn a_poll_ends_when_all_are_to_end() {
    let mut cluster = Cluster::in_use(1, at(1));
    let watch = cluster.nodes.watch(true, at(2));
    assert!(!cluster.ends_poll(watch, at(2)));
    let watch = cluster.nodes.watch(true, at(2));
    cluster.nodes.end_polls();
    assert!(cluster.ends_poll(watch, at(2)));
}

#[test]
fn a_deadline_reads_what_has_arrived_until_the_round_is_decided() {
    let mut cluster = Cluster::in_use(3, at(1));
    let ticket = cluster.acquire(at(2));
    cluster.reply_all("+OK\r\n", at(2));
    cluster.nodes.expire(ticket, at(150));
    assert_eq!(cluster.granted(ticket), NodeSet::first(2));
    assert_eq!(
        cluster.nodes.undecided(ticket),
        NodeSet::only(node(2)),
        "it is not needed"
    );
}

#[test]
fn nothing_is_read_that_the_poll_has_not_found() {
    let mut cluster = Cluster::in_use(1, at(1));
    let ticket = cluster.acquire(at(2));
    let mut watch = cluster.nodes.watch(true, at(2));
    Nodes::poll(&mut watch, Duration::ZERO);
    cluster.reply_all("+OK\r\n", at(2));
    cluster.nodes.connections.changing(node(0));
    cluster.nodes.absorb(watch, at(9));
    assert!(!cluster.nodes.is_decided(ticket));
    cluster.step(at(9));
    assert!(cluster.nodes.is_decided(ticket));
}

/// The port is asked whether it speaks TLS, and does not answer.
#[test]
#[cfg(feature = "tls")]
fn a_connection_is_looked_at_when_its_time_has_come_though_its_stream_is_not_ready() {
    let mut cluster = Cluster::of(2);
    let ticket = cluster.acquire(at(1));
    cluster.servers[0].accept();
    cluster.servers[0].end();
    cluster.welcome(1);
    cluster.drive(at(1), |nodes| {
        let is_asked = nodes.connections[node(0)].due(at(1)) < Timestamp::NEVER;
        is_asked && nodes.connections[node(1)].is_in_use()
    });
    let watch = cluster.nodes.watch(true, at(1));
    assert_eq!(cluster.nodes.connections.poll.timed(), NodeSet::first(1));
    cluster.nodes.absorb(watch, at(50));
    assert!(cluster.faulted(ticket).is_empty());
    cluster.step(at(51));
    assert_eq!(cluster.faulted(ticket), NodeSet::first(1));
}

#[test]
fn a_node_is_listed_anew_when_it_is_to_become_writable() {
    let mut cluster = Cluster::in_use(1, at(1));
    cluster.nodes.watch(true, at(2));
    let poll = &mut cluster.nodes.connections.poll;
    for wants_write in [false, true] {
        poll.set_wants_write(node(0), wants_write);
        assert_eq!(!poll.timed().is_empty(), wants_write);
    }
}

#[test]
fn servers_are_looked_at_with_an_attempt_and_not_with_a_release() {
    let mut cluster = Cluster::in_use(1, at(1));
    cluster.acquire(at(2000));
    assert!(cluster.servers[0].received().contains("INFO"));
    cluster.release(EVERYWHERE, NodeSet::first(1), at(4000));
    assert!(!cluster.servers[0].received().contains("INFO"));
}

#[test]
fn what_all_nodes_have_answered_is_forgotten() {
    let mut cluster = Cluster::in_use(3, at(1));
    let ticket = cluster.acquire(at(2));
    assert_eq!(cluster.nodes.connections.log.backlog().requests, 1);
    cluster.reply_all("+OK\r\n", at(2));
    cluster.step(at(2));
    assert_eq!(cluster.granted(ticket), NodeSet::first(3));
    assert_eq!(cluster.nodes.connections.log.backlog().requests, 0);
}

#[test]
#[cfg(feature = "embedded-tls")]
fn certificates_that_have_changed_protect_the_connections_that_are_made_next() {
    let mut cluster = Cluster::of(2);
    let connections = &mut cluster.nodes.connections;
    connections.on_certificates(Ok(vec![TransportConfig::Plain, by_tls()]));
    let is_plain = connections
        .each
        .iter()
        .map(|connection| matches!(connection.link.transport, TransportConfig::Plain));
    assert_eq!(is_plain.collect::<Vec<_>>(), [true, false]);
    connections.on_certificates(Err(CredentialsError::Failed));
    assert_eq!(cluster.delivered().len(), 1, "one node speaks TLS");
}

/// A node that has to answer many may be asked other things.
#[test]
fn pending_releases_are_sent_a_few_hundred_at_a_time() {
    let mut cluster = Cluster::in_use(1, at(1));
    let ticket = cluster.release(EVERYWHERE, NodeSet::first(1), at(2));
    let Nodes {
        connections,
        releases,
        rounds,
        ..
    } = &mut cluster.nodes;
    let pending = &mut connections.apart(node(0)).pending;
    for number in 0..600 {
        pending.insert(ticket, at(1000 + number), None);
    }
    let mut stream = cluster.servers[0].stream.take().unwrap();
    thread::spawn(move || io::copy(&mut stream, &mut io::sink()));
    let requests = soon(|| {
        let before = connections[node(0)].session.pipeline.backlog();
        releases.flush(node(0), connections, rounds, at(2));
        connections.flush(node(0), at(2)).unwrap();
        let after = connections[node(0)].session.pipeline.backlog();
        (after.unsent == 0 && after.requests == before.requests).then_some(after.requests)
    });
    assert_eq!(requests, 512);
}

/// A thread that has taken over has a list of its own.
#[test]
fn the_list_of_an_older_poll_is_not_kept() {
    let mut cluster = Cluster::in_use(3, at(1));
    let [older, newer] = [(); 2].map(|()| cluster.nodes.watch(true, at(1)));
    let Connections { each, poll, .. } = &mut cluster.nodes.connections;
    poll.put_back(older, each, at(3));
    assert!(poll.watch.is_none() && !poll.is_fresh(at(3)));
    poll.put_back(newer, each, at(2));
    assert!(poll.watch.is_some() && poll.is_fresh(at(3)));
    // What has ended meanwhile is not on the list.
    let watch = cluster.nodes.watch(true, at(1));
    cluster.servers[0].end();
    soon(|| {
        cluster.nodes.read(node(0), at(1));
        cluster.nodes.connections[node(0)].is_closed().then_some(())
    });
    let Connections { each, poll, .. } = &mut cluster.nodes.connections;
    poll.put_back(watch, each, at(2));
    let streams = &poll.watch.as_ref().unwrap().streams;
    assert!(streams[0].is_none() && streams[1].is_some());
}

#[test]
fn a_connection_that_is_looked_at_before_anything_is_due_ends_no_poll() {
    let mut cluster = Cluster::in_use(1, at(1));
    let watch = cluster.nodes.watch(true, at(2));
    cluster.nodes.refresh(node(0), at(2));
    assert!(!cluster.ends_poll(watch, at(2)));
}
