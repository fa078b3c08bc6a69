//! Permits: how many pairs a second threads reach that share k of them, against k threads with a
//! lock each.
//!
//! As many threads as permits; more threads than permits, of one client; and clients of several
//! threads each, as programs that crowd a semaphore are.

use crate::Setting;
use crate::comparison::take_turns;
use crate::library;
use crate::servers::Servers;
use crate::table::{Goal, Row};
use crate::workers::{Work, pairs, workers};
use quorumlock::{Redlock, Semaphore};
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
    (permits, clients, threads): (usize, usize, usize),
) -> Row {
    let addresses = servers.addresses(NODES);
    let time = Duration::from_millis(setting.choose(500, 50));
    let own = library::client(&addresses);
    let mut alone = workers(permits, |thread| {
        library::mutex(&own, &format!("permits/own/{thread}"))
    });
    let shared: Vec<Redlock> = (0..clients).map(|_| library::client(&addresses)).collect();
    let semaphore = |client: &Redlock| {
        client
            .semaphore(format!("permits/{permits}-{clients}-{threads}"), permits)
            .ttl(Duration::from_secs(60))
    };
    let mut sharing = workers(clients * threads, |thread| {
        semaphore(&shared[thread / threads])
    });
    let [alone, sharing] = &take_turns(
        setting.choose((5, 1), (2, 1)),
        &mut [
            &mut || pairs(&mut alone, time, |mutex| library::pair(mutex)),
            &mut || {
                pairs(&mut sharing, time, |semaphore: &mut Semaphore| {
                    library::pair(semaphore)
                })
            },
        ],
    );
    let of = if clients == 1 {
        "one client".to_owned()
    } else {
        format!("each of {clients} clients")
    };
    let name = format!("{threads} threads of {of} share {permits} permits: pairs/s");
    Row::ratio(name, "", sharing, ("a lock each", alone), Work::rate).goal(Goal::RatioAtLeast(0.8))
}
