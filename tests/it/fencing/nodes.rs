//! Nodes that differ, hang, are killed or lose their data: the numbers grow all the same.

use super::{KEY, fields, micros, scripts_run, set};
use crate::clients::{LONG_TTL, SOON, builder, client, long_lock, minorities_fail, take, value};
use crate::support::process::eventually;
use crate::support::server::Server;
use quorumlock::{ExtendOutcome, FencingToken, Redlock, ReleaseOutcome, RestartPolicy};
use std::time::Duration;

/// Servers that keep what they have granted.
fn durable(count: usize) -> Vec<Server> {
    (0..count)
        .map(|_| Server::with(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap())
        .collect()
}

#[test]
fn fences_that_differ_are_raised_to_the_greatest() {
    for count in [3, 5] {
        let servers = Server::several(count).unwrap();
        let mutex = long_lock(&client(&servers), "k").fenced();
        drop(take(&mutex));
        assert!(eventually(SOON, || servers.iter().all(|server| fields(
            server
        )
        .2
        .is_empty())));
        // A client with a clock that is ahead by a day took it, and no other client saw that.
        let ahead = micros() + 86_400_000_000;
        for (index, server) in servers.iter().enumerate() {
            set(server, &format!("{} 0 ", ahead + 10 * index as u64));
        }
        let before: u64 = servers.iter().map(scripts_run).sum();
        let guard = take(&mutex);
        let has_it = |server: &&Server| fields(server).0 == guard.fence().get();
        assert!(guard.fence().get() > ahead, "of a quorum, one other's");
        assert!(
            servers.iter().filter(has_it).count() > count / 2,
            "a quorum has it before it is known"
        );
        assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
        let ran = servers.iter().map(scripts_run).sum::<u64>() - before;
        assert!(ran > 2 * count as u64, "{ran}: some were raised");
        assert!(take(&mutex).fence() > FencingToken::try_from(ahead).unwrap());
    }
}

#[test]
fn a_node_that_lost_its_data_gets_the_key_again_and_no_smaller_fence() {
    let mut servers = Server::several(3).unwrap();
    let guard = take(&long_lock(&client(&servers), "k").fenced());
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
    let ([fence, other], owners) = (
        [0, 1].map(|node: usize| fields(&servers[node]).0),
        [0, 1].map(|node: usize| fields(&servers[node]).2),
    );
    assert!(fence >= other && owners[0] == owners[1], "{fence} {other}");
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    assert!(eventually(SOON, || servers.iter().all(|server| fields(
        server
    )
    .2
    .is_empty())));
}

#[test]
fn nodes_that_all_lost_their_data_go_on_above_what_they_gave_out() {
    let mut servers = Server::several(3).unwrap();
    // The numbers that they issued are forgotten, and no client guards against that.
    let client = builder(&servers)
        .restart_policy(RestartPolicy::Off)
        .build()
        .unwrap();
    let before = take(&long_lock(&client, "k").fenced()).fence();
    servers
        .iter_mut()
        .for_each(|server| server.restart().unwrap());
    let again = || {
        long_lock(&client, "k")
            .fenced()
            .try_lock()
            .ok()
            .flatten()
            .map(|guard| guard.fence())
    };
    let mut after = None;
    assert!(eventually(SOON, || {
        after = again();
        after.is_some()
    }));
    assert!(after > Some(before), "by the clock alone");
}

#[test]
fn a_pending_release_is_that_of_a_fenced_lock() {
    let mut servers = durable(3);
    let client = client(&servers);
    let guard = take(&long_lock(&client, "k").fenced());
    assert!(eventually(SOON, || value(&servers[0], KEY).is_some()));
    // The lock's own key may be released in the instant in which the node is back.
    servers[0].command(&["SET", "kept", "1"]).unwrap();
    servers[0].kill();
    assert_eq!(guard.unlock().unwrap(), ReleaseOutcome::Released);
    servers[0].restart().unwrap();
    assert!(
        value(&servers[0], "kept").is_some(),
        "it came back without its data"
    );
    let is_paid = || {
        let _ = client.mutex("other").try_lock();
        fields(&servers[0]).2.is_empty()
    };
    assert!(eventually(SOON, is_paid));
}

#[test]
fn a_minority_that_hangs_or_is_gone_costs_no_number() {
    let mut servers = durable(5);
    let nodes = servers
        .iter()
        .map(|server| format!("{}?durable=true", server.url()));
    let client = Redlock::builder()
        .nodes(nodes)
        .node_timeout(Duration::from_secs(1))
        .build()
        .unwrap();
    let mutex = long_lock(&client, "k").fenced();
    let mut last = take(&mutex).fence();
    let next = || {
        let guard = mutex
            .lock_timeout(SOON)
            .unwrap()
            .expect("a majority answers");
        assert!(guard.fence() > last);
        last = guard.fence();
    };
    minorities_fail(&mut servers, next);
}
