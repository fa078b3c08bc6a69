//! Throughput: how many pairs a second threads reach that each lock a resource of their own.
//!
//! The library's threads share one client. The floor's threads have a connection set each, as a pool would give them.
//! The limit has as many pairs in flight as there are threads, on one thread on which no other waits.

use crate::Setting;
use crate::comparison::{Spread, take_turns};
use crate::floor::Floor;
use crate::library;
use crate::limit::Limit;
use crate::servers::Servers;
use crate::table::{Goal, Row};
use crate::workers::{Work, measured, together};
use quorumlock::Mutex;
use std::time::Duration;

const NODES: usize = 5;

/// Threads, and the least ratio of pairs a second that is wanted.
const THREADS: [(usize, Option<f64>); 4] = [(1, None), (4, Some(1.1)), (16, Some(3.0)), (64, Some(5.2))];

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, NODES);
    THREADS.into_iter().flat_map(|(threads, bound)| with(setting, &servers, threads, bound)).collect()
}

fn with(setting: &Setting, servers: &Servers, threads: usize, bound: Option<f64>) -> Vec<Row> {
    let (addresses, dialect) = (servers.addresses(NODES), servers.dialect());
    let time = Duration::from_millis(setting.choose(1000, 50));
    let client = library::client(&addresses);
    let mut mutexes: Vec<Mutex> =
        (0..threads).map(|thread| library::mutex(&client, &format!("throughput/library/{thread}"))).collect();
    let floor = |thread: usize| Floor::connect(&addresses, dialect, &format!("throughput/floor/{thread}"), 1);
    let mut floors: Vec<Floor> = (0..threads).map(floor).collect();
    let mut limit = Limit::connect(&addresses, dialect, threads);

    let rounds = take_turns(
        setting.choose((5, 1), (2, 1)),
        &mut [
            &mut || together(&mut floors, time, Floor::pair),
            &mut || together(&mut mutexes, time, |mutex| library::pair(mutex)),
            &mut || measured(|| limit.run(time)),
        ],
    );
    let [floor, library, limit] = &rounds[..] else { return Vec::new() };
    let against = ("floor", &floor[..]);
    let name = |figure: &str| format!("{threads} {}: {figure}", if threads == 1 { "thread" } else { "threads" });
    let mut rate = Row::ratio(name("pairs/s"), "", library, against, Work::rate);
    if let Some(bound) = bound {
        rate = rate.goal(Goal::RatioAtLeast(bound));
    }
    let mut processor = Row::ratio(name("client CPU a pair"), "µs", library, against, Work::processor_micros);
    if threads == 64 {
        processor = processor.goal(Goal::RatioAtMost(0.2));
    }
    let reached = Spread::ratio(limit, floor, Work::rate);
    let of_limit = Row::ratio(name("pairs/s"), "", library, ("pipelined limit", limit), Work::rate);
    vec![rate, processor, of_limit.note(format!("the limit is {:.1} × the floor", reached.median))]
}
