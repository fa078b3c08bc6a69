//! What a pair of `lock` and `unlock` of a kept mutex costs, when everything is connected and no other thread is there.

mod counted;

use crate::capi::library::compile_rust;
use crate::support::server::Server;
use crate::tidy::path::listed;
use counted::Counts;

/// How many pairs the two programs make whose difference counts.
const PAIRS: [usize; 2] = [100, 300];
/// A machine that is busy reads more often, and from connections that it takes for idle.
const TRIES: usize = 3;

/// The most that a pair may cost, by the number of nodes.
struct Budget {
    nodes: usize,
    instructions: f64,
    polls: f64,
    reads: f64,
    files: usize,
}

const BUDGETS: [Budget; 2] = [
    Budget { nodes: 1, instructions: 14_500.0, polls: 2.5, reads: 2.5, files: 81 },
    Budget { nodes: 5, instructions: 27_500.0, polls: 5.5, reads: 11.0, files: 88 },
];

/// Instructions, system calls, allocations and files, each with a bound that it must not exceed.
#[test]
fn a_warm_pair_costs_no_more_than_it_may() {
    let program = compile_rust("pairs", "tests/it/budget/pairs.rs");
    for budget in &BUDGETS {
        let servers = Server::several(budget.nodes).unwrap();
        let counted = |pairs: usize| {
            let urls = servers.iter().map(Server::url);
            Counts::of(&program, &[pairs.to_string()].into_iter().chain(urls).collect::<Vec<_>>())
        };
        let tries = (0..TRIES).map(|_| counted(PAIRS[1]).a_pair(&counted(PAIRS[0]), (PAIRS[1] - PAIRS[0]) as f64));
        let mut seen = Vec::new();
        let is_kept = tries.into_iter().any(|pair| {
            // The map in src/engine/mod.rs leads along the path that an attempt takes.
            for (function, file) in &listed()[0] {
                assert!(pair.instructions.contains_key(file), "no pair executes code of {file}, where {function} is");
            }
            seen.push(excess(&pair, budget));
            seen.last().is_some_and(Vec::is_empty)
        });
        assert!(is_kept, "{} nodes: {seen:#?}", budget.nodes);
    }
}

/// What of a pair exceeds its budget.
#[allow(clippy::print_stdout)]
fn excess(pair: &Counts, budget: &Budget) -> Vec<String> {
    let instructions: f64 = pair.instructions.values().sum();
    let files = pair.instructions.keys().filter(|file| !file.is_empty()).count();
    let call = |name: &str| pair.calls.get(name).copied().unwrap_or_default();
    println!("{} nodes: {instructions:.0} instructions of {files} files, {:?}", budget.nodes, pair.calls);
    // Once a second, something more is asked.
    let two_writes = 2.1 * budget.nodes as f64;
    let mut excess: Vec<String> = [
        ("instructions", instructions, budget.instructions),
        ("files", files as f64, budget.files as f64),
        // None, but for the look at the nodes.
        ("allocations", pair.allocations, 0.5),
        ("sendto", call("sendto"), two_writes),
        ("recvfrom", call("recvfrom"), budget.reads),
        ("ppoll", call("ppoll"), budget.polls),
        // Two for each poll, and these.
        ("clock_gettime", call("clock_gettime") - 2.0 * call("ppoll"), 13.0),
        ("getrandom", call("getrandom"), 1.0),
        // From the thread that looks for the results of releases.
        ("futex", call("futex"), 0.9),
    ]
    .into_iter()
    .filter(|(_, count, most)| count > most)
    .map(|(name, count, most)| format!("{name}: {count}, more than {most}"))
    .collect();
    let known = ["sendto", "recvfrom", "ppoll", "clock_gettime", "getrandom", "futex"];
    excess.extend(pair.calls.keys().filter(|name| !known.contains(&&***name)).cloned());
    excess
}
