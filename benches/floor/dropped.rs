//! Drop instead of unlock: what a pair takes where the guard is dropped, which waits for no answer
//! to the release.

use crate::Setting;
use crate::comparison::take_turns;
use crate::library;
use crate::servers::Servers;
use crate::table::Row;
use crate::workers::{Work, pairs, workers};
use std::time::Duration;

const NODES: usize = 5;
const THREADS: [usize; 2] = [1, 4];

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::start(setting, NODES);
    THREADS
        .into_iter()
        .flat_map(|threads| with(setting, &servers, threads))
        .collect()
}

fn with(setting: &Setting, servers: &Servers, threads: usize) -> Vec<Row> {
    let client = library::client(&servers.addresses(NODES));
    let name = |kind: &str, thread: usize| format!("dropped/{kind}/{threads}/{thread}");
    let mut unlocked = workers(threads, |thread| {
        library::mutex(&client, &name("unlocked", thread))
    });
    let mut dropped = workers(threads, |thread| {
        library::mutex(&client, &name("dropped", thread))
    });
    let time = Duration::from_millis(setting.choose(300, 50));
    let [unlocked, dropped] = &take_turns(
        setting.choose((5, 1), (2, 1)),
        &mut [
            &mut || pairs(&mut unlocked, time, |mutex| library::pair(mutex)),
            &mut || pairs(&mut dropped, time, |mutex| library::dropped_pair(mutex)),
        ],
    );
    let threads = format!(
        "{threads} {}",
        if threads == 1 { "thread" } else { "threads" }
    );
    let row = |figure: &str, unit: &'static str, get: fn(&Work) -> f64| {
        let name = format!("drop instead of unlock, {threads}: {figure}");
        Row::ratio(name, unit, dropped, ("unlock", unlocked), get)
    };
    vec![
        row("client CPU a pair", "µs", Work::processor_micros),
        row("context switches a pair", "", Work::switches_each),
        row("pairs/s", "", Work::rate),
    ]
}
