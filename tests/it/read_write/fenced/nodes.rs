//! Nodes that differ, are too far ahead, hang, are killed or lose their data: the numbers grow all
//! the same.

use super::super::{KEY, ask, entries, long, read, write};
use super::{HOUR, fenced, is_free, micros, number, scripts_run, set, stored};
use crate::clients::{LONG_TTL, SOON, builder, causes, client, minorities_fail, value};
use crate::support::process::eventually;
use crate::support::server::{Answer, Server};
use crate::support::sides::Sides;
use quorumlock::algorithm::fence::LEAD_LIMIT;
use quorumlock::{
    Cause, ExtendOutcome, FencingToken, Phase, Redlock, ReleaseOutcome, RestartPolicy,
};
use std::time::Duration;

#[test]
fn numbers_that_differ_are_raised_to_the_greatest() {
    for count in [3, 5] {
        let servers = Server::several(count).unwrap();
        let mutex = fenced(&client(&servers));
        drop(number(&mutex));
        assert!(eventually(SOON, || servers.iter().all(is_free)));
        // A client with a clock that is ahead by a day had it, and no other client saw that.
        let ahead = micros() + 86_400_000_000;
        let late = micros() / 1000 + 600_000;
        for (index, server) in servers.iter().enumerate() {
            set(server, &format!("f {} {late}", ahead + 10 * index as u64));
        }
        let before: u64 = servers.iter().map(scripts_run).sum();
        let guard = number(&mutex);
        let has_it =
            |server: &&Server| stored(server).is_some_and(|(last, _)| last == guard.fence().get());
        assert!(guard.fence().get() > ahead, "of a quorum, one other's");
        assert!(
            servers.iter().filter(has_it).count() > count / 2,
            "a quorum has it before it is known"
        );
        let last = guard.fence();
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
        let ran = servers.iter().map(scripts_run).sum::<u64>() - before;
        assert!(ran > 2 * count as u64, "{ran}: some were raised");
        drop(mutex.read.lock_timeout(SOON).unwrap());
        assert!(number(&mutex).fence() > last);
    }
}

#[test]
fn a_number_too_far_ahead_costs_its_node_alone_and_is_left_as_it_is() {
    let servers = Server::several(3).unwrap();
    let absurd = format!("f {} {}", FencingToken::MAX, micros() / 1000 + 600_000);
    set(&servers[1], &absurd);
    let mutex = fenced(&client(&servers));
    let mut last = FencingToken::try_from(0_u64).unwrap();
    for _ in 0..10 {
        let guard = number(&mutex);
        assert!(
            guard.fence() > last && guard.fence().get() < micros() + HOUR,
            "{guard:?}"
        );
        last = guard.fence();
        assert_eq!(value(&servers[1], KEY).as_deref(), Some(&*absurd));
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    }
    // The node counts for all others.
    drop(read(&long(&client(&servers[1..2]))));
    assert_eq!(
        write(&long(&client(&servers[1..2]))).unlock().unwrap(),
        ReleaseOutcome::Released
    );
    assert!(eventually(SOON, || value(&servers[1], KEY).as_deref()
        == Some(&*absurd)));
    let error = fenced(&client(&servers[1..2]))
        .write
        .try_lock()
        .unwrap_err();
    assert_eq!(
        causes(&error),
        [(servers[1].address(), Phase::Reply, Cause::FenceAhead)]
    );
    // A number that a node issues is no more than a day and a minute ahead.
    for (lead, is_given) in [(LEAD_LIMIT, true), (LEAD_LIMIT + HOUR, false)] {
        set(
            &servers[1],
            &format!("f {} {}", micros() + lead, micros() / 1000 + 600_000),
        );
        let answer = ask(
            &servers[1],
            &["acquire", &"1".repeat(40), "60000", "w", "600000", "1"],
        );
        assert_eq!(
            matches!(answer, Answer::Text(_)),
            is_given,
            "{lead} {answer:?}"
        );
    }
}

#[test]
fn a_node_that_lost_its_data_gets_the_entry_again_and_no_smaller_number() {
    let mut servers = Server::several(3).unwrap();
    let guard = number(&fenced(&client(&servers)));
    assert!(eventually(SOON, || servers
        .iter()
        .all(|server| value(server, KEY).is_some())));
    servers[0].restart().unwrap();
    assert_eq!(value(&servers[0], KEY), None);
    let is_repaired = || {
        assert_eq!(guard.extend(LONG_TTL).unwrap(), ExtendOutcome::Extended);
        value(&servers[0], KEY).is_some()
    };
    assert!(eventually(SOON, is_repaired));
    assert!(stored(&servers[0]).unwrap().0 >= guard.fence().get());
    assert_eq!(entries(&servers[0]), ('w', 1));
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    assert!(eventually(SOON, || servers.iter().all(is_free)));
}

#[test]
fn nodes_that_all_lost_their_data_go_on_above_what_they_gave_out() {
    let mut servers = Server::several(3).unwrap();
    // The numbers that they issued are forgotten, and no client guards against that.
    let client = builder(&servers)
        .restart_policy(RestartPolicy::Off)
        .build()
        .unwrap();
    let before = number(&fenced(&client)).fence();
    servers
        .iter_mut()
        .for_each(|server| server.restart().unwrap());
    let mut after = None;
    assert!(eventually(SOON, || {
        after = fenced(&client)
            .write
            .try_lock()
            .ok()
            .flatten()
            .map(|guard| guard.fence());
        after.is_some()
    }));
    assert!(after > Some(before), "by the clock alone");
}

#[test]
fn a_minority_that_hangs_or_is_gone_costs_no_number() {
    let durable = |_| Server::with(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap();
    let mut servers: Vec<Server> = (0..5).map(durable).collect();
    let nodes = servers
        .iter()
        .map(|server| format!("{}?durable=true", server.url()));
    let client = Redlock::builder()
        .nodes(nodes)
        .node_timeout(Duration::from_secs(1))
        .build()
        .unwrap();
    let mutex = Sides::of(&client, "k").fenced();
    let mut last = number(&mutex).fence();
    let next = || {
        drop(
            mutex
                .read
                .lock_timeout(SOON)
                .unwrap()
                .expect("a majority answers"),
        );
        let guard = number(&mutex);
        assert!(guard.fence() > last);
        last = guard.fence();
    };
    minorities_fail(&mut servers, next);
}
