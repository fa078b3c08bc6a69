//! Nodes that remember something of themselves are judged before their votes count.

use super::*;
use crate::engine::nodes::incarnations::Stage;
use crate::engine::played::{MASTER, SERVER, bulk};
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

impl Cluster {
    /// Its program looks at what the nodes remember.
    fn judged() -> Option<Cluster> {
        Cluster::with(3, RestartPolicy::Observed, |endpoint| {
            endpoint.look_at("q".to_owned(), false)
        })
    }

    /// A node replies to the handshake, to the look, and to an attempt.
    fn reply(&mut self, index: usize, remembered: &str, vote: &str) {
        self.welcome(index);
        let time = bulk(&TIME.to_string()) + &bulk("0");
        let server = &mut self.servers[index];
        server.send(format!("{remembered}*2\r\n{time}{vote}"));
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
        let Some(mut cluster) = Cluster::judged() else {
            return;
        };
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
    let Some(mut cluster) = Cluster::judged() else {
        return;
    };
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
    let Some(mut cluster) = Cluster::judged() else {
        return;
    };
    let ticket = cluster.acquire(at(1));
    cluster.reply(0, &note(0, 'f', 900, TTL), GRANTED);
    cluster.reply(1, &note(1, 'f', 900, TTL), REFUSED);
    cluster.reply(2, NOTHING, GRANTED);
    assert_eq!(cluster.note(at(2)), NodeSet::only(node(2)));
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
    let Some(mut cluster) = Cluster::judged() else {
        return;
    };
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
    let Some(mut cluster) = Cluster::judged() else {
        return;
    };
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
