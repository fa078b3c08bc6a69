//! Observed: what counters cost a pair, and what it takes to write them as text.

use crate::comparison::{Plan, Samples, Spread, interleave_all};
use crate::library;
use crate::servers::Servers;
use crate::setting::Setting;
use crate::table::{Row, Rows};
use quorumlock::{Counters, Redlock};
use std::net::SocketAddr;
use std::time::Instant;

const NODES: usize = 5;
/// As many classes as counters distinguish.
const CLASSES: usize = 256;

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, NODES);
    let addresses = servers.addresses(NODES);
    let plan = setting.unless_quick(Plan {
        rounds: 15,
        ..setting.plan()
    });
    let mut rows = pairs(&addresses, plan);
    rows.push(allocations(&addresses, setting.choose(2000, 100)));
    rows.push(scrape(&addresses, setting.choose(200, 10)));
    rows
}

fn counted(addresses: &[SocketAddr], counters: &Counters) -> Redlock {
    library::builder(addresses)
        .counters(counters)
        .build()
        .expect("a client")
}

fn pairs(addresses: &[SocketAddr], plan: Plan) -> Vec<Row> {
    let mutexes = [
        (library::client(addresses), "plain/1"),
        (counted(addresses, &Counters::by_prefix('/')), "counted/1"),
        (library::client(addresses), "again/1"),
    ]
    .map(|(client, name)| library::mutex(&client, name));
    let rounds = interleave_all(plan, mutexes.len(), |index| library::pair(&mutexes[index]));
    let [plain, counted, again] = &rounds[..] else {
        unreachable!("there is one for each mutex")
    };
    let rows = Rows::new("", counted, ("without", plain));
    vec![
        rows.row("with counters: pair p50", "µs", Samples::pair_p50)
            .ratio_at_most(1.02),
        rows.about(again)
            .row("without counters again: pair p50", "µs", Samples::pair_p50)
            .note("noise"),
    ]
}

fn allocations(addresses: &[SocketAddr], pairs: usize) -> Row {
    let client = counted(addresses, &Counters::by_prefix('/'));
    let mutex = library::mutex(&client, "allocations/1");
    let made = library::allocations(pairs, || library::pair(&mutex)).median;
    Row::value("with counters: heap allocations a pair", "", made).value_at_most(0.0)
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
        .value_at_most(5.0)
        .note(format!("{lines} lines, {} KiB", text.len() / 1024))
}
