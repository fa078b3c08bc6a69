//! Readers and writers in several processes, nine reads to a write, while servers hang and are
//! killed, and clients too.
//!
//! Servers keep what they have granted: each write is on disk before it is answered. While one
//! writes, no other thread is inside, and readers are inside together. Every other writer has a
//! number, and goes on as a reader now and then: the numbers grow in the order of writing.
//!
//! The run is short by default. `QUORUMLOCK_READ_WRITE_SECONDS` makes it longer, and
//! `QUORUMLOCK_READ_WRITE_SEED` repeats its choices, if not their timing. It prints a report.

use crate::prelude::*;
use crate::storm::{Stay, Storm, Story, Worker, durable_and_short, got, now, number, seed};

const TEST: &str = "read_write::under_faults::a_writer_is_alone_while_everything_breaks";
const PROCESSES: usize = 8;
const THREADS: usize = 2;
const SERVERS: usize = 5;
const TTL: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
const HELD: Duration = Duration::from_millis(1);
/// One of so many writes.
const WRITES: u64 = 10;
/// The directories of the logs.
const SIDES: [&str; 2] = ["reads", "writes"];

#[test]
#[allow(clippy::print_stdout)]
fn a_writer_is_alone_while_everything_breaks() {
    if let Some(worker) = Worker::this() {
        // The threads share a client, and with it the lease to read.
        let client = plain_client(worker.durable_urls());
        return worker.threads(THREADS, |thread| work(&client, &worker, thread));
    }
    let time = Duration::from_secs(number("QUORUMLOCK_READ_WRITE_SECONDS").unwrap_or(4));
    let seed = seed("QUORUMLOCK_READ_WRITE_SEED");
    let servers = durable_and_short().several(SERVERS).unwrap();
    let mut storm = Storm::begin(TEST, servers, PROCESSES, seed);
    let begun = Instant::now();
    // On a machine with much to do, longer.
    let is_enough = |directory: &Path| {
        let stays = |side| Story::read(&directory.join(side)).done.len();
        SIDES.into_iter().all(|side| stays(side) > 50)
    };
    while begun.elapsed() < time
        || begun.elapsed() < SOON * 3 && !is_enough(storm.workers.directory())
    {
        storm.strike();
    }
    storm.workers.end();
    println!(
        "read-write: seed {seed}, {time:?}, {:?}\n{}",
        storm.injected,
        judge(storm.workers.directory())
    );
}

/// Judges what all threads logged.
fn judge(directory: &Path) -> String {
    let [reads, writes] = SIDES.map(|side| Story::read(&directory.join(side)).done);
    let mut all: Vec<(&Stay, bool)> = reads.iter().map(|read| (read, false)).collect();
    all.extend(writes.iter().map(|write| (write, true)));
    all.sort_by_key(|(stay, _)| stay.since);
    let (mut last, mut last_writer): (Option<&Stay>, Option<&Stay>) = (None, None);
    let mut together = 0;
    let mut numbered = 0;
    let mut fence = 0;
    for (stay, writes) in all {
        // Of those that began before, the one that ends last, and the writer that does.
        let against = if writes { last } else { last_writer };
        if let Some(other) = against {
            assert!(
                other.until <= stay.since,
                "a writer is not alone: {other:?}, {stay:?}"
            );
        }
        if stay.value > 0 {
            assert!(
                stay.value > fence,
                "the later writer has no greater number: {fence}, {stay:?}"
            );
            fence = stay.value;
            numbered += 1;
        }
        together += usize::from(
            !writes
                && last
                    .is_some_and(|other| other.until > stay.since && other.process != stay.process),
        );
        last = last.into_iter().chain([stay]).max_by_key(|stay| stay.until);
        if writes {
            last_writer = last_writer
                .into_iter()
                .chain([stay])
                .max_by_key(|stay| stay.until);
        }
    }
    let [longest_read, longest_write] =
        [&reads, &writes].map(|stays| stays.iter().map(Stay::waited).max().unwrap_or_default());
    let report = format!(
        "{:>8} reads, longest wait {longest_read:.2?}\n{:>8} writes, longest wait {longest_write:.2?}\n\
         {together:>8} reads began while another program read\n{numbered:>8} writes had a number",
        reads.len(),
        writes.len()
    );
    assert!(
        reads.len() > 10 && writes.len() > 10 && together > 0 && numbered > 5,
        "{report}"
    );
    report
}

fn work(client: &Redlock, worker: &Worker, thread: usize) {
    let mut random = worker.random(thread);
    let [reads, writes] = SIDES.map(|side| worker.log_in(&worker.directory.join(side), thread));
    let mutex = Sides::of(client, "k").ttl(TTL);
    let fenced = mutex.clone().fenced();
    while !worker.is_over() {
        let wanted = now();
        let is_write = random.below(WRITES) == 0;
        let goes_on = random.below(2) == 0;
        let stay =
            |remaining: &dyn Fn() -> Duration, value| stay(worker.number, wanted, remaining, value);
        let done = match is_write {
            true if random.below(2) == 0 => fenced.write.lock_timeout(LONGEST_WAIT).map(|guard| {
                let guard = guard?;
                let done = stay(&|| guard.remaining(), guard.fence().get())?;
                if goes_on {
                    _ = guard.downgrade();
                }
                Some(done)
            }),
            true => {
                let guard = mutex.write.lock_timeout(LONGEST_WAIT);
                guard.map(|guard| guard.and_then(|guard| stay(&|| guard.remaining(), 0)))
            }
            false => {
                let guard = mutex.read.lock_timeout(LONGEST_WAIT);
                guard.map(|guard| guard.and_then(|guard| stay(&|| guard.remaining(), 0)))
            }
        };
        // None too if the lease ended while the process did not run.
        let Some(done) = got(done) else { continue };
        match is_write {
            true => writes.done(done),
            false => reads.done(done),
        }
    }
}

/// Stays inside for a while. None if the lease has ended meanwhile. The clock is read before the
/// time that is left.
fn stay(process: usize, wanted: u64, remaining: &dyn Fn() -> Duration, value: u64) -> Option<Stay> {
    let since = now();
    if remaining().is_zero() {
        return None;
    }
    thread::sleep(HELD);
    let until = now();
    (!remaining().is_zero()).then_some(Stay::new(process, [wanted, since, until], value))
}
