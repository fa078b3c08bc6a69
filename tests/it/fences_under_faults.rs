//! Fenced acquisitions by threads of several processes, while servers hang and are killed, and
//! clients too.
//!
//! Servers keep what they have granted: each write is on disk before it is answered. For each
//! resource:
//! 1. no number was given out twice, and none was given out after a greater one, in the order of
//!    holding by the monotonic clock of the one machine that all run on;
//! 2. nearly all were won in one round trip.
//!
//! The run is short by default. `QUORUMLOCK_FENCE_ACQUISITIONS` sets how many there are to be at
//! least, and `QUORUMLOCK_FENCE_SEED` repeats its choices, if not their timing. It prints a report.

use crate::prelude::*;
use crate::storm::log::bytes;
use crate::storm::{Stay, Storm, Story, Worker, durable_and_short, got, judge, now, number, seed};

const TEST: &str = "fences_under_faults::fences_grow_while_everything_breaks";
const PROCESSES: usize = 4;
const THREADS: usize = 2;
const SERVERS: usize = 5;
const RESOURCES: [&str; 2] = ["a", "b"];
const TTL: Duration = Duration::from_secs(1);
/// A holder with less time left does not count in the order of holding.
const NEEDED: Duration = Duration::from_millis(300);
/// Most lines of a log are shorter.
const LINE_BYTES: u64 = 70;

#[test]
#[allow(clippy::print_stdout)]
fn fences_grow_while_everything_breaks() {
    if let Some(worker) = Worker::this() {
        return worker.threads(THREADS, |thread| work(&worker, thread));
    }
    let wanted = number("QUORUMLOCK_FENCE_ACQUISITIONS").unwrap_or(600);
    let seed = seed("QUORUMLOCK_FENCE_SEED");
    let servers = durable_and_short().several(SERVERS).unwrap();
    let begun = Instant::now();
    let mut storm = Storm::begin(TEST, servers, PROCESSES, seed);
    let directory = storm.workers.directory().to_owned();
    let longest = Duration::from_secs(60) + Duration::from_millis(10) * wanted as u32;
    // A count of the lines would take longer each time.
    let acquisitions = || {
        RESOURCES
            .iter()
            .map(|resource| bytes(&directory.join(resource)))
            .sum::<u64>()
            / LINE_BYTES
    };
    while acquisitions() < wanted {
        assert!(
            begun.elapsed() < longest,
            "only {} of {wanted} in {longest:?}",
            acquisitions()
        );
        (0..4).for_each(|_| storm.strike());
    }
    storm.workers.end();
    println!(
        "fences: seed {seed}, {:?}, {:?}\n{}",
        begun.elapsed(),
        storm.injected,
        judge(&directory)
    );
}

/// Judges what all threads logged.
fn judge(directory: &Path) -> String {
    let stories = RESOURCES.map(|resource| Story::read(&directory.join(resource)));
    stories.iter().for_each(judge::no_two_overlap);
    let all: usize = stories.iter().map(|story| story.done.len()).sum();
    let count = |what| stories.iter().map(|story| story.count(what)).sum::<usize>();
    let raised = count("raised");
    let retried = count("retried");
    let share = 100.0 * (all - raised) as f64 / all as f64;
    let report = format!(
        "{all} acquisitions, {share:.3} % won in one round trip, {raised} by a raise, {retried} after more than one \
         attempt"
    );
    assert!(share > 90.0, "{report}");
    report
}

/// What a thread of a worker does. Each has a client of its own, so that all compete.
fn work(worker: &Worker, thread: usize) {
    // How the thread's last acquisition went. A callback runs on the thread that acquires.
    let noted = Seen::nothing();
    let pick = picked!(Event::Acquired { attempts, round_trips, .. } => (*attempts, *round_trips));
    let mut random = worker.random(thread);
    let client = client_at(worker.durable_urls(), |builder| {
        builder.observer(noted.by(pick))
    });
    let locks = RESOURCES.map(|resource| {
        let log = worker.log_in(&worker.directory.join(resource), thread);
        (client.mutex(resource).ttl(TTL).fenced(), log)
    });
    while !worker.is_over() {
        let (mutex, log) = &locks[random.below(RESOURCES.len() as u64) as usize];
        noted.forget();
        let wanted = now();
        let Some(guard) = got(mutex.lock_timeout(Duration::from_secs(1))) else {
            continue;
        };
        let since = now();
        let fence = guard.fence();
        let until = now();
        if guard.remaining() < NEEDED {
            continue;
        }
        let times = [wanted, since, until];
        log.done(Stay::new(worker.number, times, fence.get()));
        let (attempts, round_trips) = noted.all()[0];
        if round_trips > 1 {
            log.say("raised");
        }
        if attempts > 1 {
            log.say("retried");
        }
        drop(guard);
    }
}
