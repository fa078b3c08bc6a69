//! Drop instead of unlock: what a pair takes where the guard is dropped, which waits for no answer
//! to the release.

use crate::library;
use crate::servers::Servers;
use crate::setting::Setting;
use crate::table::{Row, Rows};
use crate::workers::{Work, contest, lockers, number_of_threads, workers};

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
    let unlocked = lockers(threads, &client, &format!("dropped/unlocked/{threads}"));
    let dropped = workers(threads, |thread| {
        let mutex = library::mutex(&client, &format!("dropped/dropped/{threads}/{thread}"));
        move || library::dropped_pair(&mutex)
    });
    let contenders = [unlocked, dropped];
    let [unlocked, dropped] = &contest(setting.turns(), setting.turn_time(), contenders);
    let title = format!("drop instead of unlock, {}: ", number_of_threads(threads));
    let rows = Rows::new(title, dropped, ("unlock", unlocked));
    vec![
        rows.row("client CPU a pair", "µs", Work::processor_micros),
        rows.row("context switches a pair", "", Work::switches_each),
        rows.row("pairs/s", "", Work::rate),
    ]
}
