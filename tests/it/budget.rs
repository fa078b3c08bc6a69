//! What a pair of `lock` and `unlock` of a kept mutex costs, when everything is connected and no
//! other thread is there.

mod counted;

use crate::capi::library::compile_rust;
use crate::prelude::*;
use crate::tidy::path::listed;
use counted::Counts;

/// How many pairs the two programs make whose difference counts.
const PAIRS: [usize; 2] = [100, 300];
/// A machine that is busy reads more often, from connections that it takes for idle, and looks at
/// the nodes more often for each pair. A figure is exceeded if it is each time.
const TRIES: usize = 3;

/// The most that a pair may cost, by the kind of lock and the number of nodes.
struct Budget {
    kind: &'static str,
    nodes: usize,
    most: [f64; 7],
}

const fn budget(kind: &'static str, nodes: usize, most: [f64; 7]) -> Budget {
    Budget { kind, nodes, most }
}

/// Columns: kind, nodes; instructions, polls, reads, clock reads beside two for each poll, entropy,
/// allocations, files.
const BUDGETS: [Budget; 10] = [
    budget("plain", 1, [13_000.0, 2.5, 2.5, 11.0, 1.0, 0.0, 82.0]),
    budget("plain", 5, [24_800.0, 5.5, 11.0, 11.0, 1.0, 0.0, 92.0]),
    budget("fenced", 1, [15_400.0, 2.5, 2.5, 11.0, 1.0, 1.0, 85.0]),
    budget("fenced", 5, [31_500.0, 5.5, 13.0, 11.0, 1.0, 2.0, 96.0]),
    budget("write", 1, [22_000.0, 2.5, 2.5, 18.0, 2.0, 9.0, 98.0]),
    budget("write", 5, [35_500.0, 5.5, 13.0, 18.0, 2.0, 9.0, 107.0]),
    budget("read", 1, [24_000.0, 2.5, 2.5, 19.0, 2.0, 10.0, 99.0]),
    budget("read", 5, [38_000.0, 5.5, 13.0, 19.0, 2.0, 11.0, 110.0]),
    budget("set", 1, [15_000.0, 2.5, 2.5, 11.0, 1.0, 0.0, 82.0]),
    budget("set", 5, [29_500.0, 5.5, 13.0, 11.0, 1.0, 0.0, 92.0]),
];

/// Instructions, system calls, allocations and files, each with a bound that it must not exceed.
/// The pairs on one node are counted while the pairs on five are.
#[test]
fn a_warm_pair_costs_no_more_than_it_may() {
    let program = &compile_rust("pairs", "tests/it/budget/pairs.rs");
    thread::scope(|scope| {
        for nodes in [1, 5] {
            let budgets = BUDGETS.iter().filter(move |budget| budget.nodes == nodes);
            scope.spawn(|| budgets.for_each(|budget| is_kept(budget, program)));
        }
    });
}

fn is_kept(budget: &Budget, program: &Path) {
    let servers = Server::several(budget.nodes).unwrap();
    let counted = |pairs: usize| {
        let settings = [budget.kind.to_owned(), pairs.to_string()];
        let urls = servers.iter().map(Server::url);
        Counts::of(
            program,
            &settings.into_iter().chain(urls).collect::<Vec<_>>(),
        )
    };
    let tries = (0..TRIES)
        .map(|_| counted(PAIRS[1]).a_pair(&counted(PAIRS[0]), (PAIRS[1] - PAIRS[0]) as f64));
    let mut exceeded: Option<BTreeMap<String, f64>> = None;
    let is_kept = tries.into_iter().any(|pair| {
        // The map in src/engine/mod.rs leads along the path that an attempt for a plain lock takes.
        for (function, file) in listed()[0].iter().filter(|_| budget.kind == "plain") {
            assert!(
                pair.instructions.contains_key(file),
                "no pair executes code of {file}, where {function} is"
            );
        }
        let mut excess = excess(&pair, budget);
        if let Some(before) = &exceeded {
            excess.retain(|figure, _| before.contains_key(figure));
        }
        exceeded.insert(excess).is_empty()
    });
    assert!(
        is_kept,
        "{}, {} nodes: {exceeded:?} too many",
        budget.kind, budget.nodes
    );
}

/// By how much a pair exceeds its budget, by figure.
#[allow(clippy::print_stdout)]
fn excess(pair: &Counts, budget: &Budget) -> BTreeMap<String, f64> {
    let instructions: f64 = pair.instructions.values().sum();
    let files = pair
        .instructions
        .keys()
        .filter(|file| !file.is_empty())
        .count();
    let call = |name: &str| pair.calls.get(name).copied().unwrap_or_default();
    println!(
        "{} {} nodes: {instructions:.0} instructions of {files} files, {} allocations, {:?}",
        budget.kind, budget.nodes, pair.allocations, pair.calls
    );
    let [
        most_instructions,
        polls,
        reads,
        clock_reads,
        entropy,
        allocations,
        most_files,
    ] = budget.most;
    // Once a second, something more is asked.
    let two_writes = 2.1 * budget.nodes as f64;
    let mut excess: BTreeMap<String, f64> = [
        ("instructions", instructions, most_instructions),
        ("files", files as f64, most_files),
        // In addition to those of the look at the nodes.
        ("allocations", pair.allocations, allocations + 0.5),
        ("sendto", call("sendto"), two_writes),
        ("recvfrom", call("recvfrom"), reads),
        ("ppoll", call("ppoll"), polls),
        (
            "clock_gettime",
            call("clock_gettime") - 2.0 * call("ppoll"),
            clock_reads,
        ),
        ("getrandom", call("getrandom"), entropy),
        // From the thread that looks for the results of releases.
        ("futex", call("futex"), 0.9),
    ]
    .into_iter()
    .filter(|(_, count, most)| count > most)
    .map(|(name, count, most)| (name.to_owned(), count - most))
    .collect();
    let known = [
        "sendto",
        "recvfrom",
        "ppoll",
        "clock_gettime",
        "getrandom",
        "futex",
    ];
    let others = pair
        .calls
        .iter()
        .map(|(name, count)| (name.clone(), *count));
    excess.extend(others.filter(|(name, _)| !known.contains(&&**name)));
    excess
}
