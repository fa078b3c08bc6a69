//! Readers and writers in several processes, nine reads to a write, while servers hang and are killed, and clients too.
//!
//! Servers keep what they have granted: each write is on disk before it is answered. Every thread writes down each time
//! that it was inside as one line, at once. The judge reads these lines alone, by the monotonic clock of the one
//! machine that all run on: while one writes, no other thread is inside, and readers are inside together. Every other
//! writer has a number, and goes on as a reader now and then: the numbers grow in the order of writing.
//!
//! The run is short by default. `QUORUMLOCK_READ_WRITE_SECONDS` makes it longer, and `QUORUMLOCK_READ_WRITE_SEED`
//! repeats its choices, if not their timing. It prints a report.

use crate::nemesis::Random;
use crate::support::server::Server;
use crate::support::sides::Sides;
use crate::support::workers::{STOP, Workers};
use quorumlock::{ErrorKind, Redlock};
use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

const TEST: &str = "read_write::under_faults::a_writer_is_alone_while_everything_breaks";
const PROCESSES: usize = 8;
const THREADS: usize = 2;
const SERVERS: usize = 5;
const TTL: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
const HELD: Duration = Duration::from_millis(1);
/// One of so many writes.
const WRITES: u64 = 10;
/// Set in worker processes: a number, the directory and the nodes, separated by spaces.
const VARIABLE: &str = "QUORUMLOCK_READ_WRITE_WORKER";
const DURABLE: [&str; 6] = ["--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "4mb"];

#[test]
#[allow(clippy::print_stdout)]
fn a_writer_is_alone_while_everything_breaks() {
    if let Ok(order) = std::env::var(VARIABLE) {
        return work_all(&order);
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let time = Duration::from_secs(number("QUORUMLOCK_READ_WRITE_SECONDS").unwrap_or(4));
    let seed = number("QUORUMLOCK_READ_WRITE_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let mut storm = Storm::begin(Random::from_seed(seed));
    let begun = Instant::now();
    while begun.elapsed() < time {
        storm.strike();
    }
    storm.workers.end();
    println!("read-write: seed {seed}, {time:?}, {} faults\n{}", storm.faults, judge(storm.workers.directory()));
}

/// One time that a thread was inside.
#[derive(Debug)]
struct Stay {
    writes: bool,
    process: String,
    since: u64,
    until: u64,
    waited: u64,
    /// Zero without a number.
    fence: u64,
}

/// Judges what all threads wrote down.
fn judge(directory: &Path) -> String {
    let mut stays = stays(directory);
    stays.sort_by_key(|stay| stay.since);
    let (mut last, mut last_writer): (Option<&Stay>, Option<&Stay>) = (None, None);
    let (mut together, mut numbered, mut fence) = (0, 0, 0);
    for stay in &stays {
        // Of those that began before, the one that ends last, and the writer that does.
        let against = if stay.writes { last } else { last_writer };
        if let Some(other) = against {
            assert!(other.until <= stay.since, "a writer is not alone: {other:?}, {stay:?}");
        }
        if stay.fence > 0 {
            assert!(stay.fence > fence, "the later writer has no greater number: {fence}, {stay:?}");
            (fence, numbered) = (stay.fence, numbered + 1);
        }
        together += usize::from(
            !stay.writes && last.is_some_and(|other| other.until > stay.since && other.process != stay.process),
        );
        if last.is_none_or(|other| stay.until > other.until) {
            last = Some(stay);
        }
        if stay.writes && last_writer.is_none_or(|other| stay.until > other.until) {
            last_writer = Some(stay);
        }
    }
    let mut report = String::new();
    for (name, writes) in [("reads", false), ("writes", true)] {
        let waits = || stays.iter().filter(|stay| stay.writes == writes).map(|stay| Duration::from_nanos(stay.waited));
        let _ =
            writeln!(report, "{:>8} {name}, longest wait {:.2?}", waits().count(), waits().max().unwrap_or_default());
        assert!(waits().count() > 10, "{report}");
    }
    let _ = writeln!(report, "{together:>8} reads began while another program read");
    let _ = writeln!(report, "{numbered:>8} writes had a number");
    assert!(together > 0 && numbered > 5, "{report}");
    report
}

fn stays(directory: &Path) -> Vec<Stay> {
    let mut stays = Vec::new();
    for path in logs(directory) {
        let process = path.file_stem().unwrap().to_string_lossy().into_owned();
        for line in BufReader::new(File::open(path).unwrap()).lines() {
            let line = line.unwrap();
            let fields: Vec<&str> = line.split(' ').collect();
            // The last line of a killed process may be half a line.
            if let [kind, since, until, waited, fence, "."] = fields[..] {
                let [since, until, waited, fence] = [since, until, waited, fence].map(|text| text.parse().unwrap());
                stays.push(Stay { writes: kind == "w", process: process.clone(), since, until, waited, fence });
            }
        }
    }
    stays
}

fn logs(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension.to_string_lossy().starts_with("log")))
}

/// Servers and clients, and what is done to them.
struct Storm {
    // Dropped before the servers.
    workers: Workers,
    servers: Vec<Server>,
    random: Random,
    faults: usize,
}

impl Storm {
    fn begin(random: Random) -> Storm {
        let servers: Vec<_> = (0..SERVERS).map(|_| Server::with(&DURABLE).unwrap()).collect();
        let directory = servers[0].directory().join("read_write");
        fs::create_dir(&directory).unwrap();
        let workers = Workers::start((TEST, VARIABLE), directory, &servers, PROCESSES);
        Storm { workers, servers, random, faults: 0 }
    }

    fn strike(&mut self) {
        let victim = self.random.below(SERVERS as u64) as usize;
        match self.random.below(5) {
            0 => self.hang(&[victim], 400),
            1 => self.hang(&[victim, (victim + 1) % SERVERS], 300),
            2 => self.hang(&[victim, (victim + 1) % SERVERS, (victim + 2) % SERVERS], 200),
            3 => {
                self.servers[victim].kill();
                self.rest(300);
                // On a busy machine it may take its time.
                self.servers[victim].restart().or_else(|_| self.servers[victim].wait_ready()).unwrap();
            }
            _ => {
                // A reader or a writer, most likely inside.
                let victim = self.random.below(PROCESSES as u64) as usize;
                self.workers.replace(victim);
            }
        }
        self.faults += 1;
        self.rest(400);
    }

    fn hang(&mut self, victims: &[usize], longest: u64) {
        for &victim in victims {
            self.servers[victim].pause().unwrap();
        }
        self.rest(longest);
        for &victim in victims {
            self.servers[victim].resume().unwrap();
        }
    }

    fn rest(&mut self, longest: u64) {
        thread::sleep(Duration::from_millis(self.random.below(longest)));
    }
}

/// What a worker process does: its threads share a client, and with it the lease to read.
fn work_all(order: &str) {
    let mut words = order.split(' ');
    let (number, directory) = (words.next().unwrap(), PathBuf::from(words.next().unwrap()));
    let nodes = words.map(|url| format!("{url}?durable=true"));
    let client = Redlock::builder().nodes(nodes).build().unwrap();
    thread::scope(|scope| {
        for index in 0..THREADS {
            let (client, directory) = (&client, &directory);
            let random = Random::from_seed(number.parse::<u64>().unwrap() * 1000 + index as u64);
            let log = directory.join(format!("{number}.log{index}"));
            scope.spawn(move || work(client, directory, &log, random));
        }
    });
}

fn work(client: &Redlock, directory: &Path, log: &Path, mut random: Random) {
    let mut log = OpenOptions::new().create(true).append(true).open(log).unwrap();
    let mutex = Sides::of(client, "k").ttl(TTL);
    let fenced = mutex.clone().fenced();
    // The directory goes with the test that started this process, however that ends.
    while directory.exists() && !directory.join(STOP).exists() {
        let called = now();
        let (writes, goes_on) = (random.below(WRITES) == 0, random.below(2) == 0);
        let stay = match writes {
            true if random.below(2) == 0 => fenced.write.lock_timeout(LONGEST_WAIT).map(|guard| {
                let guard = guard?;
                let (fence, stay) = (guard.fence().get(), stay(|| guard.remaining())?);
                if goes_on {
                    _ = guard.downgrade();
                }
                Some((stay, fence))
            }),
            true => mutex.write.lock_timeout(LONGEST_WAIT).map(|guard| {
                let guard = guard?;
                Some((stay(|| guard.remaining())?, 0))
            }),
            false => mutex.read.lock_timeout(LONGEST_WAIT).map(|guard| {
                let guard = guard?;
                Some((stay(|| guard.remaining())?, 0))
            }),
        };
        match stay {
            Ok(Some(((since, until), fence))) => {
                let kind = if writes { 'w' } else { 'r' };
                log.write_all(format!("{kind} {since} {until} {} {fence} .\n", since - called).as_bytes()).unwrap();
            }
            // The lease ended while the process did not run.
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Stays inside for a while, and says from when to when, if the lease has lasted for so long. The clock is read before
/// the time that is left.
fn stay(remaining: impl Fn() -> Duration) -> Option<(u64, u64)> {
    let since = now();
    if remaining().is_zero() {
        return None;
    }
    thread::sleep(HELD);
    let until = now();
    (!remaining().is_zero()).then_some((since, until))
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
