//! Many seeds, one after the other, and what they came to.

use crate::plan::{Bounds, Plan, SECOND, seconds};
use crate::trace::Trace;
use crate::world::World;
use crate::{kernel, shrink, workload};
use std::collections::BTreeMap;
use std::fmt;
use std::process::Command;
use std::time::{Duration, Instant};

/// What was run, and the first rule that was broken.
#[derive(Default)]
pub(crate) struct Campaign {
    pub(crate) seeds: u64,
    first: u64,
    time: u128,
    events: u64,
    switches: u64,
    attempts: u64,
    acquired: u64,
    extended: u64,
    faults: u64,
    longest_recovery: u64,
    took: Duration,
    pub(crate) seen: BTreeMap<&'static str, u64>,
    pub(crate) finding: Option<Finding>,
}

/// A rule that was broken.
pub(crate) struct Finding {
    pub(crate) seed: u64,
    pub(crate) rule: &'static str,
    what: String,
    pub(crate) plan: Plan,
}

impl Campaign {
    /// Runs seeds until one breaks a rule.
    pub(crate) fn run(first: u64, count: u64, bounds: Bounds) -> Campaign {
        Campaign::run_until(first, count, bounds, "")
    }

    /// Runs seeds until one breaks the rule that is looked for, or any, if none is.
    pub(crate) fn run_until(first: u64, count: u64, bounds: Bounds, wanted: &str) -> Campaign {
        let begun = Instant::now();
        let mut campaign = Campaign {
            first,
            ..Campaign::default()
        };
        while campaign.seeds < count && campaign.finding.is_none() {
            let plan = Plan::of_seed(first.wrapping_add(campaign.seeds), bounds);
            campaign.seeds += 1;
            campaign.add(run(plan, Trace::silent()), wanted);
        }
        campaign.took = begun.elapsed();
        campaign
    }

    fn add(&mut self, world: World, wanted: &str) {
        self.time += u128::from(world.now);
        self.events += world.events;
        self.switches += world.tasks.switches;
        self.attempts += world.judge.attempts;
        self.acquired += world.judge.acquired;
        self.extended += world.judge.extended;
        self.faults += world.plan.faults.len() as u64;
        self.longest_recovery = self.longest_recovery.max(world.judge.longest_recovery);
        for (what, times) in world.seen {
            *self.seen.entry(what).or_default() += times;
        }
        if let Some((rule, what, _)) = world.judge.finding
            && (wanted.is_empty() || wanted == rule)
        {
            self.finding = Some(Finding {
                seed: world.plan.seed,
                rule,
                what,
                plan: world.plan,
            });
        }
    }
}

impl Finding {
    /// What runs it again, in a shell.
    pub(crate) fn command(&self) -> String {
        let seed = self.seed;
        format!(
            "QUORUMLOCK_SIM_SEED={seed} QUORUMLOCK_SIM_SEEDS=1 cargo test --release -p sim within -- --nocapture"
        )
    }

    /// Its plan, and the last lines of its trace.
    pub(crate) fn trace(&self, most: usize) -> String {
        let plan = Plan::of_seed(self.seed, self.plan.bounds);
        format!("{plan:?}\n{}", replay(plan.clone()).trace.page(most))
    }

    /// The same, made as small as it gets.
    pub(crate) fn story(&self, most: usize) -> String {
        let plan = shrink::shrink(&self.plan, self.rule);
        format!("{plan:?}\n{}", replay(plan.clone()).trace.story(most))
    }
}

/// One run of a plan.
pub(crate) fn run(plan: Plan, trace: Trace) -> World {
    *kernel::run(World::new(plan, trace), workload::begin)
}

/// One run of a plan, with its trace.
pub(crate) fn replay(plan: Plan) -> World {
    run(plan, Trace::kept())
}

pub(crate) fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// A first seed that is another one with every commit; outside of a repository always the same.
pub(crate) fn seed_of_commit() -> u64 {
    let head = Command::new("git")
        .args(["rev-parse", "HEAD"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    let head = head
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_default();
    u64::from_str_radix(head.get(..12).unwrap_or("1"), 16).unwrap_or(1)
}

impl fmt::Display for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.events as f64 / self.took.as_secs_f64().max(0.001);
        write!(
            f,
            "{} seeds from {}: {} simulated seconds, {} faults, {} attempts, {} locks taken, {} extended by hand, \
             {} events and {} switches in {:.1?} ({:.0} events a second); slowest recovery {}",
            self.seeds,
            self.first,
            self.time / u128::from(SECOND),
            self.faults,
            self.attempts,
            self.acquired,
            self.extended,
            self.events,
            self.switches,
            self.took,
            rate,
            seconds(self.longest_recovery)
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {} breaks the rule \"{}\": {}",
            self.seed, self.rule, self.what
        )
    }
}
