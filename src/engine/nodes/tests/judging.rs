//! Nodes that remember something of themselves are judged before their votes count.

use super::*;
use crate::algorithm::incarnation::Seen;
use crate::engine::nodes::incarnations::Stage;
use crate::engine::tests::{MASTER, SERVER, bulk};
use std::time::SystemTime;

/// The clock of each node, in seconds.
const TIME: u64 = 5000;
const NOTHING: &str = "$-1\r\n";
const GRANTED: &str = "+OK\r\n";
const REFUSED: &str = "$-1\r\n";

/// What a node remembers since so many seconds: a founder by `f`, one that has lost its keys by
/// `s`.
fn note(index: usize, letter: char, seconds: u64, max_ttl: Duration) -> String {
    let wall = SystemTime::UNIX_EPOCH.elapsed().unwrap() - Duration::from_secs(seconds);
    let time = (TIME - seconds) * 1_000_000;
    let id = SERVER.split_once("run_id:0").unwrap().1;
    let ids = MASTER.split_once("replid:").unwrap().1;
    let ids = ids.replace("\r\nmaster_replid2:", " ");
    let [wall, ttl] = [wall.as_micros(), max_ttl.as_millis()];
    bulk(&format!(
        "1 {letter} {time} {wall} {ttl} 3 {index}{id} {ids}"
    ))
}

/// The replies to a look.
fn look(remembered: &str) -> String {
    let time = bulk(&TIME.to_string()) + &bulk("0");
    format!("{remembered}*2\r\n{time}")
}

impl Cluster {
    /// Its program looks at what the nodes remember.
    fn judged() -> Cluster {
        Cluster::with(3, RestartPolicy::Observed, |endpoint| {
            endpoint.look_at("q".to_owned(), false)
        })
    }

    /// A node replies to the handshake, to the look, and to an attempt.
    fn reply(&mut self, index: usize, remembered: &str, vote: &str) {
        self.welcome(index);
        self.servers[index].send(look(remembered) + vote);
    }

    /// Two founders have replied to an attempt, and a node that has lost its keys, which is to be
    /// noted.
    fn with_a_loss() -> (Cluster, Ticket) {
        let mut cluster = Cluster::judged();
        let ticket = cluster.acquire(at(1));
        cluster.reply(0, &note(0, 'f', 900, TTL), GRANTED);
        cluster.reply(1, &note(1, 'f', 900, TTL), REFUSED);
        cluster.reply(2, NOTHING, GRANTED);
        assert_eq!(cluster.note(at(2)), NodeSet::only(node(2)));
        (cluster, ticket)
    }

    /// All nodes are connected, and are founders since long ago.
    fn founded() -> Cluster {
        let mut cluster = Cluster::judged();
        let ticket = cluster.acquire(at(1));
        (0..3).for_each(|index| cluster.reply(index, &note(index, 'f', 900, TTL), GRANTED));
        cluster.drive(at(2), |nodes| {
            nodes.connections.followers == NodeSet::first(3) && nodes.rounds.is_decided(ticket)
        });
        cluster.nodes.rounds.conclude(ticket);
        (0..3).for_each(|index| drop(cluster.servers[index].received()));
        cluster
    }

    fn is_up(&self, index: usize) -> bool {
        self.nodes.connections.states.is_up(node(index))
    }

    fn stage(&self) -> Option<Stage> {
        Some(self.nodes.incarnations.judging?.stage)
    }

    fn is_decided(&self, ticket: Ticket) -> bool {
        self.nodes.rounds.is_decided(ticket)
    }

    /// Drives until notes are to be stored.
    fn note(&mut self, now: Timestamp) -> NodeSet {
        self.drive(now, |nodes| {
            let judging = nodes.incarnations.judging;
            judging.is_some_and(|judging| judging.stage == Stage::Noting)
        });
        self.nodes.incarnations.judging.unwrap().awaited
    }
}

#[test]
fn no_grant_counts_in_a_new_deployment_before_it_is_founded() {
    for is_late in [false, true] {
        let mut cluster = Cluster::judged();
        let ticket = cluster.acquire(at(1));
        (0..3).for_each(|index| cluster.reply(index, NOTHING, GRANTED));
        assert_eq!(cluster.note(at(2)), NodeSet::first(3));
        assert!(!cluster.is_decided(ticket));
        for index in 0..if is_late { 2 } else { 3 } {
            let noted = note(index, 'f', 0, TTL);
            cluster.servers[index].send(noted);
        }
        let now = if is_late {
            soon(|| {
                cluster.step(at(101));
                let judging = cluster.nodes.incarnations.judging.unwrap();
                (judging.awaited == NodeSet::only(node(2))).then_some(())
            });
            assert!(!cluster.is_decided(ticket), "one node may still reply");
            at(102)
        } else {
            at(2)
        };
        cluster.drive(now, |nodes| nodes.rounds.is_decided(ticket));
        assert!(cluster.stage().is_none());
        let granted = cluster.nodes.rounds.conclude(ticket).tally.granted();
        assert_eq!(granted.len(), if is_late { 2 } else { 3 });
    }
}

/// It is not known what the others remember.
#[test]
fn a_node_that_has_not_replied_is_waited_for_half_of_its_timeout() {
    let mut cluster = Cluster::judged();
    cluster.acquire(at(1));
    (0..2).for_each(|index| cluster.reply(index, NOTHING, GRANTED));
    cluster.drive(at(2), |nodes| {
        let is_unheard = nodes.incarnations.unheard == NodeSet::only(node(2));
        nodes.incarnations.judging.is_some() && is_unheard
    });
    cluster.step(at(51));
    assert!(cluster.stage().is_some_and(|stage| stage == Stage::Looking));
    cluster.step(at(52));
    assert_eq!(cluster.note(at(52)), NodeSet::first(2));
}

#[test]
fn a_grant_of_a_node_that_has_lost_its_keys_does_not_count() {
    let (mut cluster, ticket) = Cluster::with_a_loss();
    assert!(!cluster.is_decided(ticket));
    let noted = note(2, 's', 0, TTL);
    cluster.servers[2].send(noted);
    cluster.drive(at(2), |nodes| nodes.rounds.is_decided(ticket));
    let result = cluster.nodes.rounds.conclude(ticket);
    assert_eq!(result.tally.granted(), NodeSet::only(node(0)));
    assert!(
        result
            .faults
            .iter()
            .any(|(_, fault)| fault.cause == Cause::Quarantined)
    );
    assert!(cluster.nodes.connections[node(2)].quarantine.is_on());
}

#[test]
fn nodes_that_are_noted_count_at_once() {
    let mut cluster = Cluster::judged();
    let ticket = cluster.acquire(at(1));
    cluster.reply(0, &note(0, 'f', 900, TTL), GRANTED);
    // It has lost its keys long ago.
    cluster.reply(1, &note(1, 's', 900, TTL), GRANTED);
    cluster.reply(2, &note(2, 's', 1, TTL), GRANTED);
    cluster.drive(at(2), |nodes| {
        let round = nodes.rounds.round(ticket).unwrap();
        round.tally.undecided().is_empty()
    });
    let result = cluster.nodes.rounds.conclude(ticket);
    assert_eq!(result.tally.granted(), NodeSet::first(2));
}

#[test]
fn what_does_not_fit_this_program_is_reported_once_by_node() {
    let mut cluster = Cluster::judged();
    cluster.acquire(at(1));
    cluster.reply(0, &note(0, 'f', 900, TTL * 2), GRANTED);
    cluster.reply(1, "-NOPERM this user has no permissions\r\n", GRANTED);
    cluster.reply(2, &note(2, 'f', 900, TTL), GRANTED);
    cluster.drive(at(2), |nodes| nodes.connections.followers.contains(node(2)));
    let of = |cluster: &Cluster, index: usize| cluster.nodes.incarnations.mismatches[index].len();
    soon(|| {
        cluster.step(at(2));
        ([0, 1, 2].map(|index| of(&cluster, index)) == [1, 1, 0]).then_some(())
    });
    let told = |events: Vec<String>| {
        let names_a_mismatch = |event: &&String| event.contains("max_ttl") || event.contains("key");
        events.iter().filter(names_a_mismatch).count()
    };
    assert_eq!(told(cluster.delivered()), 2);
    // The connection is lost, and what was known of the node holds.
    let Nodes {
        incarnations,
        connections,
        ..
    } = &mut cluster.nodes;
    assert!(incarnations.on_silence(node(0), false).is_empty());
    assert!(incarnations.idle.is_empty());
    incarnations.on_silence(node(1), true);
    assert_eq!(incarnations.idle, NodeSet::only(node(1)));
    incarnations.on_look(node(2), connections, at(3));
    assert_eq!([0, 1, 2].map(|index| of(&cluster, index)), [1, 1, 0]);
    assert!(cluster.delivered().is_empty());
}

#[test]
fn a_vote_that_waits_for_the_judgement_is_a_fault_where_the_connection_ends() {
    let mut cluster = Cluster::judged();
    let ticket = cluster.acquire(at(1));
    (0..2).for_each(|index| cluster.reply(index, NOTHING, GRANTED));
    cluster.drive(at(2), |nodes| nodes.incarnations.held.len() == 2);
    cluster.end(0, at(2));
    assert_eq!(cluster.faulted(ticket), NodeSet::only(node(0)));
    let held = cluster.nodes.incarnations.held_nodes(ticket);
    assert_eq!(held, NodeSet::only(node(1)));
    // It was idle when its connection ended, unlike one that owes a reply.
    assert_eq!(cluster.nodes.incarnations.idle, NodeSet::only(node(0)));
    cluster.acquire(at(2));
    cluster.end(1, at(2));
    assert!(!cluster.nodes.incarnations.idle.contains(node(1)));
}

/// It would refuse a lock as well.
#[test]
fn a_node_that_refuses_its_note_is_known_to_refuse() {
    let mut cluster = Cluster::judged();
    cluster.acquire(at(1));
    (0..3).for_each(|index| cluster.reply(index, NOTHING, GRANTED));
    assert_eq!(cluster.note(at(2)), NodeSet::first(3));
    cluster.servers[2].send("-MISCONF snapshots fail\r\n");
    cluster.drive(at(2), |nodes| nodes.connections.states.is_refusing(node(2)));
    let noted = note(1, 'f', 0, TTL);
    cluster.servers[1].send(noted);
    let is_noted = |nodes: &Nodes| {
        let judging = nodes.incarnations.judging;
        judging.is_some_and(|judging| judging.awaited == NodeSet::only(node(0)))
    };
    cluster.drive(at(2), is_noted);
    assert!(!cluster.nodes.connections.states.is_refusing(node(1)));
}

#[test]
fn a_node_without_a_name_is_no_node_that_denies_its_key() {
    let mut cluster = Cluster::judged();
    cluster.acquire(at(1));
    cluster.servers[0].accept();
    cluster.servers[0].send(bulk("redis_version:7.0.15") + &bulk(MASTER) + &look(NOTHING));
    cluster.drive(at(2), |nodes| nodes.connections[node(0)].is_in_use());
    assert_eq!(cluster.nodes.incarnations.seen[0], Seen::Untold);
    assert!(cluster.nodes.incarnations.mismatches[0].is_empty());
}

/// Its grants count while another node is judged.
#[test]
fn a_founder_is_in_no_doubt_while_another_node_is_noted() {
    let (cluster, ticket) = Cluster::with_a_loss();
    assert_eq!(cluster.granted(ticket), NodeSet::only(node(0)));
    assert_eq!(cluster.nodes.incarnations.doubtful, NodeSet::only(node(2)));
}

/// A node that has lost its keys would wait for a shorter time.
#[test]
fn no_grant_counts_before_a_longer_time_to_live_is_noted() {
    let mut cluster = Cluster::judged();
    let ticket = cluster.acquire(at(1));
    cluster.reply(0, &note(0, 'f', 900, TTL), GRANTED);
    cluster.await_grants(ticket, NodeSet::only(node(0)), at(2));
    cluster.reply(1, &note(1, 'f', 900, TTL / 2), GRANTED);
    cluster.reply(2, &note(2, 'f', 900, TTL), GRANTED);
    assert_eq!(cluster.note(at(2)), NodeSet::only(node(1)));
    cluster.drive(at(2), |nodes| nodes.incarnations.held.len() == 3);
    assert_eq!(cluster.granted(ticket), NodeSet::EMPTY, "one is taken back");
    cluster.servers[1].received();
    let noted = note(1, 'f', 900, TTL);
    cluster.servers[1].send(noted);
    cluster.drive(at(2), |nodes| nodes.rounds.is_decided(ticket));
    assert!(cluster.stage().is_none());
    assert_eq!(cluster.granted(ticket), NodeSet::first(3));
}

/// A node that lies could name one program after the other.
#[test]
fn a_note_that_another_program_has_stored_first_is_stored_again_some_times() {
    let mut cluster = Cluster::judged();
    cluster.acquire(at(1));
    cluster.reply(0, &note(0, 'f', 900, TTL), GRANTED);
    cluster.reply(1, &note(1, 'f', 900, TTL / 2), GRANTED);
    cluster.reply(2, &note(2, 'f', 900, TTL), GRANTED);
    cluster.note(at(2));
    let mut times = 0;
    while cluster.stage().is_some() {
        let stored = cluster.servers[1].received();
        times += stored.matches("EVAL").count();
        assert!(times < 20, "it does not end");
        let noted = note(1, 'f', 900, TTL / (times as u32 + 2));
        cluster.servers[1].send(noted);
        let repeats = |nodes: &Nodes| Some(nodes.incarnations.judging?.repeats);
        let before = repeats(&cluster.nodes);
        cluster.drive(at(2), |nodes| repeats(nodes) != before);
    }
    assert_eq!(times, 9);
}

#[test]
fn nothing_is_founded_while_a_node_may_know_better_and_a_longer_time_is_noted_all_the_same() {
    for is_founded in [false, true] {
        let mut cluster = Cluster::judged();
        let ticket = cluster.acquire(at(1));
        // It was idle when it lost its connection, and is silent.
        cluster.nodes.incarnations.on_silence(node(2), true);
        for index in 0..2 {
            let noted = note(index, 'f', 900, TTL / 2);
            let remembered = if is_founded { &noted } else { NOTHING };
            cluster.reply(index, remembered, GRANTED);
        }
        cluster.drive(at(2), |nodes| nodes.incarnations.held.len() == 2);
        assert!(cluster.stage().is_some_and(|stage| stage == Stage::Looking));
        cluster.step(at(60));
        assert_eq!(cluster.stage().is_some(), is_founded);
        if is_founded {
            assert_eq!(cluster.note(at(60)), NodeSet::first(2));
            continue;
        }
        assert_eq!(cluster.faulted(ticket), NodeSet::first(2));
        cluster
            .nodes
            .incarnations
            .on_usable(node(0), &mut cluster.nodes.connections, at(60));
        assert!(!cluster.is_up(0), "a quorum votes, and it is in doubt");
    }
}

#[test]
fn what_was_seen_long_ago_is_looked_at_again_where_it_is_noted() {
    for is_new in [true, false] {
        let mut cluster = Cluster::judged();
        cluster.acquire(at(1));
        for index in 0..2 {
            let noted = note(index, 's', 900, TTL);
            cluster.reply(index, if is_new { NOTHING } else { &noted }, GRANTED);
        }
        cluster.drive(at(2), |nodes| nodes.incarnations.held.len() == 2);
        (0..2).for_each(|index| drop(cluster.servers[index].received()));
        // No thread drives for a while, and then the third node replies.
        let noted = note(2, 's', 900, TTL);
        cluster.reply(2, if is_new { NOTHING } else { &noted }, GRANTED);
        cluster.drive(at(900), |nodes| nodes.incarnations.unheard.is_empty());
        let is_again = cluster
            .stage()
            .is_some_and(|stage| stage == Stage::LookingAgain);
        assert_eq!(is_again, is_new);
        assert_eq!(cluster.stage().is_none(), !is_new);
    }
}

#[test]
fn the_nodes_are_judged_when_those_that_are_connected_to_have_replied() {
    let mut cluster = Cluster::founded();
    for index in [0, 2] {
        cluster.end(index, at(3));
    }
    assert!(cluster.nodes.incarnations.unheard.is_empty());
    cluster.acquire(at(4));
    // It was started anew, and has lost its keys.
    cluster.servers[0].accept();
    cluster.servers[0].introduce(7, MASTER);
    cluster.servers[0].send(look(NOTHING) + GRANTED);
    cluster.drive(at(5), |nodes| nodes.connections[node(0)].is_in_use());
    assert!(cluster.stage().is_some_and(|stage| stage == Stage::Looking));
    cluster.reply(2, &note(2, 'f', 900, TTL), GRANTED);
    assert_eq!(cluster.note(at(5)), NodeSet::only(node(0)));
}

/// It keeps its keys, as its owner has declared.
#[test]
fn a_durable_node_is_in_no_doubt() {
    let mut cluster = Cluster::judged();
    let durable = Quarantine::new(RestartPolicy::Observed, TTL).declared_durable();
    cluster.nodes.connections[node(0)].quarantine = durable;
    let ticket = cluster.acquire(at(1));
    (0..2).for_each(|index| cluster.reply(index, NOTHING, GRANTED));
    cluster.drive(at(2), |nodes| nodes.connections[node(1)].is_in_use());
    assert_eq!(cluster.granted(ticket), NodeSet::only(node(0)));
    assert_eq!(cluster.nodes.incarnations.doubtful, NodeSet::only(node(1)));
}

/// A node that was met as another process, by this client.
#[test]
fn a_vote_that_waits_shows_that_its_node_is_in_quarantine_and_a_question_does_not() {
    for is_question in [false, true] {
        let mut cluster = Cluster::judged();
        let quarantine = &mut cluster.nodes.connections[node(0)].quarantine;
        assert!(quarantine.wait_by_note(TTL, [at(1); 2], at(1)));
        let reply = if is_question {
            cluster.nodes.inspect("k", false, at(1));
            cluster.nodes.flush();
            "$-1\r\n:0\r\n:-2\r\n"
        } else {
            cluster.acquire(at(1));
            GRANTED
        };
        cluster.reply(0, NOTHING, reply);
        cluster.drive(at(2), |nodes| !nodes.incarnations.held.is_empty());
        let mode = cluster.nodes.connections.states.of(node(0)).state;
        assert_eq!(mode == NodeMode::Quarantined, !is_question);
    }
}

/// The other one is in no doubt.
#[test]
fn a_grant_by_another_url_of_a_server_counts_while_a_third_node_is_judged() {
    let mut cluster = Cluster::judged();
    let ticket = cluster.acquire(at(1));
    let remembered = note(0, 'f', 900, TTL);
    cluster.reply(0, &remembered, "");
    cluster.drive(at(2), |nodes| nodes.connections[node(0)].is_in_use());
    cluster.servers[1].accept();
    cluster.servers[1].introduce(0, MASTER);
    cluster.servers[1].send(look(&remembered));
    cluster.reply(2, NOTHING, GRANTED);
    assert_eq!(cluster.note(at(2)), NodeSet::only(node(2)));
    cluster.servers[1].send(GRANTED);
    cluster.await_grants(ticket, NodeSet::only(node(0)), at(2));
}

#[test]
fn a_founder_has_counted_since_it_was_noted() {
    let cluster = Cluster::founded();
    let counted_for = |now| cluster.nodes.incarnations.counted_for(node(0), now);
    let first = counted_for(at(1)).unwrap();
    assert!(first >= Duration::from_secs(899), "{first:?}");
    assert_eq!(counted_for(at(3001)), Some(first + Duration::from_secs(3)));
}
