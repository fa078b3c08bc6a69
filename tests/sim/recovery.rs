//! How soon a lock can be had when nodes are well again: against the same clients and nodes without
//! any fault.
//!
//! A client that asks failing nodes less often must ask them normally again in the end. Machines
//! that are switched off in the middle of a request and come back are the worst case: their old
//! connections are gone, nothing on the wire shows it, and only a node that is asked once more
//! answers with a reset.

use crate::campaign::run;
use crate::holds::{self, Taken};
use crate::plan::{Bounds, Data, Kind, MILLISECOND, PathPlan, Plan, SECOND};
use crate::trace::Trace;
use crate::world::World;
use crate::{clients, kernel};
use quorumlock::RestartPolicy;
use quorumlock::embedded::{Condition, ServerKind};
use std::time::Duration;

/// Seeds of each kind.
const SEEDS: u64 = if cfg!(debug_assertions) { 5 } else { 100 };
/// The longest back-off of a failing node, one more try, and the answer.
const ENOUGH: u64 = 1_500 * MILLISECOND;

/// One thread that locks, so many nodes, and times to live that delay no waiter.
pub(crate) fn quiet(seed: u64, nodes: usize) -> Plan {
    let mut plan = Plan::of_seed(seed, Bounds::Kept);
    let mut node = plan.nodes[0].clone();
    node.flavour = ServerKind::Redis;
    node.has_password = false;
    node.rate = 0;
    plan.nodes = vec![node; nodes];
    plan.clients.truncate(1);
    (
        plan.clients[0].threads,
        plan.clients[0].rate,
        plan.clients[0].callback,
    ) = (1, 0, 0);
    plan.paths = vec![PathPlan::new(MILLISECOND / 10, MILLISECOND / 100); nodes];
    plan.quieten();
    plan.ttls = vec![100];
    plan.node_timeout = 50 * MILLISECOND;
    plan.lateness = 1_000;
    plan.idle = 100 * MILLISECOND;
    plan.is_fenced = false;
    plan.is_fair = false;
    plan.has_sets = false;
    plan.has_tls = false;
    plan.is_read_write = false;
    plan.is_mixed = false;
    plan.has_permits = false;
    plan.fault_time = 5 * SECOND;
    if plan.restart_policy == RestartPolicy::Strict {
        // The first program of a new deployment would wait.
        plan.restart_policy = RestartPolicy::Observed;
    }
    plan
}

/// Every node hangs, with requests that it has taken, and then its machine goes off for a moment.
fn with_machines_that_restart(mut plan: Plan) -> Plan {
    for node in 0..plan.nodes.len() {
        let hang = Kind::Hang.of_node(node).lasting(10 * SECOND);
        let crash = Kind::MachineCrash(Data::Kept).of_node(node);
        let end = plan.fault_time;
        plan.add(end - 3 * SECOND, hang);
        plan.add(end - MILLISECOND, crash.lasting(MILLISECOND / 2));
    }
    plan
}

/// The first node loads its data most of the time.
fn with_a_node_that_loads(mut plan: Plan) -> Plan {
    let loads = Kind::Condition(Condition::Loading).of_node(0);
    plan.add(SECOND / 2, loads.lasting(4 * SECOND));
    plan
}

/// Runs a plan, with a thread of its first client in place of those that the plan has. What it
/// asserts is a finding, of which there must be none.
pub(crate) fn play(plan: Plan, scene: impl Fn() + Copy + Send + Sync + 'static) -> Box<World> {
    let seed = plan.seed;
    let world = kernel::run(World::new(plan, Trace::silent()), move || {
        kernel::spawn(0, scene);
    });
    assert_eq!(world.judge.finding, None, "seed {seed}");
    world
}

/// The slowest of many recoveries.
fn slowest(plan: impl Fn(u64) -> Plan) -> u64 {
    let recovery = |seed| {
        let world = run(plan(seed), Trace::silent());
        assert_eq!(world.judge.finding, None, "seed {seed}");
        world.judge.longest_recovery
    };
    (0..SEEDS).map(recovery).max().unwrap_or(0)
}

#[test]
fn nodes_whose_machines_went_off_are_soon_found_to_be_back() {
    for nodes in 1..=5 {
        let baseline = slowest(|seed| quiet(seed, nodes));
        let recovery = slowest(|seed| with_machines_that_restart(quiet(seed, nodes)));
        println!(
            "{nodes} nodes: {} ms without a fault, {} ms after",
            baseline / MILLISECOND,
            recovery / MILLISECOND
        );
        assert!(
            recovery < baseline + ENOUGH,
            "{nodes} nodes: {} ms, and {} ms without a fault",
            recovery / MILLISECOND,
            baseline / MILLISECOND
        );
    }
}

/// Its pending releases stay pending, and are not sent again as fast as the answers come.
#[test]
fn a_node_that_loads_its_data_is_not_flooded_with_releases() {
    for seed in 0..SEEDS / 5 {
        let world = run(with_a_node_that_loads(quiet(seed, 3)), Trace::silent());
        assert_eq!(world.judge.finding, None, "seed {seed}");
        let times = |kind: &str| -> u64 {
            world
                .seen
                .iter()
                .filter(|(what, _)| what.starts_with(kind))
                .map(|(_, times)| times)
                .sum()
        };
        let asked = times("a SET");
        let released = times("a release");
        assert!(
            released < 2 * asked,
            "seed {seed}: {released} releases for {asked} SETs"
        );
    }
}

/// The first attempt of a process, and the second, when the connections are there.
fn two_attempts() {
    kernel::spawn(0, || {
        let mutex = clients::open(0).mutex("r0").ttl(Duration::from_secs(5));
        for (what, begun) in [
            ("a cold attempt that wins", (0, 0)),
            ("a warm attempt that wins", (0, 0)),
        ] {
            if let Ok(Some(guard)) = mutex.try_lock() {
                let hold = holds::took(Taken::alone(0), guard.remaining(), begun);
                kernel::with(|world| {
                    world.saw(what);
                    world.gives_back(hold, true);
                });
            }
            kernel::sleep_until(kernel::with(|world| world.now) + SECOND);
        }
    });
}

/// Connecting takes a round trip, and so does the attempt: each has the node timeout. Only nodes
/// that are farther away than that cannot be locked on.
#[test]
fn an_attempt_that_has_to_connect_first_has_time_for_that() {
    for (node_timeout, round_trip, wins) in [
        (50, 30, true),
        (50, 40, true),
        (50, 48, true),
        (50, 60, false),
        (100, 60, true),
        (100, 96, true),
    ] {
        let seen = (0..4).map(|seed| {
            let mut plan = quiet(seed, 3);
            plan.node_timeout = node_timeout * MILLISECOND;
            plan.ttls = vec![5000];
            plan.paths.fill(PathPlan::new(
                round_trip * MILLISECOND / 2,
                MILLISECOND / 100,
            ));
            kernel::run(World::new(plan, Trace::silent()), two_attempts).seen
        });
        let seen: Vec<_> = seen.collect();
        let times = |what| seen.iter().filter(|seen| seen.contains_key(what)).count();
        let cold = times("a cold attempt that wins");
        let warm = times("a warm attempt that wins");
        println!(
            "round trip {round_trip} ms of {node_timeout}: {cold} of 4 cold attempts, {warm} of 4 warm ones"
        );
        assert_eq!(
            (cold, warm),
            if wins { (4, 4) } else { (0, 0) },
            "{round_trip} ms of {node_timeout}"
        );
    }
}

/// A subscriber connection to a node that is far has nothing to read when it has just been made.
/// That is not its end: releases are received, and connections are made once, not again and again.
#[test]
fn notifications_of_far_nodes_are_received() {
    for seed in 0..SEEDS / 5 {
        let mut plan = quiet(seed, 3);
        plan.clients = vec![plan.clients[0].clone(); 2];
        plan.paths = vec![PathPlan::new(3 * MILLISECOND, MILLISECOND / 10); 6];
        plan.ttls = vec![1000];
        plan.idle = MILLISECOND;
        let world = run(plan, Trace::silent());
        assert_eq!(world.judge.finding, None, "seed {seed}");
        let times = |what| world.seen.get(what).copied().unwrap_or(0);
        let received = times("a notification that a subscriber receives");
        let made = times("a connection that is made");
        println!("seed {seed}: {received} notifications received, {made} connections");
        assert!(
            received > 10,
            "seed {seed}: {received} notifications were received, on {made} connections"
        );
    }
}
