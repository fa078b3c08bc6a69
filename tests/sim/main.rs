//! A deterministic simulator: many clients against many nodes, in one thread, on simulated time,
//! under every fault there is.
//!
//! # What is real
//! The library itself, from `Mutex::lock` down to the bytes: its queues, guards, watchdog thread,
//! engine, driver, nodes, connections, rounds, all of `protocol/`. Its files are compiled here a
//! second time, as modules of this crate, and only what touches the operating system has a
//! substitute (`os/`): locks and threads, the byte stream, poll, the wake-up, waits, entropy. The
//! lease clock is real as well, and reads simulated clocks. A thread of a client is a coroutine.
//! The nodes are the library's own embedded store, which answers as real servers do
//! (`tests/it/embedded_vs_real.rs`).
//!
//! Not here: host names, Unix sockets, `fork`, leases that are handed over as text.
//!
//! # How a run goes
//! ```text
//!   seed ──► plan: machines, clocks, paths, knobs, faults          shrink: the same with less
//!              │                                                      ▲
//!              ▼                                                      │ a rule was broken
//!   workload ──► library ──► wire ──► machine (node) ──► judge, holds ┘
//!      ▲           ▲          ▲          ▲
//!      └───────────┴─ kernel ─┴─ world ──┘◄── nemesis: strikes, heals
//! ```
//! 1. [`plan`] draws everything from the seed before anything happens. Whole kinds of faults are
//!    off, others frequent.
//! 2. While faults happen, [`workload`] takes, holds, extends and releases locks in every way;
//!    [`nemesis`] injects them; threads are interrupted and processes paused between any two steps
//!    that could matter: clock readings, system calls, mutexes.
//! 3. Then all faults end. Every client must get the lock once more, and nothing may be left
//!    behind.
//! 4. [`judge`] and [`holds`] know the specification and what really happened at the nodes, and
//!    nothing of how the library works. The table of their rules is in [`judge`].
//!
//! # Within the bounds, and beyond
//! Within: all kinds of locks on one name, messages lost, late, repeated and forged, queues
//! deleted, and those stopped or killed that are first; clocks that differ by less than
//! `drift_factor`, wall clocks of clients set at will and those of nodes set back, nodes that crash
//! and keep their data, hang, run out of memory, load, turn into replicas, refuse writes, are busy
//! with a script; messages late, lost, cut, blocked in one direction, connections half-open;
//! clients paused, asleep, killed, and begun at any time. Where clients look at what nodes
//! remember: nodes that lose what they have in any way ([`losses`]), and have their clocks set
//! forward then. There no rule may ever be broken, but for what the design leaves open
//! ([`memory`]). Beyond, [`literature`] must find what is known to go wrong. [`planting`] shows
//! that the rules find planted faults. [`scenes`] are planned by hand, for what random plans miss.
//!
//! # How to use it
//! ```text
//!   cargo test --release -p sim                                         a slice of seeds, other ones with each commit
//!   QUORUMLOCK_SIM_SEED=7 QUORUMLOCK_SIM_SEEDS=1 cargo test … within    that seed again, with its trace if it fails
//!   QUORUMLOCK_SIM_LINES=9999 …                                         more of its trace
//!   QUORUMLOCK_SIM_SEEDS=200000 cargo test … within -- --nocapture      many, with figures
//!   cargo test … literature -- --nocapture                              the traces of what must fail
//!   cargo test … planted -- --ignored --nocapture                       the table of planted faults
//! ```
//!
//! # When the library changes
//! The layers above `os/` are included as folders: a new file there is found by itself. A new call
//! to the system goes into the library's `os/`, and its substitute here into `os/`, with the names
//! that the layers above use and no more. New arguments of `Engine`, `Client` and `Settings` are
//! filled in by [`clients`]. [`judge`] is given new commands in `executed`. Unit tests of the files
//! that are included run here as well, without a simulation, but for the files of unit tests that
//! need sockets or threads of the system.

#![allow(missing_docs, unreachable_pub, dead_code, unused_imports)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use quorumlock::{algorithm, fault, protocol};

// The library itself, a layer each, as modules of this crate.
#[path = "../../src/api/mod.rs"]
mod api;
#[path = "../../src/engine/mod.rs"]
mod engine;
#[path = "../../src/events/mod.rs"]
mod events;

// The substitute for the operating system.
mod os;

mod call_rules;
mod campaign;
mod clients;
mod endings;
mod fences;
mod hints;
mod holds;
mod judge;
mod kernel;
mod keys;
mod literature;
mod locks;
mod losses;
mod machine;
mod memory;
mod mutants;
mod nemesis;
mod observer_rules;
mod plan;
mod planting;
mod profiles;
mod queues;
mod random;
mod readers;
mod recovery;
mod refusals;
mod scenes;
mod shrink;
mod trace;
mod waits;
mod wire;
mod workload;
mod world;

use campaign::{Campaign, number_from};
use plan::{Bounds, Plan};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Seeds that are run by default: some seconds.
const SLICE: u64 = if cfg!(debug_assertions) { 50 } else { 1000 };
/// Lines of a trace that are shown.
const PAGE: usize = 120;

/// What a few seeds do not show.
const RARE: [&str; 20] = [
    "fault: a node is a replica",
    "a copy of a node's data",
    "a deployment that is founded once more",
    "a note that is not stored",
    "a script by a hash that is not known",
    "a notification that is repeated",
    "a repair",
    "a SET that runs after its connection was closed",
    "an observer gets a repair",
    "an attempt that is won too late",
    "fault: a client is killed",
    "a client that is killed while its entry is first",
    "a client that is stopped while its entry is first",
    "a vote of a node whose loss cannot be seen yet",
    "fault: a client is paused",
    "fault: a node comes back with a snapshot",
    "fault: a node is a replica with other data for a while",
    "fault: a node is flushed",
    "fault: a node's clock is set forward",
    "fault: a replica that lags becomes the master",
];
/// What does not happen within the bounds.
const NEVER: [&str; 4] = [
    "a connection that the system ends",
    "a question for the holder of a key",
    "an entry of a read-write lock that is stored or removed",
    "fault: a node evicts keys",
];

/// Everything that is counted: the texts in calls of `saw`, and in the functions that choose one.
fn sights() -> BTreeSet<String> {
    let mut sights = BTreeSet::new();
    for folder in ["", "wire", "workload"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        for text in entries.flat_map(|entry| fs::read_to_string(entry.path())) {
            let behind = |begin: &str, end: &str| -> Vec<String> {
                let parts = text.split(begin).skip(1);
                let parts = parts.filter_map(|part| part.split(end).next());
                parts.map(str::to_owned).collect()
            };
            let calls = [behind(".saw(", ");"), behind("seen.entry(", ")")];
            let choices = [behind("fn name(", "\n}"), behind("fn sight(", "\n}")];
            let parts = [calls, choices].concat().concat();
            let texts = parts
                .iter()
                .flat_map(|part| part.split('"').skip(1).step_by(2));
            let begins = ["a ", "an ", "bytes ", "fault: "];
            let is_sight = |text: &&str| {
                begins.iter().any(|begin| text.starts_with(begin)) && !begins.contains(text)
            };
            sights.extend(texts.filter(is_sight).map(str::to_owned));
        }
    }
    sights
}

/// The main test: within its bounds, the library breaks no rule. Which seeds are run depends on the
/// commit.
#[test]
fn within_the_bounds_no_rule_is_broken() {
    let first = number_from("QUORUMLOCK_SIM_SEED").unwrap_or_else(campaign::seed_of_commit);
    let count = number_from("QUORUMLOCK_SIM_SEEDS").unwrap_or(SLICE);
    let campaign = Campaign::run(first, count, Bounds::Kept);
    println!("{campaign}");
    for (what, times) in &campaign.seen {
        println!("{times:>10} times: {what}");
    }
    if let Some(finding) = &campaign.finding {
        // To make it smaller may take minutes.
        println!(
            "{finding}\nTo replay it: {}\n{}",
            finding.command(),
            finding.trace(number_from("QUORUMLOCK_SIM_LINES").map_or(PAGE, |lines| lines as usize))
        );
        panic!(
            "{finding}\nTo replay it: {}\nMade smaller:\n{}",
            finding.command(),
            finding.story(PAGE)
        );
    }
}

/// The same seed is the same run, to the last event.
#[test]
fn a_seed_replays_exactly() {
    for seed in 0..20 {
        let once = campaign::replay(Plan::of_seed(seed, Bounds::Kept));
        let again = campaign::replay(Plan::of_seed(seed, Bounds::Kept));
        assert!(once.trace.len() > 10, "seed {seed} does nothing");
        assert_eq!(
            (once.events, once.now, once.tasks.switches),
            (again.events, again.now, again.tasks.switches)
        );
        assert_eq!(
            once.trace.page(usize::MAX),
            again.trace.page(usize::MAX),
            "seed {seed}"
        );
    }
}

/// What is simulated does happen: every fault, and everything that the library has an answer to.
#[test]
fn everything_happens() {
    let count = if cfg!(debug_assertions) { 60 } else { 1000 };
    let seen = Campaign::run(1, count, Bounds::Kept).seen;
    let sights = sights();
    assert!(sights.len() > 115, "no longer recognised: {sights:?}");
    let is_missing = |what: &&String| {
        let is_rare = NEVER.contains(&what.as_str())
            || cfg!(debug_assertions) && RARE.contains(&what.as_str());
        !is_rare && !seen.contains_key(what.as_str())
    };
    let missing: Vec<_> = sights.iter().filter(is_missing).collect();
    assert!(
        missing.is_empty(),
        "never seen in {count} seeds: {missing:?}"
    );
}

/// Not a check: how many seeds it takes to find something, for the table of planted faults.
#[test]
#[ignore = "run by the table of planted faults"]
fn hunt() {
    let campaign = Campaign::run(
        1,
        number_from("QUORUMLOCK_SIM_SEEDS").unwrap_or(60_000),
        Bounds::Kept,
    );
    match &campaign.finding {
        Some(finding) => println!("CAUGHT after {} seeds by {}", campaign.seeds, finding.rule),
        None => println!("MISSED by {} seeds", campaign.seeds),
    }
}
