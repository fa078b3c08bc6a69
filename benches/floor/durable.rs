//! Durable nodes: servers that write each change to the disk before they answer (`appendfsync
//! always`).
//!
//! A server writes once for all commands that it finds on its connections at the same time. Bytes
//! that arrive together share the write.

use crate::Setting;
use crate::comparison::{Spread, take_turns};
use crate::floor::Floor;
use crate::library;
use crate::servers::Servers;
use crate::strict::Strict;
use crate::table::Row;
use crate::workers::{Work, pairs, workers};
use std::fs::{self, File};
use std::io::Write;
use std::time::{Duration, Instant};

const NODES: usize = 5;
const THREADS: usize = 64;
/// What a durable node is started with. It writes no new file while it is measured.
const ARGUMENTS: [&str; 6] = [
    "--appendonly",
    "yes",
    "--appendfsync",
    "always",
    "--auto-aof-rewrite-percentage",
    "0",
];

pub(crate) fn measure(setting: &Setting) -> Vec<Row> {
    let servers = Servers::with(setting, NODES, &ARGUMENTS);
    let addresses = servers.addresses(NODES);
    let client = library::client(&addresses);
    let name = |kind: &str, thread: usize| format!("durable/{kind}/{thread}");
    let mut library = workers(THREADS, |thread| {
        library::mutex(&client, &name("library", thread))
    });
    let mut floors = workers(THREADS, |thread| {
        Floor::connect(&addresses, &name("floor", thread), 1)
    });
    let mut strict = Strict::connect(&addresses, THREADS);
    let mut strict = workers(THREADS, |_| strict.pop().expect("one for each thread"));
    let time = Duration::from_millis(setting.choose(500, 100));
    let [floor, library, strict] = &take_turns(
        setting.choose((5, 1), (2, 1)),
        &mut [
            &mut || pairs(&mut floors, time, Floor::pair),
            &mut || pairs(&mut library, time, |mutex| library::pair(mutex)),
            &mut || pairs(&mut strict, time, Strict::pair),
        ],
    );
    let against = ("floor", &floor[..]);
    let name = |figure: &str| format!("appendfsync always, {THREADS} threads: {figure}");
    let sync = sync_micros(setting.choose(50, 5));
    vec![
        Row::ratio(name("pairs/s"), "", library, against, Work::rate)
            .note(format!("one write to the disk takes {sync:.0} µs")),
        Row::ratio(
            name("pairs/s of strict rounds"),
            "",
            strict,
            against,
            Work::rate,
        ),
        Row::ratio(name("pair p50"), "ms", library, against, |work| {
            work.p50() / 1000.0
        }),
        Row::ratio(name("pair p99"), "ms", library, against, |work| {
            work.p99() / 1000.0
        }),
    ]
}

/// How long it takes to write a little to the disk on which the servers' files are.
fn sync_micros(times: usize) -> f64 {
    let path = std::env::temp_dir().join(format!("quorumlock-sync-{}", std::process::id()));
    let mut file = File::create(&path).expect("a file");
    let write = || {
        let start = Instant::now();
        file.write_all(&[0; 128])
            .and_then(|()| file.sync_data())
            .expect("a write to the disk");
        start.elapsed().as_secs_f64() * 1e6
    };
    let spread = Spread::of(std::iter::repeat_with(write).take(times));
    let _ = fs::remove_file(&path);
    spread.median
}
