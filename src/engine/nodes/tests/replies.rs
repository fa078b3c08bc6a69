//! What a reply means for its round, and what it shows about its node.

use super::*;
use crate::algorithm::fence::FencingToken;
use crate::algorithm::inspection::InspectionVerdict;
use crate::engine::node_connection::Received;
use crate::engine::nodes::status::{NodeState, NodeStatusSnapshot};
use crate::engine::tests::{REPLICA, SERVER, bulk, introduction};
use crate::protocol::operation::{Operation, Verb};
use crate::protocol::session::Wakes;
use std::thread;

const GRANTED: &str = "+OK\r\n";
const REFUSED: &str = "$-1\r\n";

impl Cluster {
    /// Three URLs, of which two lead to the same server, and an attempt that was sent to these.
    pub(super) fn with_another_url() -> (Cluster, Ticket) {
        let mut cluster = Cluster::of(3);
        let ticket = cluster.acquire(at(1));
        for index in 0..2 {
            cluster.servers[index].accept();
            cluster.servers[index].introduce(0, MASTER);
            cluster.drive(at(1), |nodes| {
                nodes.connections[node(index)].session.standing() != HandshakeState::Pending
            });
            cluster.servers[index].received();
        }
        (cluster, ticket)
    }

    /// A node replies, and all of it is read.
    pub(super) fn answer(&mut self, index: usize, reply: &str, now: Timestamp) {
        self.servers[index].send(reply);
        soon(|| {
            self.nodes.read(node(index), now);
            (self.nodes.releases.heard_at == now).then_some(())
        });
    }
}

#[test]
fn the_votes_of_a_node_count_as_they_are_while_nothing_is_held_against_it() {
    let mut cluster = Cluster::in_use(3, at(1));
    (0..3).for_each(|index| _ = cluster.nodes.read(node(index), at(1)));
    assert_eq!(cluster.nodes.connections.counting, NodeSet::first(3));
    let failed = Fault::new(Phase::Reply, Cause::TimedOut);
    let Connections { each, counting, .. } = &mut cluster.nodes.connections;
    each[1].health.failed(failed, at(1));
    assert!(each[2].quarantine.wait_by_note(TTL, [at(1); 2], at(1)));
    *counting = NodeSet::EMPTY;
    (0..3).for_each(|index| _ = cluster.nodes.read(node(index), at(1)));
    let counting = cluster.nodes.connections.counting;
    assert_eq!(counting, NodeSet::only(node(0)));
}

#[test]
fn connections_are_polled_before_they_are_used_unless_they_were_a_moment_ago() {
    type Ask = fn(&mut Cluster, Timestamp) -> Ticket;
    let acquire: Ask = Cluster::acquire;
    let release: Ask = |cluster, now| cluster.release(EVERYWHERE, NodeSet::first(3), now);
    for (ask, asked, looked) in [
        (acquire, 6, 1),
        (acquire, 7, 7),
        (release, 6, 1),
        (release, 7, 7),
    ] {
        let mut cluster = Cluster::in_use(3, at(1));
        (0..3).for_each(|index| _ = cluster.nodes.read(node(index), at(1)));
        cluster.step(at(5));
        assert_eq!(cluster.nodes.connections.counting, NodeSet::first(3));
        let ticket = ask(&mut cluster, at(asked));
        assert!(cluster.faulted(ticket).is_empty());
        let each = &cluster.nodes.connections.each;
        let read_at = each.iter().map(|each| each.session.incoming.read_at);
        assert!(read_at.eq([at(looked); 3]), "asked at {asked} ms");
    }
}

#[test]
fn a_connection_that_has_ended_while_it_was_idle_is_made_anew_before_it_is_used() {
    for (has_replied, is_polling) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut cluster = Cluster::in_use(3, at(1));
        (0..3).for_each(|index| _ = cluster.nodes.read(node(index), at(1)));
        // A quorum decides, and the reply of the other node stays unread.
        let decided = cluster.acquire(at(2));
        for index in 0..3 {
            cluster.servers[index].received();
        }
        (0..2).for_each(|index| cluster.answer(index, GRANTED, at(3 + index as u64)));
        cluster.nodes.rounds.conclude(decided);
        let _watch = is_polling.then(|| cluster.nodes.watch(false, at(4)));
        if has_replied {
            cluster.servers[2].send(GRANTED);
        }
        cluster.servers[2].end();
        // By then it has arrived.
        thread::sleep(Duration::from_millis(20));
        let ticket = cluster.queue(at(50));
        let connection = &cluster.nodes.connections[node(2)];
        assert!(connection.is_connecting(), "{has_replied} {is_polling}");
        assert!(cluster.faulted(ticket).is_empty());
    }
}

#[test]
fn replies_to_a_release_are_not_late_at_once_after_a_pause() {
    let mut cluster = Cluster::in_use(3, at(1));
    (0..3).for_each(|index| _ = cluster.nodes.read(node(index), at(1)));
    cluster.acquire(at(500));
    (0..2).for_each(|index| cluster.answer(index, GRANTED, at(501 + index as u64)));
    cluster.release(EVERYWHERE, NodeSet::first(3), at(503));
    assert!(cluster.nodes.work_due(at(503)).unwrap() > at(503));
}

#[test]
fn plain_votes_of_a_node_that_counts_are_taken_without_an_event() {
    let mut cluster = Cluster::in_use(3, at(1));
    let ticket = cluster.acquire(at(1));
    for (index, reply) in [(0, GRANTED), (1, REFUSED)] {
        cluster.servers[index].received();
        cluster.servers[index].send(reply);
        soon(|| {
            let read = cluster.nodes.connections[node(index)].read(at(2)).unwrap();
            (read != Received::NOTHING).then_some(())
        });
        cluster.nodes.count_plain_votes(node(index)).unwrap();
    }
    assert_eq!(cluster.granted(ticket), NodeSet::only(node(0)));
    let tally = &cluster.nodes.rounds.round(ticket).unwrap().tally;
    assert_eq!(tally.undecided(), NodeSet::only(node(2)));
}

/// Otherwise a node that sends as fast as it is read would keep a thread from all others.
#[test]
fn a_long_value_is_read_in_parts() {
    let mut cluster = Cluster::in_use(3, at(1));
    cluster.nodes.inspect("k", false, at(1));
    cluster.nodes.flush();
    cluster.servers[0].received();
    cluster.servers[0].send("$100000000\r\n");
    cluster.servers[0].send(vec![b'x'; 1 << 19]);
    cluster.nodes.read_to_end(node(0), at(1));
    soon(|| {
        let left = cluster.nodes.connections[node(0)].read(at(1)).unwrap();
        (left != Received::NOTHING).then_some(())
    });
}

#[test]
fn it_is_known_when_a_node_last_sent_anything() {
    let mut cluster = Cluster::in_use(3, at(1));
    let before = cluster.nodes.releases.heard_at;
    cluster.nodes.read(node(0), at(3));
    assert_eq!(cluster.nodes.releases.heard_at, before);
    cluster.acquire(at(3));
    cluster.answer(0, GRANTED, at(4));
    assert_eq!(cluster.nodes.releases.heard_at, at(4));
}

#[test]
fn the_master_that_a_replica_names_is_asked_in_its_place() {
    let mut cluster = Cluster::of(1);
    let mut master = PlayedServer::new();
    let named = master.as_master();
    let server = SERVER.replace("standalone", "cluster");
    let one_shard = bulk("cluster_slots_assigned:16384\r\ncluster_size:1");
    let ticket = cluster.acquire(at(1));
    cluster.servers[0].accept();
    let moved = format!("-MOVED 3999 {}:{}\r\n", named.host, named.port);
    let replies = bulk(&server) + &bulk(REPLICA) + &moved + &one_shard;
    cluster.servers[0].send(replies);
    cluster.drive(at(2), |nodes| nodes.connections[node(0)].is_connecting());
    master.accept();
    master.send(introduction(1, MASTER) + GRANTED);
    cluster.drive(at(2), |nodes| nodes.rounds.is_decided(ticket));
    assert_eq!(cluster.granted(ticket), NodeSet::only(node(0)));
}

#[test]
fn a_holder_is_known_by_the_answers_of_a_quorum() {
    let mut cluster = Cluster::in_use(1, at(1));
    let ticket = cluster.nodes.inspect("k", false, at(1));
    cluster.nodes.flush();
    let value = bulk(std::str::from_utf8(&token().digits()).unwrap());
    cluster.answer(0, &format!("{value}:5\r\n:4000\r\n"), at(2));
    cluster.drive(at(2), |nodes| nodes.rounds.is_decided(ticket));
    let round = cluster.nodes.rounds.conclude(ticket);
    let answers = round.inquiry.unwrap();
    let InspectionVerdict::Held(holding) = answers.verdict(&round.tally) else {
        panic!("it is held");
    };
    assert_eq!(holding.waiting, 5);
}

#[test]
fn a_script_that_a_node_has_not_is_sent_while_the_attempt_is_open() {
    for is_late in [false, true] {
        let mut cluster = Cluster::in_use(3, at(1));
        let fenced = Kind::Fenced(FencingToken::saturating(1));
        let granted = bulk("7");
        // Once the script has run, it is called by its hash.
        cluster.attempt(fenced, None, at(1));
        cluster.nodes.flush();
        for index in 0..3 {
            cluster.answer(index, &granted, at(2 + index as u64));
            cluster.servers[index].received();
        }
        let ticket = cluster.attempt(fenced, None, at(5));
        cluster.nodes.flush();
        for index in 0..3 {
            assert!(cluster.servers[index].received().contains("EVALSHA"));
        }
        for index in 1..if is_late { 3 } else { 2 } {
            cluster.answer(index, &granted, at(5 + index as u64));
        }
        assert_eq!(cluster.nodes.rounds.is_decided(ticket), is_late);
        cluster.answer(0, "-NOSCRIPT no such script\r\n", at(9));
        if is_late {
            assert!(cluster.servers[0].has_received_nothing());
        } else {
            assert!(cluster.servers[0].received().contains("EVAL"));
        }
    }
}

/// A set's are in one reply.
#[test]
fn what_a_release_finds_in_a_queue_is_known_for_each_key() {
    let mut cluster = Cluster::in_use(1, at(1));
    let keys = LockKey::of("", ["k", "l", "m"]);
    let operation = Operation {
        verb: Verb::Release(None),
        kind: Kind::Plain,
        retention_millis: 0,
    };
    let Nodes { rounds, .. } = &mut cluster.nodes;
    let ticket = rounds.open_command(Purpose::Entry, &keys, &token(), operation);
    let wakes = Wakes {
        told: 0b101,
        more: 0b010,
        is_denied: false,
    };
    cluster.nodes.on_wakes(node(0), ticket, wakes, at(2));
    cluster.nodes.flush();
    let registry = &mut cluster.nodes.subscribers.registry;
    let woken = ["k", "l", "m"].map(|key| registry.woke_another(key, at(2)).is_some());
    assert_eq!(woken, [true, false, true]);
    let asked = cluster.servers[0].received();
    let is_asked = |key: &str| asked.contains(&format!("$1\r\n{key}\r\n"));
    assert_eq!(["k", "l", "m"].map(is_asked), [false, true, false]);
    // Not for ever.
    (0..99).for_each(|_| _ = cluster.nodes.subscribers.may_repeat(at(2)));
    cluster.nodes.on_wakes(node(0), ticket, wakes, at(2));
    cluster.nodes.flush();
    assert!(cluster.servers[0].has_received_nothing());
}

#[test]
fn a_reply_to_anything_but_an_attempt_or_an_extension_makes_no_node_usable() {
    let mut cluster = Cluster::in_use(3, at(1));
    let failed = Fault::new(Phase::Reply, Cause::TimedOut);
    cluster
        .nodes
        .connections
        .states
        .mark_down(node(0), failed, at(1));
    cluster.release(ReleaseScope::Reached, NodeSet::only(node(0)), at(1));
    cluster.answer(0, ":1\r\n", at(2));
    assert!(!cluster.nodes.connections.states.is_up(node(0)));
    cluster.nodes.connections[node(0)]
        .health
        .failed(failed, at(2));
    cluster.nodes.check(at(40));
    cluster.nodes.flush();
    let replies = bulk("maxmemory:0") + &bulk(MASTER);
    cluster.answer(0, &replies, at(41));
    assert!(
        cluster.nodes.connections.states.is_up(node(0)),
        "it replies"
    );
    assert!(cluster.nodes.connections[node(0)].health.is_suspect());
    let ticket = cluster.acquire(at(42));
    cluster.answer(0, REFUSED, at(43));
    assert!(!cluster.nodes.connections[node(0)].health.is_suspect());
    assert!(!cluster.nodes.rounds.is_decided(ticket));
}

/// Of two URLs of one server either may be the first to set the key.
#[test]
fn a_grant_by_another_url_of_a_server_is_the_vote_of_the_first_unless_that_may_not_vote() {
    for may_vote in [true, false] {
        let (mut cluster, ticket) = Cluster::with_another_url();
        let quarantine = &mut cluster.nodes.connections[node(0)].quarantine;
        assert!(may_vote || quarantine.wait_by_note(TTL, [at(1); 2], at(1)));
        cluster.answer(1, GRANTED, at(2));
        let first = if may_vote {
            NodeSet::only(node(0))
        } else {
            NodeSet::EMPTY
        };
        assert_eq!(cluster.granted(ticket), first);
        assert_eq!(cluster.faulted(ticket), NodeSet::only(node(1)));
    }
}

/// A node that can do no more than refuse its connections is asked anew after a while, for the
/// releases that it has not run.
#[test]
fn a_node_that_runs_no_releases_is_connected_to_again_for_them() {
    let mut cluster = Cluster::of(1);
    let loading = "-LOADING Redis is loading the dataset in memory\r\n";
    cluster.acquire(at(1));
    cluster.servers[0].accept();
    cluster.servers[0].send(loading.repeat(3));
    cluster.drive(at(2), |nodes| {
        nodes.connections[node(0)].retry_reason(at(900)).is_some()
    });
    cluster.release(ReleaseScope::Reached, NodeSet::only(node(0)), at(3));
    cluster.answer(0, loading, at(4));
    assert!(cluster.nodes.releases.pending.contains(node(0)));
    cluster.nodes.serve_pending(at(900));
    assert!(cluster.nodes.connections[node(0)].is_connecting());
}

#[test]
fn what_a_node_is_shown_as() {
    let mut cluster = Cluster::of(4);
    let Connections { states, each, .. } = &mut cluster.nodes.connections;
    let replica = Fault::new(Phase::Handshake, Cause::NotMaster);
    let silent = Fault::new(Phase::Reply, Cause::TimedOut);
    states.mark_down(node(0), replica, at(1));
    states.mark_down(node(1), silent, at(1));
    assert!(each[2].quarantine.wait_by_note(TTL, [at(1); 2], at(1)));
    let shown = NodeStatusSnapshot::of_all(&mut cluster.nodes, at(1));
    let states: Vec<_> = shown.iter().map(|status| status.state).collect();
    let expected = [
        NodeState::Rejected(Cause::NotMaster),
        NodeState::Down(Cause::TimedOut),
        NodeState::Quarantined { remaining: TTL },
        NodeState::Unknown,
    ];
    assert_eq!(states, expected);
}
