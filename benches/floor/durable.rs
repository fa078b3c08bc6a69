//! Durable nodes: servers that write each change to the disk before they answer (`appendfsync
//! always`).
//!
//! A server writes once for all commands that it finds on its connections at the same time. Bytes
//! that arrive together share the write.

use crate::comparison::Spread;
use crate::library;
use crate::servers::Servers;
use crate::setting::Setting;
use crate::table::{Row, Rows};
use crate::workers::{Work, contest, floors, lockers, strict_rounds};
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
    let contenders = [
        floors(THREADS, &addresses, "durable/floor"),
        lockers(THREADS, &client, "durable/library"),
        strict_rounds(THREADS, &addresses),
    ];
    let time = Duration::from_millis(setting.choose(500, 100));
    let [floor, library, strict] = &contest(setting.turns(), time, contenders);
    let title = format!("appendfsync always, {THREADS} threads: ");
    let rows = Rows::new(title, library, ("floor", floor));
    let sync = sync_micros(setting.choose(50, 5));
    vec![
        rows.row("pairs/s", "", Work::rate)
            .note(format!("one write to the disk takes {sync:.0} µs")),
        rows.about(strict)
            .row("pairs/s of strict rounds", "", Work::rate),
        rows.row("pair p50", "ms", Work::p50_millis),
        rows.row("pair p99", "ms", |work| work.p99() / 1000.0),
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
