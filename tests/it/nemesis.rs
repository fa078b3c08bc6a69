//! Several client processes and five real servers, while everything that can break breaks.
//!
//! Each process increments a number in a file, by reading it, waiting, and writing it, under the lock and nothing else.
//! [`worker`] is what they do, [`faults`] what is done to them and to their servers: within the bounds in which Redlock
//! is safe, that is, no server forgets what it has granted, no clock jumps, and who writes has looked at the time that is
//! left to it. Then
//! 1. no update is lost, and no two holders overlap in time (the monotonic clock of the one machine that they run on);
//! 2. a minority of sick servers stops nobody for long, and when all are well again the lock can be had;
//! 3. nothing is left behind: every key goes away.
//!
//! The run is short by default. `QUORUMLOCK_NEMESIS_SECONDS` makes it longer, `QUORUMLOCK_NEMESIS_SEED` repeats its
//! choices, if not their timing. It prints a report.

mod faults;
mod worker;

use crate::clients::SOON;
use crate::support::process::eventually;
use crate::support::server::{Answer, Server};
use faults::{Nemesis, Random};
use quorumlock::{Redlock, Wait};
use std::collections::HashSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use worker::{Interval, Log};

const TEST: &str = "nemesis::nothing_is_lost_while_everything_breaks";
const PROCESSES: usize = 4;

#[test]
#[allow(clippy::print_stdout)]
fn nothing_is_lost_while_everything_breaks() {
    if worker::is_wanted() {
        return worker::run();
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let time = Duration::from_secs(number("QUORUMLOCK_NEMESIS_SECONDS").unwrap_or(15));
    let seed = number("QUORUMLOCK_NEMESIS_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("nemesis: seed {seed}, {time:?}");

    let mut nemesis = Nemesis::begin(5, PROCESSES, Random::from_seed(seed));
    let begun = Instant::now();
    while begun.elapsed() < time {
        nemesis.strike();
    }
    nemesis.heal();
    let killed = nemesis.stop();
    can_be_had(nemesis.servers());

    let logs = worker::logs(nemesis.directory());
    let counter = worker::counter(nemesis.directory());
    let report = report(&nemesis, &logs, counter, killed);
    println!("{report}");
    no_update_is_lost(&logs, counter, killed);
    no_two_overlap(&logs);
    assert!(logs.iter().map(|log| log.done.len()).sum::<usize>() > time.as_secs() as usize * 5, "{report}");
    nothing_is_left(nemesis.servers());
}

/// Whatever was written was the number before and one more: no number was written twice, but for writers that were killed
/// before they could say whether they had written.
fn no_update_is_lost(logs: &[Log], counter: u64, killed: usize) {
    let written: Vec<u64> = logs.iter().flat_map(|log| log.done.iter().map(|interval| interval.value)).collect();
    let distinct: HashSet<u64> = written.iter().copied().collect();
    assert_eq!(distinct.len(), written.len(), "a number was written twice");
    let unsure = counter.checked_sub(written.len() as u64).expect("no update is lost");
    assert!(unsure <= killed as u64, "{unsure} updates by nobody, and {killed} were killed");
}

fn no_two_overlap(logs: &[Log]) {
    for pair in in_order(logs).windows(2) {
        assert!(pair[0].end <= pair[1].start, "two held the lock at once: {pair:?}");
        assert!(pair[0].value < pair[1].value, "the later one wrote the earlier number: {pair:?}");
    }
}

fn in_order(logs: &[Log]) -> Vec<Interval> {
    let mut all: Vec<Interval> = logs.iter().flat_map(|log| log.done.iter().copied()).collect();
    all.sort_by_key(|interval| interval.start);
    all
}

/// Healed, the cluster serves whoever comes.
fn can_be_had(servers: &[Server]) {
    let client = Redlock::builder().nodes(servers.iter().map(Server::url)).build().unwrap();
    let mutex = client.mutex(worker::RESOURCE).ttl(worker::TTL);
    // A holder that was killed holds it to its end.
    let had = || mutex.lock_with(&Wait::timeout(worker::TTL)).is_ok_and(|guard| guard.is_some());
    assert!(eventually(6 * worker::TTL, had), "all is well again, and the lock cannot be had");
}

fn nothing_is_left(servers: &[Server]) {
    for server in servers {
        let is_empty = || server.command(&["DBSIZE"]).is_ok_and(|size| size == Answer::Number(0));
        assert!(eventually(SOON, is_empty), "{:?}", server.command(&["KEYS", "*"]));
    }
}

fn report(nemesis: &Nemesis, logs: &[Log], counter: u64, killed: usize) -> String {
    let all = in_order(logs);
    let gap = all.windows(2).map(|pair| pair[1].start - pair[0].end).max().unwrap_or_default();
    let sum = |count: fn(&Log) -> usize| logs.iter().map(count).sum::<usize>();
    let mut report = String::new();
    let _ =
        writeln!(report, "{} acquisitions by {PROCESSES} processes, {killed} of them killed and replaced", all.len());
    let _ = writeln!(report, "counter {counter}; {} given up for lack of time", sum(|log| log.given_up));
    let _ = writeln!(report, "{} found nobody, {} timed out", sum(|log| log.unavailable), sum(|log| log.timed_out));
    let (released, expired) = (sum(|log| log.released), sum(|log| log.expired));
    let _ = writeln!(
        report,
        "unlocked: {released} released, {expired} expired, {} unconfirmed",
        sum(|log| log.unconfirmed)
    );
    let _ = writeln!(report, "longest time without a holder: {:?}", Duration::from_nanos(gap));
    for (name, count) in nemesis.injected() {
        let _ = writeln!(report, "  {count:>6} × {name}");
    }
    report
}

/// Reads a file that somebody may not have written yet.
fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
