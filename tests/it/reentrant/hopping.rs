//! Owners that hop between the threads of pools, in two processes, while servers hang and die.
//!
//! Each owner nests locks of one resource at random, and writes a number under it that nothing else protects, as in
//! [`nemesis`](crate::nemesis). Between two steps it may move to another thread of its pool, with its guards. Then no
//! update is lost, no two owners overlap in time, and no key is left.
//!
//! `QUORUMLOCK_REENTRANT_SECONDS` makes the run longer.

use crate::clients::SOON;
use crate::nemesis::log::{Interval, Log, Story, now};
use crate::nemesis::{Random, no_two_overlap};
use crate::support::process::eventually;
use crate::support::queues::no_entry_stays_behind;
use crate::support::server::Server;
use quorumlock::{ErrorKind, MutexGuard, Owner, Redlock, ReentrantMutex, RestartPolicy, Wait};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

const TEST: &str = "reentrant::hopping::owners_hop_and_nest_and_never_overlap";
/// Set in worker processes: a number, the directory and the nodes, separated by spaces.
const VARIABLE: &str = "QUORUMLOCK_REENTRANT_WORKER";
const SERVERS: usize = 5;
const PROCESSES: usize = 2;
const THREADS: usize = 4;
const OWNERS: usize = 3;
/// The locks that an owner has at once at most.
const LEVELS: usize = 6;
const TTL: Duration = Duration::from_secs(2);
/// An owner with less time left does not write.
const NEEDED: Duration = Duration::from_millis(700);
/// When this file is there, workers end.
const STOP: &str = "stop";

#[test]
#[allow(clippy::print_stdout)]
fn owners_hop_and_nest_and_never_overlap() {
    if let Ok(order) = std::env::var(VARIABLE) {
        return work(&order);
    }
    let seconds = std::env::var("QUORUMLOCK_REENTRANT_SECONDS").ok().and_then(|value| value.parse().ok()).unwrap_or(6);
    let directory = tempfile();
    let mut servers = Server::several(SERVERS).unwrap();
    let urls: Vec<String> = servers.iter().map(Server::url).collect();
    let mut workers: Vec<_> = (0..PROCESSES).map(|number| start(number, &directory, &urls)).collect();
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut random = Random::from_seed(seconds);
    let mut killed = 0;
    while Instant::now() < end {
        let (one, other) = (random.below(SERVERS as u64) as usize, random.below(SERVERS as u64) as usize);
        servers[one].pause().unwrap();
        if one != other {
            // It comes back empty, and does not vote before all that it has forgotten has ended.
            servers[other].restart().unwrap();
        }
        thread::sleep(random.millis(300));
        servers[one].resume().unwrap();
        // A quarantine ends before the next node forgets.
        thread::sleep(TTL * 3 / 2);
        // A worker that is killed leaves its lock behind.
        let victim = random.below(PROCESSES as u64 * 2) as usize;
        if let Some(worker) = workers.get_mut(victim) {
            worker.kill().unwrap();
            worker.wait().unwrap();
            killed += 1;
            *worker = start(victim + killed * PROCESSES, &directory, &urls);
        }
    }
    fs::write(directory.join(STOP), "").unwrap();
    for worker in &mut workers {
        assert!(eventually(SOON * 2, || worker.try_wait().unwrap().is_some()), "a worker does not end");
        assert!(worker.wait().unwrap().success());
    }
    let story = Story::read(&directory);
    no_two_overlap(&story);
    println!("{} updates, {killed} killed, {:?}", story.done.len(), story.counts);
    assert!(story.done.len() as u64 > seconds * 5 && story.count("hopped") > 0 && story.count("entered again") > 0);
    // An entry of a program that was killed goes with the next release of a lock that is free on that node then: not
    // with one that a quorum granted while this node still kept the lease of another that was killed.
    let client = Redlock::builder().nodes(&urls).restart_policy(RestartPolicy::Off).build().unwrap();
    no_entry_stays_behind(&servers, || drop(client.mutex("the number").ttl(TTL).lock().unwrap().unlock()));
    let is_empty = || servers.iter().all(|server| server.keys().is_ok_and(|keys| keys.is_empty()));
    assert!(eventually(SOON, is_empty), "{:?}", servers.iter().map(Server::keys).collect::<Vec<_>>());
    fs::remove_dir_all(directory).unwrap();
}

fn tempfile() -> PathBuf {
    let directory = std::env::temp_dir().join(format!("quorumlock-reentrant-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn start(number: usize, directory: &Path, urls: &[String]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([TEST, "--exact", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, format!("{number} {} {}", directory.display(), urls.join(" ")))
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
    let (number, directory) = (words.next().unwrap(), PathBuf::from(words.next().unwrap()));
    let builder = Redlock::builder().nodes(words).restart_policy(RestartPolicy::Strict).ttl(TTL).max_ttl(TTL);
    let mutex = builder.build().unwrap().mutex("the number").ttl(TTL).reentrant();
    let (sender, receiver) = channel();
    for owner in 0..OWNERS {
        let name = format!("{number}.{owner}");
        let seed = number.parse::<u64>().unwrap() * 100 + owner as u64;
        let job = Job {
            owner: Owner::new(),
            guards: Vec::new(),
            log: Log::open(&directory, &name),
            random: Random::from_seed(seed),
        };
        sender.send(job).unwrap();
    }
    let queue = Mutex::new(receiver);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let (sender, queue, mutex, directory) = (sender.clone(), &queue, &mutex, &directory);
            scope.spawn(move || pool_thread(&sender, queue, mutex, directory));
        }
    });
}

/// Does steps of whatever owner comes next, until the run is over.
fn pool_thread(sender: &Sender<Job>, queue: &Mutex<Receiver<Job>>, mutex: &ReentrantMutex, directory: &Path) {
    while !directory.join(STOP).exists() {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(Duration::from_millis(10));
        let Ok(mut job) = next else { continue };
        for _ in 0..=job.random.below(4) {
            job.step(mutex, directory);
        }
        job.log.say("hopped");
        sender.send(job).unwrap();
    }
}

/// An owner with its guards, on its way between threads.
struct Job {
    owner: Owner,
    guards: Vec<MutexGuard>,
    log: Log,
    random: Random,
}

impl Job {
    /// Takes a level, ends one, or writes.
    fn step(&mut self, mutex: &ReentrantMutex, directory: &Path) {
        match self.random.below(5) {
            0 | 1 if self.guards.len() < LEVELS => self.enter(mutex),
            2 if !self.guards.is_empty() => {
                let guard = self.guards.swap_remove(self.random.below(self.guards.len() as u64) as usize);
                // A release that no quorum confirms comes later.
                drop(guard.unlock());
            }
            3 if self.guards.first().is_some_and(|guard| guard.remaining().is_zero()) => {
                self.log.say("lost");
                self.guards.clear();
            }
            _ => self.write(directory),
        }
    }

    fn enter(&mut self, mutex: &ReentrantMutex) {
        let is_again = !self.guards.is_empty();
        match mutex.lock_as(&self.owner, &Wait::timeout(Duration::from_millis(200))) {
            Ok(Some(guard)) => {
                self.log.say(if is_again { "entered again" } else { "entered" });
                self.guards.push(guard);
            }
            Ok(None) => assert!(!is_again, "an owner is refused what it holds"),
            Err(error) => match error.kind() {
                ErrorKind::Unavailable => self.log.say("unavailable"),
                ErrorKind::LeaseLost => assert!(is_again, "{error}"),
                _ => panic!("{error}"),
            },
        }
    }

    /// Increments the number, if there is time for it.
    fn write(&mut self, directory: &Path) {
        let Some(guard) = self.guards.first() else { return };
        let start = now();
        if guard.ensure(NEEDED).is_err() {
            return;
        }
        let file = directory.join("counter");
        let value = fs::read_to_string(&file).map_or(0, |text| text.parse::<u64>().unwrap()) + 1;
        thread::sleep(self.random.up_to(Duration::from_millis(3)));
        if guard.ensure(NEEDED / 2).is_err() {
            return;
        }
        let new = directory.join("new");
        fs::write(&new, value.to_string()).unwrap();
        fs::rename(new, file).unwrap();
        self.log.done(Interval { start, end: now(), value });
    }
}
