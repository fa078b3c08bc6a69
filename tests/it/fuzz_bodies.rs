//! The bodies of the fuzz targets, compiled and run as ordinary tests.
//!
//! A fuzzer runs them for minutes and is led by what the code does with an input; here they run for
//! a moment, on chosen inputs (`fuzz/seeds/`) and on random changes of these. It shows that the
//! bodies are in order, and it finds what is badly wrong. The seed of chance is printed;
//! `QUORUMLOCK_FUZZ_SEED` sets it.

#[path = "../../fuzz/bodies/mod.rs"]
mod bodies;

use crate::prelude::*;
use std::hash::{BuildHasher, RandomState};
use std::panic;

/// Inputs per body, in addition to the seeds themselves.
const INPUTS: usize = 4_000;
/// No input that chance makes is longer.
const LONGEST: usize = 1024;

#[test]
fn the_decoder_holds() {
    exercise("decoder", bodies::decoder::run);
}

#[test]
fn urls_hold() {
    exercise("endpoint", bodies::endpoint::run);
}

#[test]
fn leases_as_text_hold() {
    exercise("lease", bodies::lease::run);
}

#[test]
fn schedules_of_extensions_hold() {
    exercise("renewal", bodies::renewal::run);
}

#[test]
fn round_trips_hold() {
    exercise("round_trip", bodies::round_trip::run);
}

#[test]
fn what_servers_report_holds() {
    exercise("server", bodies::server::run);
}

#[test]
fn conversations_hold() {
    exercise("session", bodies::session::run);
}

#[test]
fn what_is_stored_holds() {
    exercise("stored", bodies::stored::run);
}

#[test]
fn messages_hold() {
    exercise("subscription", bodies::subscription::run);
}

/// Runs a body on every seed, on every beginning of a short one, and on what chance makes of them.
#[allow(clippy::print_stdout)]
fn exercise(target: &str, body: fn(&[u8])) {
    let chosen = storm::number("QUORUMLOCK_FUZZ_SEED");
    let seed = chosen.unwrap_or_else(|| RandomState::new().hash_one(target));
    println!("QUORUMLOCK_FUZZ_SEED={seed}");
    let mut chance = Chance(Random::from_seed(seed));
    let seeds = seeds(target);
    for seed in &seeds {
        attempt(body, seed);
        (0..seed.len().min(256)).for_each(|length| attempt(body, &seed[..length]));
    }
    for _ in 0..INPUTS {
        let input = chance.input(&seeds);
        attempt(body, &input);
    }
}

/// Runs a body on one input, and shows the input when it fails.
#[allow(clippy::print_stdout)]
fn attempt(body: fn(&[u8]), input: &[u8]) {
    if let Err(reason) = panic::catch_unwind(|| body(input)) {
        println!("input: b\"{}\"", input.escape_ascii());
        panic::resume_unwind(reason);
    }
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = root().join("fuzz/seeds").join(target);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    // In the same order everywhere, for the sake of the printed seed.
    paths.sort();
    assert!(!paths.is_empty(), "no seeds in fuzz/seeds/{target}");
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Pseudo-random numbers: splitmix64.
struct Chance(Random);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit.max(1) as u64) as usize
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most + 1);
        (0..length).map(|_| self.0.below(256) as u8).collect()
    }

    /// Noise, or a seed with parts of it replaced by noise or by parts of another one.
    fn input(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        if self.below(4) == 0 {
            return self.bytes(LONGEST / 4);
        }
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(4) {
            let start = self.below(input.len() + 1);
            let end = (start + self.below(8)).min(input.len());
            let other = &seeds[self.below(seeds.len())];
            let from = self.below(other.len() + 1);
            let part = match self.below(2) {
                0 => self.bytes(4),
                _ => other[from..].iter().copied().take(self.below(32)).collect(),
            };
            input.splice(start..end, part);
        }
        input.truncate(LONGEST);
        input
    }
}
