//! Beyond the bounds: what must go wrong according to the literature does go wrong here, and is
//! found.
//!
//! A simulator that finds nothing shows nothing. These are the known ways to make Redlock fail,
//! each outside of what the library promises; each is found within a number of seeds, and made
//! small enough to be read. Run them with `cargo test --release -p sim literature -- --nocapture`
//! to see the traces.
//!
//! Where there is a remedy, the same plan with it is clean, on as many seeds as show the failure
//! without: [`cured_by`]. So far: the lease clock against sleep, a larger `drift_factor` against
//! clocks that disagree, and the guard against restarts where nodes forget. Nothing in a lock
//! library helps against evictions, clocks of nodes that jump, and late writes, but fences that the
//! resource checks.
//!
//! To be added with what closes them: fences in [`a_client_that_stands_still_writes_too_late`], as
//! `cured_by(&plan, rule, |plan| ...)` on a new field of the plan.

use crate::campaign::{Campaign, replay, run};
use crate::plan::{Bounds, Data, Kind, Plan, Reckoning};
use crate::shrink;
use crate::trace::Trace;
use quorumlock::RestartPolicy;

/// Seeds in which something must be found.
const ENOUGH: u64 = 20_000;
/// Seeds that a plan is run on without its remedy, and with it.
const COMPARED: u64 = 300;

/// Looks for a run that breaks a rule, from a seed on that has been known to, and makes it small. A
/// changed library draws other numbers, and needs another seed.
fn find(bounds: Bounds, rule: &'static str, known: u64) -> Plan {
    let campaign = Campaign::run_until(known, ENOUGH, bounds, rule);
    let finding = campaign
        .finding
        .unwrap_or_else(|| panic!("{bounds:?} break nothing in {ENOUGH} seeds"));
    if cfg!(debug_assertions) {
        println!("{bounds:?}: {finding}");
        return finding.plan;
    }
    let plan = shrink::shrink(&finding.plan, rule);
    let world = replay(plan.clone());
    // From the fault on.
    println!(
        "{bounds:?}: seed {}, after {} of them, made smaller: {plan:?}\n{}",
        finding.seed,
        campaign.seeds,
        world.trace.story(13)
    );
    assert!(matches!(world.judge.finding, Some((broken, ..)) if broken == rule));
    plan
}

/// Whether such a fault is part of a plan.
fn has(plan: &Plan, is_it: impl Fn(Kind) -> bool) -> bool {
    plan.faults.iter().any(|fault| is_it(fault.kind))
}

/// Runs a plan that breaks a rule on many seeds, and then with its remedy: without it some must
/// break the rule, with it none may break any.
fn cured_by(plan: &Plan, rule: &str, remedy: impl Fn(&mut Plan)) {
    let broken = |plan: &Plan| {
        let seeds = (0..COMPARED).map(|step| plan.seed.wrapping_add(step));
        let findings = seeds.filter_map(|seed| {
            run(
                Plan {
                    seed,
                    ..plan.clone()
                },
                Trace::silent(),
            )
            .judge
            .finding
        });
        findings.collect::<Vec<_>>()
    };
    let mut with = plan.clone();
    remedy(&mut with);
    if cfg!(debug_assertions) {
        // Not made smaller, and slow.
        assert_eq!(run(with, Trace::silent()).judge.finding, None);
        return;
    }
    let without = broken(plan);
    let with = broken(&with);
    println!(
        "{COMPARED} seeds of it: {} break a rule without the remedy, {} with it",
        without.len(),
        with.len()
    );
    assert!(
        without.iter().any(|(broken, ..)| *broken == rule),
        "nothing is shown"
    );
    assert!(with.is_empty(), "{with:?}");
}

/// A machine sleeps, and the clock that leases are reckoned by sleeps as well: its lease is not
/// over when its keys are. The library's own clock goes on.
#[test]
fn a_machine_that_sleeps_relies_on_a_lock_that_is_gone() {
    let plan = find(Bounds::SteadyClock, "exclusion", 240);
    assert!(has(&plan, |kind| kind == Kind::Sleep));
    cured_by(&plan, "exclusion", |plan| {
        plan.reckoning = Reckoning::LeaseClock
    });
}

/// A restarted node that has lost its data grants the lock a second time: A, B and C held; C
/// forgets; C, D and E taken.
#[test]
fn a_node_that_forgets_gives_a_lock_away_twice() {
    let plan = find(Bounds::Amnesia, "exclusion", 352);
    let is_loss = |kind| {
        matches!(
            kind,
            Kind::Crash(Data::Lost) | Kind::MachineCrash(Data::Lost)
        )
    };
    assert!(has(&plan, is_loss));
    cured_by(&plan, "exclusion", |plan| {
        plan.restart_policy = RestartPolicy::Strict
    });
}

/// Kleppmann: a node's clock jumps, a key expires early, and a second client gets a majority.
#[test]
fn a_clock_that_jumps_ends_a_lock_early() {
    let plan = find(Bounds::ClockJumps, "exclusion", 661);
    assert!(has(&plan, |kind| matches!(kind, Kind::SetNodeClock(1..))));
}

/// Memory policies that evict keys evict locks.
#[test]
fn a_node_that_evicts_keys_gives_locks_away() {
    let plan = find(Bounds::Eviction, "exclusion", 446);
    assert!(has(&plan, |kind| kind == Kind::Evict));
}

/// Clocks that disagree by more than `drift_factor` allows.
#[test]
fn clocks_that_run_too_differently_end_a_lock_early() {
    let plan = find(Bounds::WildClocks, "exclusion", 73);
    cured_by(&plan, "exclusion", |plan| plan.drift_factor = 500);
}

/// Where two clients hold a lock at once because of clocks, their fences still differ, and the one
/// that began later has the greater one.
#[test]
fn fences_grow_beyond_every_bound_of_time() {
    for bounds in [Bounds::ClockJumps, Bounds::SteadyClock, Bounds::WildClocks] {
        let count = if cfg!(debug_assertions) { 30 } else { 400 };
        let mut acquired = 0;
        let mut raised = 0;
        for seed in 0..count {
            let plan = Plan::of_seed(seed, bounds);
            let world = run(
                Plan {
                    is_fenced: true,
                    is_mixed: false,
                    only: Some("fences grow"),
                    ..plan
                },
                Trace::silent(),
            );
            assert_eq!(world.judge.finding, None, "{bounds:?}, seed {seed}");
            acquired += world.judge.acquired;
            raised += world
                .seen
                .get("a fence that is raised")
                .copied()
                .unwrap_or(0);
        }
        println!("{bounds:?}: {acquired} fences in {count} seeds, {raised} raises, and they grow");
        assert!(acquired > 0);
    }
}

/// Kleppmann again: a client checks its lease, stops for too long, and writes when another client
/// holds the lock. No lease, however it is kept, can prevent that; only the resource itself can, by
/// refusing writes that come too late.
#[test]
fn a_client_that_stands_still_writes_too_late() {
    let plan = find(Bounds::Writes, "late write", 70);
    assert!(
        has(&plan, |kind| matches!(kind, Kind::Pause | Kind::Sleep))
            || plan.pause_rarity + plan.preemption_rarity > 0
    );
}
