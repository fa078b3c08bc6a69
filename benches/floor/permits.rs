//! Permits: how many pairs a second threads reach that share k of them, against k threads with a
//! lock each.
//!
//! As many threads as permits; more threads than permits, of one client; and clients of several
//! threads each, as programs that crowd a semaphore are.

use crate::library;
use crate::servers::Servers;
use crate::setting::Setting;
use crate::table::Row;
use crate::workers::{Work, contest, lockers, workers};
use quorumlock::Redlock;
use std::time::Duration;

const NODES: usize = 5;
/// Permits, clients, and threads of each.
const CROWDS: [(usize, usize, usize); 5] =
    [(3, 1, 3), (16, 1, 16), (3, 1, 16), (3, 2, 3), (3, 8, 8)];

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, NODES);
    CROWDS
        .into_iter()
        .map(|crowd| share(setting, &servers, crowd))
        .collect()
}

fn share(
    setting: &Setting,
    servers: &Servers,
    (permits, count, threads): (usize, usize, usize),
) -> Row {
    let addresses = servers.addresses(NODES);
    let alone = lockers(permits, &library::client(&addresses), "permits/own");
    let clients: Vec<Redlock> = (0..count).map(|_| library::client(&addresses)).collect();
    let sharing = workers(count * threads, |thread| {
        let semaphore = clients[thread / threads]
            .semaphore(format!("permits/{permits}-{count}-{threads}"), permits)
            .ttl(Duration::from_secs(60));
        move || library::pair(&semaphore)
    });
    let time = Duration::from_millis(setting.choose(500, 50));
    let [alone, sharing] = &contest(setting.turns(), time, [alone, sharing]);
    let of = if count == 1 {
        "one client".to_owned()
    } else {
        format!("each of {count} clients")
    };
    let name = format!("{threads} threads of {of} share {permits} permits: pairs/s");
    Row::ratio(name, "", sharing, ("a lock each", alone), Work::rate).ratio_at_least(0.8)
}
