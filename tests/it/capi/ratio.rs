//! What the C interface costs: the same program in C and in Rust, in turns, on the same servers.
//!
//! Each round has a ratio of two runs, and the median over the rounds counts. On a busy machine it
//! means little; the figures in src/docs/operations.md are from many pairs:
//! `QUORUMLOCK_TEST_PAIRS=10000 cargo test --test it capi::ratio -- --nocapture`.

use super::*;

const ROUNDS: usize = 7;
/// Lock and unlock pairs of each of eight threads, in each run. One thread alone makes twice as
/// many.
const PAIRS: usize = 250;
/// Sets another number of pairs for each thread.
const PAIRS_VARIABLE: &str = "QUORUMLOCK_TEST_PAIRS";
/// What the interface costs it costs in each round: the best round counts here.
const FAR_TOO_MUCH: f64 = 1.5;

#[test]
#[allow(clippy::print_stdout)]
fn a_lock_in_c_takes_as_long_as_in_rust() {
    let programs = [
        compile(
            "workers-ratio",
            "examples/c/workers.c",
            &["-std=c99", "-O2", STRICT[0]],
        ),
        compile_rust("twin", "tests/it/capi/twin.rs"),
    ];
    let pairs = std::env::var(PAIRS_VARIABLE).ok();
    let is_slice = pairs.is_none();
    let pairs = pairs.map_or(PAIRS, |pairs| pairs.parse().unwrap());
    let mut servers = Server::several(5).unwrap();
    let urls = servers.each(Server::url);
    for (threads, pairs, sick) in [(1, 2 * pairs, false), (8, pairs, false), (8, pairs, true)] {
        if sick {
            servers[1].pause().unwrap();
            servers[3].kill();
        }
        let arguments: Vec<String> = [threads, pairs]
            .map(|number| number.to_string())
            .into_iter()
            .chain(urls.clone())
            .collect();
        let mut ratios = [Vec::new(), Vec::new()];
        let mut seen = Vec::new();
        for round in 0..ROUNDS {
            let mut times = [(0.0, 0.0); 2];
            for turn in [round % 2, 1 - round % 2] {
                times[turn] = measured(&programs[turn], &arguments);
            }
            let [c, rust] = times;
            ratios[0].push(c.0 / rust.0);
            ratios[1].push(c.1 / rust.1);
            seen.push(c.0);
            // A program with a hung node takes five seconds to end.
            if sick && is_slice && c.0 / rust.0 < FAR_TOO_MUCH {
                break;
            }
        }
        let best = ratios[0].iter().copied().fold(f64::INFINITY, f64::min);
        let [half, most] = ratios.map(median);
        let fate = if sick {
            ", one node hung and one killed"
        } else {
            ""
        };
        println!(
            "{threads} threads{fate}: C to Rust, p50 {half:.3}, p99 {most:.3}; p50 of C {:.0} us",
            median(seen)
        );
        assert!(best < FAR_TOO_MUCH, "{best}");
    }
}

/// The median and the longest hundredth of what a pair took, in microseconds.
fn measured(program: &Path, arguments: &[String]) -> (f64, f64) {
    let said = run(program, arguments).exits(0).out;
    let number = |name: &str| {
        said.split(name)
            .nth(1)?
            .split_whitespace()
            .next()?
            .parse::<f64>()
            .ok()
    };
    number("p50 ")
        .zip(number("p99 "))
        .unwrap_or_else(|| panic!("{said}"))
}
