//! The procedures of the page on operations, run as they are printed: addresses and times differ,
//! nothing else.
//!
//! Programs take a lock in turns meanwhile. A lock that just a majority has is held where a
//! procedure could give it away.

mod site;

use crate::incarnations::excludes;
use crate::prelude::*;
use site::{Nodes, Site, procedure};

const LONG: Duration = Duration::from_secs(4);
const SHORT: Duration = Duration::from_secs(1);
const THREE: Nodes<'_> = &[0, 1, 2];
const ALL_VOTE: &str = "quorumlock nodes --config /etc/quorumlock.env";
const UNTIL_ALL_VOTE: &str =
    "until quorumlock nodes --config /etc/quorumlock.env; do sleep 0.1; done";

#[test]
fn a_node_is_replaced_while_a_lock_of_it_is_held() {
    let [stop, empty, wait] = procedure("Replace a node");
    let mut site = Site::of(4, &[("60s", "4s")]);
    let address = site.proxy(2);
    // The new server has been the only node of other programs.
    drop(take(&site.fresh(&[3], LONG).mutex("earlier")));
    site.begin();
    let programs = site.programs();
    let held = site.hold(THREE, &[0, 2], "held", LONG);
    site.run(&stop);
    assert!(
        site.servers[2].command(&["PING"]).is_err(),
        "no program reaches it"
    );
    site.run(&empty);
    address.lead_to(site.servers[3].port());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| site.run(&wait));
        programs.go_on();
        assert!(excludes(&held, || site.fresh(THREE, LONG)) > 1);
        waiting.join().unwrap();
    });
    site.run(ALL_VOTE);
    drop(take(&site.fresh(THREE, LONG).mutex("held")));
    programs.end();
}

#[test]
fn three_nodes_become_five_and_four_again() {
    const FOUR: Nodes<'_> = &[0, 1, 2, 3];
    const FIVE: Nodes<'_> = &[0, 1, 2, 3, 4];
    let [add, wait, correct, remove, stop] = procedure("Go from three nodes to five");
    let site = Site::of(5, &[("60s", "3s")]);
    let exclude = |one, other| site.exclude_each_other(one, other, Duration::from_secs(3));
    ask(&site.servers[3], &["SET", "jobs/earlier", "use"]);
    site.begin();
    let mut programs = site.programs();
    for (node, old, new) in [("10.0.0.4", THREE, FOUR), ("10.0.0.5", FOUR, FIVE)] {
        site.run(&add.replace("10.0.0.4", node));
        programs.go_on();
        programs.restart();
        site.run(&wait);
        assert_eq!(
            site.noted(old.len(), 5),
            new.len().to_string(),
            "a program with this number has found it"
        );
        assert!(exclude(old, new), "{node}");
    }
    assert!(value(&site.servers[3], "jobs/earlier").is_none());
    assert!(exclude(FOUR, &[1, 2, 3]), "a move, one node at a time");
    assert!(!exclude(THREE, FIVE), "both could have been added at once");
    site.run(&correct);
    assert!((0..5).all(|node| site.noted(node, 5) == "5"));
    site.run(ALL_VOTE);

    site.run(&remove);
    programs.go_on();
    programs.restart();
    assert!(exclude(FIVE, &[0, 1, 2, 4]));
    site.run(&stop);
    assert!(site.servers[3].command(&["PING"]).is_err());
    site.run(ALL_VOTE);
    programs.go_on();
    programs.end();
}

#[test]
fn a_shorter_max_ttl_is_what_nodes_remember() {
    let [lower, wait, store] = procedure("Lower `max_ttl`");
    let mut site = Site::of(
        3,
        &[
            ("60s", "4s"),
            ("sleep 60", "sleep 4"),
            ("30s", "1s"),
            ("30000", "1000"),
        ],
    );
    site.begin();
    let mut programs = site.programs();
    // A lease that a program with the longer one hands on.
    let held = site.hold(THREE, &[0, 1], "held", LONG);
    site.run(&lower);
    programs.go_on();
    programs.restart();
    site.run(&wait);
    site.run(&store);
    assert!((0..3).all(|node| site.noted(node, 4) == "1000"));
    site.run(ALL_VOTE);
    programs.go_on();
    programs.end();
    // A node that comes back empty waits for the shorter one, and that is enough.
    site.servers[0].restart().unwrap();
    excludes(&held, || site.fresh(THREE, SHORT));
    site.run(UNTIL_ALL_VOTE);
    assert_eq!(site.noted(0, 4), "1000");
    drop(take(&site.fresh(THREE, SHORT).mutex("held")));
}

#[test]
fn a_longer_max_ttl_is_known_to_a_node_that_was_cut_off() {
    const LONGER: Duration = Duration::from_secs(5);
    let [store, raise] = procedure("Raise `max_ttl`");
    let mut site = Site::of(3, &[("60s", "1s"), ("2m", "5s")]);
    let wire = site.proxy(2);
    site.begin();
    let mut programs = site.programs();
    let held = thread::scope(|scope| {
        wire.refuse(true);
        wire.reset_all();
        scope.spawn(|| {
            thread::sleep(SHORT);
            wire.refuse(false);
        });
        site.run(&store);
        site.run(&raise);
        site.hold(THREE, &[0, 1], "held", LONGER)
    });
    // No program is left that knows the longer one. One of the nodes that do hangs, and the other
    // one loses it.
    programs.stop();
    site.servers[1].pause().unwrap();
    site.servers[0].restart().unwrap();
    assert!(
        excludes(&held, || site
            .builder(THREE, SHORT)
            .node_timeout(NODE_TIMEOUT)
            .build()
            .unwrap())
            > 1
    );
    site.servers[1].resume().unwrap();
    programs.restart();
    programs.go_on();
    programs.end();
    site.run(UNTIL_ALL_VOTE);
    site.run("quorumlock run --config /etc/quorumlock.env --ttl 2m longer -- true");
}

#[test]
fn a_program_that_was_forgotten_holds_nothing_after_a_move() {
    let [stop, wait, start] = procedure("Move to other servers");
    let site = Site::of(6, &[("60s", "4s"), ("sleep 60", "sleep 4")]);
    ask_each(&site.servers[3..], &["SET", "jobs/held", "earlier"]);
    site.begin();
    let mut programs = site.programs();
    let held = site.hold(THREE, &[0, 1], "held", LONG);
    let forgotten =
        site.shell("exec quorumlock run --config quorumlock.env -q --ttl 1s forgotten -- sleep 60");
    assert_soon!(value(&site.servers[0], "jobs/forgotten").is_some());
    site.run(&stop);
    site.run(&wait);
    site.run(&start);
    assert!(held.remaining().is_zero());
    assert_eq!(
        forgotten.end(Duration::from_millis(10)).code,
        Some(70),
        "it has lost its lock"
    );
    programs.restart();
    drop(take(&site.fresh(&[3, 4, 5], LONG).mutex("held")));
    site.run(ALL_VOTE);
    programs.go_on();
    programs.end();
}

#[test]
fn flushed_test_servers_vote_at_once() {
    let [flush] = procedure("Flush test servers");
    let site = Site::of(3, &[]);
    site.begin();
    let programs = site.programs();
    programs.go_on();
    programs.end();
    let _earlier = site.hold(THREE, &[0, 1], "held", LONG);
    site.run(&flush);
    drop(take(&site.fresh(THREE, LONG).mutex("held")));
    site.run(ALL_VOTE);
}
