//! How soon a lock can be had when nodes are well again: against the same clients and nodes without any fault.
//!
//! A client that is careful with sick nodes must not be careful for ever. Machines that go off in the middle of a request
//! and come back are the worst case: their old connections are dead, nothing on the wire says so, and only a node that is
//! asked once more answers with a reset.

use crate::campaign::run;
use crate::plan::{Bounds, Fault, Kind, MILLISECOND, PathPlan, Plan, SECOND};
use crate::trace::Trace;
use quorumlock::embedded::{Condition, Flavour};

/// Seeds of each kind.
const SEEDS: u64 = if cfg!(debug_assertions) { 5 } else { 100 };
/// Longest that a sick node is left alone, one more try, and the answer.
const ENOUGH: u64 = 1_500 * MILLISECOND;

/// One thread that locks, so many nodes, and times to live that keep nobody waiting.
fn quiet(seed: u64, nodes: usize) -> Plan {
    let mut plan = Plan::of_seed(seed, Bounds::Kept);
    let mut node = plan.nodes[0].clone();
    (node.flavour, node.has_scripts, node.has_password, node.rate) = (Flavour::Redis, true, false, 0);
    plan.nodes = vec![node; nodes];
    plan.clients.truncate(1);
    (plan.clients[0].threads, plan.clients[0].rate) = (1, 0);
    plan.paths = vec![PathPlan { delay: MILLISECOND / 10, jitter: MILLISECOND / 100 }; nodes];
    (plan.resources, plan.ttls, plan.node_timeout) = (1, vec![100], 50 * MILLISECOND);
    (plan.loss, plan.straggling, plan.window, plan.piece) = (0, 0, 64 * 1024, 0);
    (plan.lateness, plan.preemption_rarity, plan.pause_rarity) = (1_000, 0, 0);
    (plan.watchdog_rarity, plan.extension_rarity, plan.idle) = (0, 0, 100 * MILLISECOND);
    plan.is_fenced = false;
    (plan.storm, plan.faults) = (5 * SECOND, Vec::new());
    plan
}

/// Every node hangs, with requests that it has taken, and then its machine goes off for a moment.
fn with_machines_that_restart(mut plan: Plan) -> Plan {
    for node in 0..plan.nodes.len() {
        let at = |time| plan.storm - time;
        let hang = Kind::Hang { node, time: 10 * SECOND };
        let crash = Kind::Crash { node, time: MILLISECOND / 2, keeps_data: true, is_dark: true };
        let (hang, crash) = (Fault { at: at(3 * SECOND), kind: hang }, Fault { at: at(MILLISECOND), kind: crash });
        plan.faults.extend([hang, crash]);
    }
    plan
}

/// The first node loads its data most of the time.
fn with_a_node_that_loads(mut plan: Plan) -> Plan {
    let kind = Kind::Condition { node: 0, condition: Condition::Loading, time: 4 * SECOND };
    plan.faults.push(Fault { at: SECOND / 2, kind });
    plan
}

/// The slowest of many recoveries.
fn slowest(plan: impl Fn(u64) -> Plan) -> u64 {
    let recovery = |seed| {
        let world = run(plan(seed), Trace::silent());
        assert!(world.judge.finding.is_none(), "seed {seed}: {:?}", world.judge.finding);
        world.judge.longest_recovery
    };
    (0..SEEDS).map(recovery).max().unwrap_or(0)
}

#[test]
fn nodes_whose_machines_went_off_are_soon_found_to_be_back() {
    for nodes in 1..=5 {
        let baseline = slowest(|seed| quiet(seed, nodes));
        let recovery = slowest(|seed| with_machines_that_restart(quiet(seed, nodes)));
        println!("{nodes} nodes: {} ms without a fault, {} ms after", baseline / MILLISECOND, recovery / MILLISECOND);
        assert!(
            recovery < baseline + ENOUGH,
            "{nodes} nodes: {} ms, and {} ms without a fault",
            recovery / MILLISECOND,
            baseline / MILLISECOND
        );
    }
}

/// What it was owed before is owed still, and is not sent again as fast as the answers come.
#[test]
fn a_node_that_loads_its_data_is_not_flooded_with_releases() {
    for seed in 0..SEEDS / 5 {
        let world = run(with_a_node_that_loads(quiet(seed, 3)), Trace::silent());
        assert!(world.judge.finding.is_none(), "seed {seed}: {:?}", world.judge.finding);
        let times = |kind: &str| -> u64 {
            world.seen.iter().filter(|(what, _)| what.starts_with(kind)).map(|(_, times)| times).sum()
        };
        let (asked, released) = (times("a SET"), times("a release"));
        assert!(released < 2 * asked, "seed {seed}: {released} releases for {asked} SETs");
    }
}
