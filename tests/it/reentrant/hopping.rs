//! Owners that hop between the threads of pools, in two processes, while servers hang and die.
//!
//! Each owner nests locks of one resource at random, and writes a number under it that nothing else
//! protects. Between two steps it may move to another thread of its pool, with its guards. Then no
//! update is lost, no two owners overlap in time, and no key is left.
//!
//! `QUORUMLOCK_REENTRANT_SECONDS` makes the run longer.

use crate::prelude::*;
use crate::storm::{Counter, Log, Stay, Storm, Story, Worker, judge, now, number};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

const TEST: &str = "reentrant::hopping::owners_hop_and_nest_and_never_overlap";
const SERVERS: usize = 5;
const PROCESSES: usize = 2;
const THREADS: usize = 4;
const OWNERS: usize = 3;
/// The locks that an owner has at once at most.
const LEVELS: usize = 6;
const TTL: Duration = Duration::from_secs(2);
/// An owner with less time left does not write.
const NEEDED: Duration = Duration::from_millis(700);

#[test]
#[allow(clippy::print_stdout)]
fn owners_hop_and_nest_and_never_overlap() {
    if let Some(worker) = Worker::this() {
        return work(&worker);
    }
    let seconds = number("QUORUMLOCK_REENTRANT_SECONDS").unwrap_or(6);
    let mut storm = Storm::begin(TEST, Server::several(SERVERS).unwrap(), PROCESSES, seconds);
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        let [hung, lost] = [(); 2].map(|()| storm.random.below(SERVERS as u64) as usize);
        storm.servers[hung].pause().unwrap();
        if hung != lost {
            // It comes back empty, and does not vote before all that it has forgotten has ended.
            storm.servers[lost].restart().unwrap();
        }
        storm.rest(300);
        storm.servers[hung].resume().unwrap();
        // A quarantine ends before the next node forgets.
        thread::sleep(TTL * 3 / 2);
        // A worker that is killed leaves its lock behind.
        if storm.random.below(2) == 0 {
            storm.replace_any();
        }
    }
    let killed = storm.workers.end();
    let directory = storm.workers.directory();
    let story = Story::read(directory);
    judge::no_update_is_lost(&story, Counter::of(directory).read(), killed);
    println!(
        "{} updates, {killed} killed, {:?}",
        story.done.len(),
        story.counts
    );
    assert!(
        story.done.len() as u64 > seconds * 5
            && story.count("hopped") > 0
            && story.count("entered again") > 0
    );
    let client = Redlock::builder().nodes(storm.servers.iter().map(Server::url));
    let client = client.restart_policy(RestartPolicy::Off).build().unwrap();
    // An entry of a program that was killed stays if a quorum granted the lock while this node kept
    // another lease.
    judge::nothing_is_left(&storm.servers, || {
        drop(client.mutex("the number").ttl(TTL).lock().unwrap().unlock())
    });
}

/// What a worker process does.
fn work(worker: &Worker) {
    let client = worker.strict(TTL).build().unwrap();
    let mutex = client.mutex("the number").ttl(TTL).reentrant();
    let (sender, receiver) = channel();
    for owner in 0..OWNERS {
        let job = Job {
            owner: Owner::new(),
            guards: Vec::new(),
            log: worker.log(owner),
            process: worker.number,
            counter: Counter::of(&worker.directory),
            random: worker.random(owner),
        };
        sender.send(job).unwrap();
    }
    let queue = Mutex::new(receiver);
    worker.threads(THREADS, |_| pool_thread(worker, &sender, &queue, &mutex));
}

/// Does steps of whatever owner comes next, until the run is over.
fn pool_thread(
    worker: &Worker,
    sender: &Sender<Job>,
    queue: &Mutex<Receiver<Job>>,
    mutex: &ReentrantMutex,
) {
    while !worker.is_over() {
        let next = queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv_timeout(Duration::from_millis(10));
        let Ok(mut job) = next else { continue };
        for _ in 0..=job.random.below(4) {
            job.step(mutex);
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
    process: usize,
    counter: Counter,
    random: Random,
}

impl Job {
    /// Takes a level, ends one, or writes.
    fn step(&mut self, mutex: &ReentrantMutex) {
        match self.random.below(5) {
            0 | 1 if self.guards.len() < LEVELS => self.enter(mutex),
            2 if !self.guards.is_empty() => {
                let guard = self
                    .guards
                    .swap_remove(self.random.below(self.guards.len() as u64) as usize);
                // A release that no quorum confirms comes later.
                drop(guard.unlock());
            }
            3 if self
                .guards
                .first()
                .is_some_and(|guard| guard.remaining().is_zero()) =>
            {
                self.log.say("lost");
                self.guards.clear();
            }
            _ => self.write(),
        }
    }

    fn enter(&mut self, mutex: &ReentrantMutex) {
        let is_again = !self.guards.is_empty();
        match mutex.lock_as(&self.owner, &Wait::timeout(Duration::from_millis(200))) {
            Ok(Some(guard)) => {
                self.log
                    .say(if is_again { "entered again" } else { "entered" });
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
    fn write(&mut self) {
        let Some(guard) = self.guards.first() else {
            return;
        };
        let since = now();
        if guard.ensure(NEEDED).is_err() {
            return;
        }
        let value = self.counter.read() + 1;
        thread::sleep(self.random.up_to(Duration::from_millis(3)));
        if guard.ensure(NEEDED / 2).is_err() {
            return;
        }
        self.counter.write(value);
        let times = [since, since, now()];
        self.log.done(Stay::new(self.process, times, value));
    }
}
