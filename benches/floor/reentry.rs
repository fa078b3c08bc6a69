//! Re-entry: what it takes to take a lock again that the thread holds, and to end that level.
//!
//! It sends nothing, so there is no floor of system calls. The time is spent on a table, two clocks
//! and a mutex.

use crate::comparison::{Spread, repeat};
use crate::library;
use crate::servers::Servers;
use crate::setting::Setting;
use crate::table::Row;
use std::time::Instant;

const NODES: usize = 3;

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, NODES);
    let client = library::client(&servers.addresses(NODES));
    let mutex = library::mutex(&client, "reentry").reentrant();
    let levels = setting.choose(20_000, 500);
    let outer = mutex.lock().expect("three nodes");
    let reenter = || drop(mutex.lock().expect("it is held"));
    let time = || {
        let begun = Instant::now();
        repeat(levels, reenter);
        begun.elapsed().as_nanos() as f64 / levels as f64
    };
    let times = Spread::of((0..setting.choose(15, 3)).map(|_| time()));
    // It has grown its buffers, and asks no node that could fail: no run may allocate.
    let allocations = library::allocations(levels, reenter).most;
    drop(outer);
    vec![
        Row::value("re-entry and its end", "ns", times.median).value_at_most(150.0),
        Row::value("heap allocations a re-entry", "", allocations).value_at_most(0.0),
    ]
}
