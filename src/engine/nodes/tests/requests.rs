//! What is asked of which nodes.

use super::subscribers::entry;
use super::*;
use crate::algorithm::fence::{Fences, FencingToken};
use crate::algorithm::queue::{Message, TakeRequest};
use crate::engine::tests::interrupt;
use crate::engine::wait_registry::{Note, Reaction};
use crate::protocol::operation::Departure;
use std::num::NonZeroU64;

fn lease<'o>(key: &'o LockKey, token: &'o OwnerToken) -> LeaseRequest<'o> {
    LeaseRequest {
        key,
        token,
        ttl_millis: 1000,
        kind: Kind::Plain,
    }
}

impl Cluster {
    /// A node has ended its connection, and cannot be connected to.
    fn take_away(&mut self, index: usize, now: Timestamp) {
        self.servers[index].listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        self.end(index, now);
    }

    fn has_pending(&self, index: usize) -> bool {
        self.nodes.releases.pending.contains(node(index))
    }
}

#[test]
fn a_call_that_is_the_first_one_asks_by_command() {
    for by_command in [false, true] {
        let mut cluster = Cluster::in_use(1, at(1));
        let request = TakeRequest {
            by_command,
            ..TakeRequest::WITHOUT_ENTRY
        };
        let in_turn = InTurn { request, latest: 9 };
        cluster.attempt(Kind::Plain, Some(in_turn), at(1));
        cluster.nodes.flush();
        let asked = cluster.servers[0].received();
        assert_eq!(asked.contains("$3\r\nSET"), by_command);
    }
}

#[test]
fn a_fence_is_raised_where_it_is_less_and_counts_where_it_is_not() {
    let mut cluster = Cluster::in_use(3, at(1));
    let mut fences = Fences::default();
    fences.record(node(0), FencingToken::saturating(8));
    fences.record(node(1), FencingToken::saturating(7));
    let attempt = AttemptRecord {
        kind: Kind::Fenced(FencingToken::saturating(1)),
        ..record(NodeSet::first(3))
    };
    let agreement = fences.agreement().unwrap();
    let ticket = cluster.nodes.raise(&key(), &attempt, &agreement, at(1));
    cluster.nodes.flush();
    let tally = &cluster.nodes.rounds.round(ticket).unwrap().tally;
    assert_eq!(tally.granted(), NodeSet::only(node(0)));
    assert_eq!(tally.undecided(), NodeSet::only(node(1)));
    assert!(cluster.servers[0].has_received_nothing());
    assert!(cluster.servers[1].received().contains("EVAL"));
    assert!(cluster.servers[2].has_received_nothing());
}

#[test]
fn a_key_is_set_again_on_a_node_whose_reply_was_not_read_for_long() {
    let mut cluster = Cluster::in_use(3, at(1));
    cluster.acquire(at(1));
    for index in 0..2 {
        cluster.servers[index].received();
        cluster.servers[index].send("+OK\r\n");
    }
    let (key, token) = (key(), token());
    let request = lease(&key, &token);
    let late = NodeSet::only(node(2));
    soon(|| {
        let ready = cluster.nodes.repair(&request, NodeSet::first(3), at(200));
        (ready == NodeSet::first(3).without(late)).then_some(())
    });
}

/// A node that has some of them gets those that it lacks.
#[test]
fn each_key_of_a_set_is_set_again_by_itself() {
    let mut cluster = Cluster::in_use(1, at(1));
    let (keys, token) = (LockKey::of("", ["k", "l"]), token());
    let request = lease(&keys, &token);
    cluster.nodes.repair(&request, NodeSet::first(1), at(1));
    cluster.nodes.flush();
    let asked = cluster.servers[0].received();
    for key in ["k", "l"] {
        let set = format!("$3\r\nSET\r\n$1\r\n{key}\r\n");
        assert_eq!(asked.matches(&set).count(), 1, "{asked}");
    }
}

#[test]
fn a_release_is_kept_for_a_node_that_is_away_and_may_have_the_key() {
    let mut cluster = Cluster::in_use(3, at(1));
    cluster.take_away(0, at(2));
    cluster.take_away(1, at(2));
    // Its key ends by itself.
    let stands_for = NonZeroU64::new(500);
    cluster.release(
        ReleaseScope::Everywhere { stands_for },
        NodeSet::first(3),
        at(2),
    );
    assert_eq!(
        [0, 1, 2].map(|index| cluster.has_pending(index)),
        [false; 3]
    );
    cluster.release(EVERYWHERE, NodeSet::only(node(0)), at(2));
    assert_eq!(
        [0, 1, 2].map(|index| cluster.has_pending(index)),
        [true, false, false]
    );
}

#[test]
fn a_node_that_has_lost_its_connection_is_connected_to_for_a_release() {
    let mut cluster = Cluster::in_use(3, at(1));
    cluster.end(0, at(2));
    cluster.release(EVERYWHERE, NodeSet::first(3), at(2));
    assert!(cluster.nodes.connections[node(0)].is_connecting());
    cluster.welcome(0);
    cluster.drive(at(2), |nodes| nodes.connections[node(0)].is_in_use());
    assert!(cluster.servers[0].received().contains("EVAL"));
}

/// The entry of a call that has ended: it is removed with the lock, or, where that remains for a
/// while, by a command of its own.
#[test]
fn a_release_removes_the_entry_of_its_call() {
    for stands_for in [None, NonZeroU64::new(500)] {
        let mut cluster = Cluster::in_use(1, at(1));
        let call = cluster.enter(&interrupt(), at(1));
        let departure = Departure {
            entry: entry(call),
            ticket: None,
            key: 0,
        };
        let attempt = AttemptRecord {
            departure: Some(departure),
            ..record(NodeSet::first(1))
        };
        let scope = ReleaseScope::Everywhere { stands_for };
        cluster.release_attempt(attempt, scope, at(1));
        let commands = cluster.servers[0].received().matches("EVAL").count();
        assert_eq!(commands, if stands_for.is_some() { 2 } else { 1 });
        let told = Note {
            node: node(0),
            message: Message::Next,
            at: at(2),
        };
        let registry = &mut cluster.nodes.subscribers.registry;
        assert_eq!(registry.on_message(call, told), Reaction::None);
        assert_eq!(registry.on_message(call + 1, told), Reaction::Leave);
    }
}

#[test]
fn a_release_that_is_unanswered_is_sent_again_where_the_server_has_closed_the_connection() {
    for is_closed in [true, false] {
        let mut cluster = Cluster::in_use(3, at(1));
        let ticket = cluster.release(EVERYWHERE, NodeSet::first(3), at(1));
        cluster.nodes.rounds.assign(ticket, None);
        let cause = if is_closed {
            Cause::Closed
        } else {
            Cause::TimedOut
        };
        cluster
            .nodes
            .lose(node(0), Fault::new(Phase::Reply, cause), at(2));
        assert!(cluster.has_pending(0));
        assert_eq!(cluster.faulted(ticket).contains(node(0)), !is_closed);
    }
}

#[test]
fn another_url_of_a_server_is_asked_for_what_may_count_as_the_vote_of_the_first() {
    type Ask = fn(&mut Cluster) -> Ticket;
    let [plain, fenced, check]: [Ask; 3] = [
        |cluster| cluster.attempt(Kind::Plain, None, at(1)),
        |cluster| {
            let fenced = Kind::Fenced(FencingToken::saturating(1));
            cluster.attempt(fenced, None, at(1))
        },
        |cluster| cluster.nodes.check(at(1)),
    ];
    for (ask, is_asked) in [(plain, true), (fenced, false), (check, false)] {
        let (mut cluster, _) = Cluster::with_another_url();
        let ticket = ask(&mut cluster);
        cluster.nodes.flush();
        assert_eq!(cluster.faulted(ticket).contains(node(1)), !is_asked);
        assert_eq!(cluster.servers[1].has_received_nothing(), !is_asked);
    }
}

#[test]
fn the_next_operation_ends_a_release_that_no_thread_waits_for_at_its_deadline() {
    let mut cluster = Cluster::in_use(1, at(1));
    let ticket = cluster.release(EVERYWHERE, NodeSet::first(1), at(1));
    let background = &mut cluster.nodes.releases.background;
    background.push_back((ticket, at(50)));
    cluster.acquire(at(49));
    assert!(!cluster.nodes.rounds.is_decided(ticket));
    cluster.acquire(at(50));
    assert!(cluster.nodes.rounds.is_decided(ticket));
}

#[test]
fn what_was_asked_of_a_node_is_sent_when_the_connection_is_made() {
    let mut cluster = Cluster::of(1);
    cluster.nodes.connections[node(0)].open(at(1)).unwrap();
    assert!(!cluster.nodes.connections[node(0)].is_open());
    soon(|| {
        cluster.nodes.refresh(node(0), at(2));
        cluster.nodes.connections[node(0)].is_open().then_some(())
    });
    assert!(cluster.nodes.connections.unsent.contains(node(0)));
}

#[test]
fn what_concerns_some_nodes_is_sent_to_no_other() {
    let mut cluster = Cluster::in_use(3, at(1));
    let all = NodeSet::first(3);
    assert_eq!(cluster.nodes.connections.followers, all);
    cluster.acquire(at(1));
    assert_eq!(
        cluster.nodes.connections.followers, all,
        "it is asked of all"
    );
    cluster.servers.iter_mut().for_each(|server| {
        assert!(server.received().contains("SET"));
    });
    cluster.release(ReleaseScope::Reached, NodeSet::only(node(1)), at(1));
    assert!(cluster.servers[0].has_received_nothing());
    assert!(cluster.servers[1].received().contains("EVAL"));
    assert!(cluster.servers[2].has_received_nothing());
}

#[test]
fn what_keeps_nodes_from_running_releases_is_named() {
    let mut cluster = Cluster::in_use(3, at(1));
    assert!(cluster.nodes.connections.unsettled().is_empty());
    assert!(!cluster.nodes.has_work_left());
    // One that is away, one that hangs, and one that replies.
    cluster.take_away(0, at(2));
    let ticket = cluster.release(EVERYWHERE, NodeSet::first(3), at(2));
    cluster.servers[2].received();
    cluster.servers[2].send(":1\r\n");
    cluster.drive(at(2), |nodes| {
        let tally = &nodes.rounds.round(ticket).unwrap().tally;
        tally.granted().contains(node(2)) && tally.faulted().contains(node(0))
    });
    let refused = Fault::new(Phase::Connect, Cause::Refused);
    let silent = Fault::new(Phase::Reply, Cause::TimedOut);
    let unsettled = cluster.nodes.connections.unsettled();
    assert_eq!(unsettled, [(node(0), refused), (node(1), silent)]);
    assert!(cluster.nodes.has_work_left());
}

#[test]
fn an_extension_is_asked_of_all_nodes_in_one_command() {
    let mut cluster = Cluster::in_use(3, at(1));
    let (key, token) = (key(), token());
    let request = lease(&key, &token);
    let ticket = cluster.nodes.extend(&request, at(1));
    cluster.nodes.flush();
    for (index, reply) in [":1\r\n", ":1\r\n", ":0\r\n"].into_iter().enumerate() {
        cluster.servers[index].received();
        cluster.servers[index].send(reply);
    }
    cluster.drive(at(2), |nodes| nodes.rounds.is_decided(ticket));
    assert!(cluster.faulted(ticket).is_empty());
}
