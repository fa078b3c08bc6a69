//! Processes of many threads want one of three permits, while servers hang and die and holders are killed.
//!
//! Each thread writes down from when to when it relied on a permit, and of which slot, by the clock of the machine.
//! Then no four overlap, no two of one slot, and no key is left.
//!
//! `QUORUMLOCK_SEMAPHORE_SECONDS` makes the run longer, and larger: eight processes of eight threads.

use crate::clients::SOON;
use crate::nemesis::Random;
use crate::nemesis::log::{Interval, Log, Story, now};
use crate::support::process::eventually;
use crate::support::server::Server;
use quorumlock::{ErrorKind, Redlock, RestartPolicy, Semaphore};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use std::{fs, thread};

const TEST: &str = "semaphore::crowd::no_four_are_inside";
/// Set in worker processes: a number, the threads, the directory and the nodes, separated by spaces.
const VARIABLE: &str = "QUORUMLOCK_SEMAPHORE_WORKER";
const SERVERS: usize = 5;
const PERMITS: usize = 3;
const TTL: Duration = Duration::from_secs(2);
/// A thread with less time left does not go inside.
const NEEDED: Duration = Duration::from_millis(700);
/// When this file is there, workers end.
const STOP: &str = "stop";

#[test]
#[allow(clippy::print_stdout)]
fn no_four_are_inside() {
    if let Ok(order) = std::env::var(VARIABLE) {
        return work(&order);
    }
    let wanted = std::env::var("QUORUMLOCK_SEMAPHORE_SECONDS").ok().and_then(|value| value.parse().ok());
    let (processes, threads) = if wanted.is_some() { (8, 8) } else { (3, 4) };
    let seconds = wanted.unwrap_or(5);
    let directory = std::env::temp_dir().join(format!("quorumlock-semaphore-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let mut servers = Server::several(SERVERS).unwrap();
    let urls: Vec<String> = servers.iter().map(Server::url).collect();
    let mut workers: Vec<_> = (0..processes).map(|number| start(number, threads, &directory, &urls)).collect();
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut random = Random::from_seed(seconds);
    let (mut killed, mut started) = (0, processes);
    // One is dead for the whole run, and of the others one hangs at a time.
    servers[SERVERS - 1].kill();
    while Instant::now() < end {
        let hung = random.below(SERVERS as u64 - 1) as usize;
        servers[hung].pause().unwrap();
        thread::sleep(random.millis(400));
        servers[hung].resume().unwrap();
        thread::sleep(random.millis(800));
        // A worker that is killed leaves the permits of its threads behind.
        let victim = random.below(processes as u64) as usize;
        workers[victim].kill().unwrap();
        workers[victim].wait().unwrap();
        killed += 1;
        workers[victim] = start(started, threads, &directory, &urls);
        started += 1;
    }
    fs::write(directory.join(STOP), "").unwrap();
    for worker in &mut workers {
        assert!(eventually(SOON * 2, || worker.try_wait().unwrap().is_some()), "a worker does not end");
        assert!(worker.wait().unwrap().success());
    }
    let story = Story::read(&directory);
    let most = most_at_once(&story.done);
    println!("{} times inside, {most} at once, {killed} killed, {:?}", story.done.len(), story.counts);
    assert!(most <= PERMITS, "{most} are inside");
    for slot in 0..PERMITS as u64 {
        let of_slot: Vec<_> = story.done.iter().copied().filter(|interval| interval.value == slot).collect();
        assert!(!of_slot.is_empty() && most_at_once(&of_slot) == 1, "slot {slot}");
    }
    assert!(story.done.len() as u64 > seconds * 10 && most == PERMITS);
    // The entry of a worker that was killed after all others had ended is removed by the next release.
    let client = client_of(&urls);
    let semaphore = client.semaphore("doors", PERMITS).ttl(TTL);
    for server in &servers[..SERVERS - 1] {
        let is_empty = || {
            semaphore.lock_timeout(TTL).unwrap().map(|permit| permit.unlock().unwrap());
            server.keys().is_ok_and(|keys| keys.is_empty())
        };
        assert!(eventually(SOON, is_empty), "{:?}", server.keys());
    }
    fs::remove_dir_all(directory).unwrap();
}

/// How many of these times overlap.
fn most_at_once(intervals: &[Interval]) -> usize {
    let changes = intervals.iter().flat_map(|interval| [(interval.start, 1_isize), (interval.end, -1)]);
    let mut changes: Vec<_> = changes.collect();
    // An end comes before a beginning at the same time.
    changes.sort_unstable();
    let mut inside = 0;
    let counts = changes.into_iter().map(|(_, change)| {
        inside += change;
        inside
    });
    counts.max().unwrap_or(0).unsigned_abs()
}

fn start(number: usize, threads: usize, directory: &Path, urls: &[String]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([TEST, "--exact", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, format!("{number} {threads} {} {}", directory.display(), urls.join(" ")))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

/// What a worker process does.
fn work(order: &str) {
    // A worker does not outlive the test.
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).unwrap();
    let mut words = order.split(' ');
    let [number, threads] = [words.next(), words.next()].map(|word| word.unwrap().parse::<u64>().unwrap());
    let directory = PathBuf::from(words.next().unwrap());
    let client = client_of(words);
    let semaphore = client.semaphore("doors", PERMITS).ttl(TTL);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (semaphore, directory) = (&semaphore, &directory);
            scope.spawn(move || {
                let log = Log::open(directory, &format!("{number}.{thread}"));
                let mut random = Random::from_seed(number * 100 + thread);
                while !directory.join(STOP).exists() {
                    go_inside(semaphore, &log, &mut random);
                }
            });
        }
    });
}

fn client_of(urls: impl IntoIterator<Item = impl Into<String>>) -> Redlock {
    Redlock::builder().nodes(urls).restart_policy(RestartPolicy::Off).ttl(TTL).max_ttl(TTL).build().unwrap()
}

fn go_inside(semaphore: &Semaphore, log: &Log, random: &mut Random) {
    let permit = match semaphore.lock_timeout(Duration::from_secs(1)) {
        Ok(Some(permit)) => permit,
        Ok(None) => return log.say("timed out"),
        Err(error) if error.kind() == ErrorKind::Unavailable => return log.say("unavailable"),
        Err(error) => panic!("{error}"),
    };
    let start = now();
    if permit.ensure(NEEDED).is_err() {
        return log.say("late");
    }
    thread::sleep(random.up_to(Duration::from_millis(3)));
    let end = now();
    // A machine that stood still for longer than that shows nothing.
    if permit.ensure(Duration::ZERO).is_ok() {
        log.done(Interval { start, end, value: permit.slot() as u64 });
    }
    match random.below(2) {
        0 => drop(permit),
        _ => drop(permit.unlock()),
    }
}
