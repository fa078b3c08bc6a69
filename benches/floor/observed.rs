//! Observed: what counters cost a pair, and what it takes to write them as text.

use crate::comparison::{Plan, Samples, Spread, interleave, repeat};
use crate::library;
use crate::servers::Servers;
use crate::table::{Goal, Row};
use crate::{ALLOCATOR, Setting};
use quorumlock::{Counters, Mutex, Redlock};
use std::net::SocketAddr;
use std::time::Instant;

const NODES: usize = 5;
/// As many classes as counters distinguish.
const CLASSES: usize = 256;

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, NODES);
    let addresses = servers.addresses(NODES);
    let plan = setting.choose(
        Plan {
            rounds: 15,
            turns: 12,
            operations: 50,
        },
        Plan {
            rounds: 2,
            turns: 2,
            operations: 25,
        },
    );
    let mut rows = pairs(&addresses, plan);
    rows.push(allocations(&addresses, setting.choose(2000, 100)));
    rows.push(scrape(&addresses, setting.choose(200, 10)));
    rows
}

fn counted(addresses: &[SocketAddr], counters: &Counters) -> Redlock {
    let urls = addresses.iter().map(|node| format!("redis://{node}"));
    Redlock::builder()
        .nodes(urls)
        .counters(counters)
        .build()
        .expect("a client")
}

fn pairs(addresses: &[SocketAddr], plan: Plan) -> Vec<Row> {
    let counters = Counters::by_prefix('/');
    let plain = library::client(addresses);
    let counted = counted(addresses, &counters);
    let again = library::client(addresses);
    let mutexes = [
        (&plain, "plain/1"),
        (&counted, "counted/1"),
        (&again, "again/1"),
    ];
    let [plain, counted, again]: [Mutex; 3] =
        mutexes.map(|(client, name)| library::mutex(client, name));
    let [plain, counted, again] = &interleave(
        plan,
        &mut [
            &mut || library::pair(&plain),
            &mut || library::pair(&counted),
            &mut || library::pair(&again),
        ],
    );
    let against = ("without", &plain[..]);
    let p50 = |round: &Samples| round.pair.quantile(0.5);
    vec![
        Row::ratio("with counters: pair p50", "µs", counted, against, p50)
            .goal(Goal::RatioAtMost(1.02)),
        Row::ratio(
            "without counters again: pair p50",
            "µs",
            again,
            against,
            p50,
        )
        .note("noise"),
    ]
}

fn allocations(addresses: &[SocketAddr], pairs: usize) -> Row {
    let counters = Counters::by_prefix('/');
    let client = counted(addresses, &counters);
    let mutex = library::mutex(&client, "allocations/1");
    let count = || {
        let before = ALLOCATOR.stats();
        repeat(pairs, || library::pair(&mutex));
        let made = ALLOCATOR.stats() - before;
        (made.allocations + made.reallocations) as f64 / pairs as f64
    };
    let runs = Spread::of((0..9).map(|_| count()));
    Row::value("with counters: heap allocations a pair", "", runs.median)
        .goal(Goal::ValueAtMost(0.0))
}

/// Every class has calls that took the lock and calls that found it held.
fn scrape(addresses: &[SocketAddr], times: usize) -> Row {
    let counters = Counters::by_prefix('/');
    let client = counted(addresses, &counters);
    for class in 0..CLASSES {
        let mutex = library::mutex(&client, &format!("class{class}/1"));
        let guard = library::lock(&mutex);
        let _ = mutex.try_lock();
        drop(guard);
    }
    let write = |_| {
        let begun = Instant::now();
        let text = counters.prometheus_text();
        let taken = begun.elapsed().as_secs_f64() * 1e3;
        drop(text);
        taken
    };
    let runs = Spread::of((0..times).map(write));
    let text = counters.prometheus_text();
    let lines = text.lines().count();
    Row::value(format!("a text of {CLASSES} classes"), "ms", runs.median)
        .goal(Goal::ValueAtMost(5.0))
        .note(format!("{lines} lines, {} KiB", text.len() / 1024))
}
