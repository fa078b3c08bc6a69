//! The proofs are about the code: what the library does on random schedules are steps that the
//! proofs have.
//!
//! [`world`] runs the pure layers of the library, with nodes that are the library's embedded ones,
//! and writes down what happens. [`one_holder`] and [`kinds`] write that as states and steps of the
//! proofs, and Z3 decides whether each step is one by the definitions in the `.smt2` file. So these
//! tests fail where the code does what a proof excludes. That the proofs are right is what
//! `tests/proofs/run` shows. `tests/it/tidy/proofs.rs` checks that each step names code.
//!
//! They need `z3` on the `PATH`, and fail without it; `tests/run` leaves them out then.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test"
)]

mod kinds;
mod notes;
mod one_holder;
mod program;
#[path = "../sim/random.rs"]
#[allow(dead_code, reason = "the simulator draws in more ways")]
mod random;
mod smt;
mod world;

use kinds::{fences, messages, permits, readers_writers};
use notes::{founding, longest};
use one_holder::{exclusion, wait};
use smt::Replay;
use world::Lock::{Fenced, Permits, Plain, ReadWrite};
use world::Programs::{Alike, Differ, Strict};
use world::{Lock, Programs, What, World};

/// How long a world lasts, in microseconds.
const LASTS: u64 = 4_000_000;

/// Changes what has happened in a world.
type Changes = fn(&mut World);
/// Writes a world as steps of a proof.
type Writes = fn(&World, &mut Replay);

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().expect("a number"))
}

/// The worlds of each proof, and what replays them.
const REPLAYS: [(&str, Lock, Programs, Writes); 14] = [
    ("longest.smt2", Plain, Differ, longest),
    ("founding.smt2", Plain, Alike, founding),
    ("wait.smt2", Plain, Alike, wait),
    ("wait.smt2", Plain, Strict, wait),
    ("exclusion.smt2", Plain, Alike, exclusion),
    ("exclusion.smt2", Plain, Strict, exclusion),
    ("exclusion.smt2", Permits(2), Alike, exclusion),
    ("permits.smt2", Permits(2), Alike, permits),
    ("fences.smt2", Fenced, Alike, fences),
    ("readers_writers.smt2", ReadWrite, Alike, readers_writers),
    ("messages.smt2", Plain, Alike, messages),
    ("messages.smt2", Permits(3), Alike, messages),
    ("messages.smt2", Fenced, Alike, messages),
    ("messages.smt2", ReadWrite, Alike, messages),
];

fn replays(proof: &str) -> impl Iterator<Item = &'static (&'static str, Lock, Programs, Writes)> {
    REPLAYS.iter().filter(move |(name, ..)| *name == proof)
}

/// Replays as many worlds as are asked for: always the same ones, so that a failure is one of the
/// code.
fn replay(proof: &str) {
    let worlds = variable("QUORUMLOCK_PROOF_WORLDS").unwrap_or(2);
    let first = variable("QUORUMLOCK_PROOF_SEED").unwrap_or(1);
    for &(proof, lock, programs, writes) in replays(proof) {
        let mut steps = 0;
        for seed in first..first + worlds {
            let world = World::run(lock, programs, seed, LASTS);
            let mut replay = Replay::of(proof);
            writes(&world, &mut replay);
            if let Some(failure) = replay.failure() {
                panic!("QUORUMLOCK_PROOF_SEED={seed} {lock:?} {programs:?}\n{failure}");
            }
            let len = replay.len();
            println!("{proof} {lock:?} {programs:?} {seed}: {len} steps");
            steps += len;
        }
        // One world may have few steps: seed 8137 has 69 of readers and writers.
        let least = 100 * (worlds as usize - 1);
        let about = format!("{proof} {lock:?} {programs:?}: {steps} steps in {worlds} worlds");
        assert!(steps > least, "{about}");
    }
}

#[test]
fn a_program_knows_the_longest_time_to_live() {
    replay("longest.smt2");
}

#[test]
fn a_deployment_is_founded_once() {
    replay("founding.smt2");
}

#[test]
fn a_restarted_node_is_waited_for() {
    replay("wait.smt2");
}

#[test]
fn rounds_that_are_won_exclude_each_other() {
    replay("exclusion.smt2");
}

#[test]
fn a_permit_is_the_lock_of_a_slot() {
    replay("permits.smt2");
}

#[test]
fn fences_grow() {
    replay("fences.smt2");
}

#[test]
fn a_writer_is_alone() {
    replay("readers_writers.smt2");
}

#[test]
fn messages_and_queues_change_nothing() {
    replay("messages.smt2");
}

/// Whether one of some worlds is not as a proof has it, if both are changed.
fn is_found(proof: &str, change: impl Fn(&mut World), rule: Option<[&str; 2]>) -> bool {
    (0..8)
        .flat_map(|seed| replays(proof).map(move |replay| (seed, replay)))
        .any(|(seed, &(proof, lock, programs, writes))| {
            let mut world = World::run(lock, programs, seed, LASTS);
            change(&mut world);
            let mut replay = Replay::of(proof);
            if let Some([from, to]) = rule {
                replay.change(from, to);
            }
            writes(&world, &mut replay);
            replay.failure().is_some()
        })
}

/// Changes each step.
fn each(world: &mut World, mut change: impl FnMut(u64, &mut What)) {
    for step in &mut world.steps {
        change(step.at, &mut step.what);
    }
}

/// Counts each grant as soon as it was run.
fn count_at_once(world: &mut World) {
    for round in &mut world.rounds {
        round.counted.clone_from(&round.granted);
    }
}

#[test]
fn what_the_code_must_not_do_is_found() {
    let is_found = |what: &str, proof: &str, change: Changes| {
        assert!(is_found(proof, change, None), "{what}");
    };
    let own = "a program notes its own time to live, though it knows a longer one";
    is_found(own, "longest.smt2", |world| {
        let setup = world.setup;
        each(world, |_, what| {
            if let What::Noted { note, by, .. } = what {
                note.max_ttl = setup.max_ttl(*by).as_millis() as u64;
            }
        });
    });
    let new = "a node looks new that was noted some time ago";
    is_found(new, "founding.smt2", |world| {
        each(world, |_, what| {
            if let What::Looked { age: Some(age), .. } = what {
                age.is_new = true;
            }
        });
    });
    let half = "a round is won by half of the nodes";
    is_found(half, "exclusion.smt2", |world| {
        let half = world.nodes.len() / 2;
        for round in &mut world.rounds {
            let counted = round.counted.iter_mut().filter(|counted| counted.is_some());
            counted.skip(half).for_each(|counted| *counted = None);
        }
    });
    is_found("the drift is forgotten", "wait.smt2", |world| {
        let rounds = world.rounds.iter_mut();
        rounds.for_each(|round| round.lasts += round.lasts / 30);
    });
    let at_once = "a node that has to wait counts at once";
    is_found(at_once, "wait.smt2", |world| {
        each(world, |at, what| {
            if let What::Looked {
                from: Some(from), ..
            } = what
            {
                *from = at;
            }
        });
    });
    let early = "a vote counts that does not count yet";
    is_found(early, "wait.smt2", |world| {
        count_at_once(world);
        for step in std::mem::take(&mut world.steps) {
            let counted = match step.what {
                What::Granted(granted) => Some(What::Counted(granted.round)),
                _ => None,
            };
            let counted = counted.map(|what| world::Step {
                what,
                ..step.clone()
            });
            world.steps.push(step);
            world.steps.extend(counted);
        }
    });
    let lost = "a slot is counted at a node that has lost its keys";
    is_found(lost, "permits.smt2", count_at_once);
    is_found("not the greatest number counts", "fences.smt2", |world| {
        each(world, |_, what| {
            if let What::Agreed(_, m) = what {
                *m -= 1;
            }
        });
    });
    let admitted = "a reader is admitted as a writer";
    is_found(admitted, "readers_writers.smt2", |world| {
        each(world, |_, what| {
            if let What::Granted(granted) = what {
                granted.is_write = true;
            }
        });
    });
    is_found("a slot is given that is taken", "messages.smt2", |world| {
        let attempts = world.attempts.iter_mut();
        attempts.for_each(|attempt| attempt.slot = 0);
    });
}

#[test]
fn rules_that_are_not_the_codes_are_found() {
    let rules = "
        longest.smt2: (ite (has notes-what-it-knows) (known s) (elsewhere s)) -> longest
        founding.smt2: (or (= m absent) -> (or false
        exclusion.smt2: (+ (div n 2) 1) -> (+ (div n 2) 2)
        exclusion.smt2: (<= (counted m a) (won -> (< (counted m a) (won
        wait.smt2: (+ (now s) (- known age)) -> (+ (now s) known)
        wait.smt2: (+ (now s) (ttl g)) -> (+ (now s) (* 1.1 (ttl g)))
        wait.smt2: (ite strict never (look (other s))) -> (look (other s))
        permits.smt2: (+ (born s) longest) -> (+ (now s) longest)
        fences.smt2: (< (last s) given) -> (< (+ (last s) 1000000000) given)
        readers_writers.smt2: (or (is-held s k) (is-free s) (not (writes s))) -> (is-free s)
        messages.smt2: (or (admits s c) (not (has looks-at-key))) -> (not (admits s c))
    ";
    for rule in rules.lines().map(str::trim).filter(|rule| !rule.is_empty()) {
        let (proof, edit) = rule.split_once(": ").unwrap();
        let (from, to) = edit.split_once(" -> ").unwrap();
        assert!(is_found(proof, |_| {}, Some([from, to])), "{rule}");
    }
}
