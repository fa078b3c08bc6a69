//! Distant nodes: a pair through [proxies](crate::proxy) that delay all bytes.
//!
//! With a long round trip, a command that waits for another thread's to be answered waits for long.
//! Both contenders use the same proxies.

use crate::library;
use crate::proxy::Proxies;
use crate::servers::Servers;
use crate::setting::Setting;
use crate::table::Row;
use crate::workers::{Work, contest, floors, lockers, number_of_threads};
use std::time::Duration;

const NODES: usize = 5;
/// In milliseconds, and the greatest ratio that is wanted.
const ROUND_TRIPS: [(u64, f64); 2] = [(1, 1.05), (20, 1.02)];
const THREADS: [usize; 2] = [1, 16];

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, NODES);
    let mut rows = Vec::new();
    for (round_trip, bound) in ROUND_TRIPS {
        let proxies = Proxies::start(
            setting,
            &servers.addresses(NODES),
            Duration::from_millis(round_trip),
        );
        for threads in THREADS {
            let row = pair(setting, &proxies, (round_trip, threads));
            rows.push(row.ratio_at_most(bound));
        }
    }
    rows
}

fn pair(setting: &Setting, proxies: &Proxies, (round_trip, threads): (u64, usize)) -> Row {
    let addresses = proxies.addresses();
    let client = library::client(addresses);
    let name = |kind: &str| format!("distant/{kind}/{round_trip}/{threads}");
    let contenders = [
        floors(threads, addresses, &name("floor")),
        lockers(threads, &client, &name("library")),
    ];
    let time = Duration::from_millis(setting.choose(300, 100));
    let [floor, library] = &contest(setting.turns(), time, contenders);
    let threads = number_of_threads(threads);
    let name = format!("round trip {round_trip} ms, {threads}: pair p50");
    Row::ratio(name, "ms", library, ("floor", floor), Work::p50_millis)
}
