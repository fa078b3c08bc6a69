//! Fenced acquisitions by threads of several processes, while servers hang and are killed, and clients too.
//!
//! Servers keep what they have granted: each write is on disk before it is answered. Every thread writes down each of
//! its acquisitions as one line, at once. Then, for each resource:
//! 1. no number was given out twice, and none was given out after a greater one, in the order of holding by the
//!    monotonic clock of the one machine that all run on;
//! 2. nearly all were won in one round trip.
//!
//! The run is short by default. `QUORUMLOCK_FENCE_ACQUISITIONS` says how many there are to be at least, and
//! `QUORUMLOCK_FENCE_SEED` repeats its choices, if not their timing. It prints a report.

use crate::clients::calling;
use crate::nemesis::Random;
use crate::support::server::Server;
use crate::support::workers::{STOP, Workers};
use quorumlock::event::Event;
use quorumlock::{ErrorKind, Redlock};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const TEST: &str = "fences_under_faults::fences_grow_while_everything_breaks";
const PROCESSES: usize = 4;
const THREADS: usize = 2;
const SERVERS: usize = 5;
const RESOURCES: [&str; 2] = ["a", "b"];
const TTL: Duration = Duration::from_secs(1);
/// A holder with less time left does not count in the order of holding.
const NEEDED: Duration = Duration::from_millis(300);
/// Set in worker processes: a number, the directory and the nodes, separated by spaces.
const VARIABLE: &str = "QUORUMLOCK_FENCE_WORKER";
/// Each write is on disk before it is answered; and what a server must read when it is back stays short.
const DURABLE: [&str; 6] = ["--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "4mb"];

#[test]
#[allow(clippy::print_stdout)]
fn fences_grow_while_everything_breaks() {
    if let Ok(order) = std::env::var(VARIABLE) {
        return work_all(&order);
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let wanted = number("QUORUMLOCK_FENCE_ACQUISITIONS").unwrap_or(600) as usize;
    let seed = number("QUORUMLOCK_FENCE_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let begun = Instant::now();
    let mut storm = Storm::begin(Random::from_seed(seed));
    let longest = Duration::from_secs(60) + Duration::from_millis(10) * wanted as u32;
    while storm.acquisitions() < wanted {
        assert!(begun.elapsed() < longest, "only {} of {wanted} in {longest:?}", storm.acquisitions());
        (0..4).for_each(|_| storm.strike());
    }
    storm.workers.end();
    let report = judge(storm.workers.directory());
    println!("fences: seed {seed}, {:?}, {:?}\n{report}", begun.elapsed(), storm.injected);
}

/// Judges what all threads wrote down.
fn judge(directory: &Path) -> String {
    let mut report = String::new();
    let (mut all, mut raised, mut retried) = (0, 0, 0);
    for resource in RESOURCES {
        let mut holds = holds(directory, resource);
        let distinct: HashSet<u64> = holds.iter().map(|hold| hold.fence).collect();
        assert_eq!(distinct.len(), holds.len(), "{resource}: a fence was given out twice");
        holds.sort_by_key(|hold| hold.since);
        for pair in holds.windows(2) {
            assert!(pair[0].fence < pair[1].fence, "{resource}: the later one has the smaller fence: {pair:?}");
            assert!(pair[0].until <= pair[1].since, "{resource}: two held it at once: {pair:?}");
        }
        all += holds.len();
        raised += holds.iter().filter(|hold| hold.round_trips > 1).count();
        retried += holds.iter().filter(|hold| hold.attempts > 1).count();
    }
    let share = 100.0 * (all - raised) as f64 / all as f64;
    report += &format!("{all} acquisitions, {share:.3} % won in one round trip, {raised} by a raise");
    report += &format!(", {retried} after more than one attempt");
    assert!(share > 90.0, "{report}");
    report
}

/// What one thread wrote down of one acquisition.
#[derive(Debug)]
struct Hold {
    since: u64,
    until: u64,
    fence: u64,
    attempts: u32,
    round_trips: u32,
}

fn holds(directory: &Path, resource: &str) -> Vec<Hold> {
    let mut holds = Vec::new();
    for path in logs(directory) {
        for line in BufReader::new(File::open(path).unwrap()).lines() {
            let line = line.unwrap();
            let fields: Vec<&str> = line.split(' ').collect();
            // The last line of a killed process may be half a line.
            if let [name, since, until, fence, attempts, round_trips, "."] = fields[..]
                && name == resource
            {
                let number = |text: &str| text.parse::<u64>().unwrap();
                holds.push(Hold {
                    since: number(since),
                    until: number(until),
                    fence: number(fence),
                    attempts: number(attempts) as u32,
                    round_trips: number(round_trips) as u32,
                });
            }
        }
    }
    holds
}

fn logs(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log.")))
}

/// Servers and clients, and the faults that are injected into them.
struct Storm {
    // Dropped before the servers.
    workers: Workers,
    servers: Vec<Server>,
    random: Random,
    injected: BTreeMap<&'static str, usize>,
}

impl Storm {
    fn begin(random: Random) -> Storm {
        let servers: Vec<_> = (0..SERVERS).map(|_| Server::with(&DURABLE).unwrap()).collect();
        let directory = servers[0].directory().join("fences");
        fs::create_dir(&directory).unwrap();
        let workers = Workers::start((TEST, VARIABLE), directory, &servers, PROCESSES);
        Storm { workers, servers, random, injected: BTreeMap::new() }
    }

    fn acquisitions(&self) -> usize {
        // A line has some fifty bytes; counting them all would take longer with every look.
        logs(self.workers.directory()).map(|path| fs::metadata(path).unwrap().len() as usize / 60).sum()
    }

    fn strike(&mut self) {
        let victim = self.random.below(SERVERS as u64) as usize;
        let name = match self.random.below(6) {
            0 => {
                self.hang(&[victim], 400);
                "a server hung"
            }
            1 => {
                self.hang(&[victim, (victim + 1) % SERVERS], 300);
                "two servers hung"
            }
            2 => {
                self.hang(&[victim, (victim + 1) % SERVERS, (victim + 2) % SERVERS], 200);
                "a majority hung"
            }
            3 => {
                self.servers[victim].kill();
                self.rest(300);
                // On a busy machine it may take its time.
                self.servers[victim].restart().or_else(|_| self.servers[victim].wait_ready()).unwrap();
                "a server killed and restarted"
            }
            4 => {
                let victim = self.random.below(PROCESSES as u64) as usize;
                self.workers.replace(victim);
                "a client killed and replaced"
            }
            _ => {
                let _ = self.servers[victim].command(&["SCRIPT", "FLUSH"]);
                "scripts forgotten"
            }
        };
        *self.injected.entry(name).or_default() += 1;
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

/// How the thread's last acquisition went. A callback runs on the thread that acquires.
#[derive(Default)]
struct Note {
    attempts: AtomicU32,
    round_trips: AtomicU32,
}

impl Note {
    fn event(&self, event: &Event) {
        if let Event::Acquired { attempts, round_trips, .. } = event {
            self.attempts.store(*attempts, Ordering::Relaxed);
            self.round_trips.store(*round_trips, Ordering::Relaxed);
        }
    }
}

/// What a worker process does. Each thread has a client of its own, so that all compete.
fn work_all(order: &str) {
    let mut words = order.split(' ');
    let (number, directory) = (words.next().unwrap(), PathBuf::from(words.next().unwrap()));
    let urls: Vec<&str> = words.collect();
    thread::scope(|scope| {
        for index in 0..THREADS {
            let (urls, directory) = (&urls, &directory);
            let random = Random::from_seed(number.parse::<u64>().unwrap() * 1000 + index as u64);
            let log = directory.join(format!("log.{number}.{index}"));
            scope.spawn(move || work(urls, directory, &log, random));
        }
    });
}

fn work(urls: &[&str], directory: &Path, log: &Path, mut random: Random) {
    let mut log = OpenOptions::new().create(true).append(true).open(log).unwrap();
    let note = std::sync::Arc::new(Note::default());
    let nodes = urls.iter().map(|url| format!("{url}?durable=true"));
    let client = Redlock::builder().nodes(nodes).observer(calling(&note, Note::event)).build().unwrap();
    let mutexes = RESOURCES.map(|resource| client.mutex(resource).ttl(TTL).fenced());
    // The directory goes with the test that started this process, however that ends.
    while directory.exists() && !directory.join(STOP).exists() {
        let mutex = &mutexes[random.below(RESOURCES.len() as u64) as usize];
        let guard = match mutex.lock_timeout(Duration::from_secs(1)) {
            Ok(Some(guard)) => guard,
            Ok(None) => continue,
            Err(error) if error.kind() == ErrorKind::Unavailable => continue,
            Err(error) => panic!("{error}"),
        };
        let since = now();
        let fence = guard.fence();
        let until = now();
        if guard.remaining() < NEEDED {
            continue;
        }
        let (attempts, round_trips) = (note.attempts.load(Ordering::Relaxed), note.round_trips.load(Ordering::Relaxed));
        let line = format!("{} {since} {until} {fence} {attempts} {round_trips} .\n", mutex.name());
        log.write_all(line.as_bytes()).unwrap();
        drop(guard);
    }
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
