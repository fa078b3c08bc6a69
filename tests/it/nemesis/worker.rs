//! A client process: threads that take the lock in every way there is, and increment a number that
//! nothing else protects.
//!
//! A thread looks at the time that is left to it, writes the number, and logs what it did. Now and
//! then it takes longer than the lock's time to live: some threads rely on a watchdog for that or
//! on an extension by hand, the others on the guard's remaining time. Now and then the lock changes
//! hands between two clients.
//!
//! A process can be paused at any time for less than what a thread wants to be left ([`NEEDED`]):
//! that is what it is there for. It can be paused for longer than a lease at any time but between
//! the look and the write, because no lock survives that there: [`freeze`] asks for it, and a
//! thread of the process chooses the moment.

use crate::prelude::*;
use crate::storm::{Counter, Log, Stay, Worker, now};
use nix::sys::signal::raise;
use quorumlock::event::LossReason;
use std::sync::RwLock;

pub(crate) const RESOURCE: &str = "the number";
pub(crate) const TTL: Duration = Duration::from_secs(2);
pub(crate) const THREADS: usize = 3;
/// A thread with less time left does not write: far more than a write takes on a busy machine, or
/// in a process that is paused for [`SHORT_PAUSE`].
const NEEDED: Duration = Duration::from_millis(700);
/// The longest pause that can be survived between a look at the time and the write.
pub(crate) const SHORT_PAUSE: Duration = Duration::from_millis(250);
/// How late a loss may be reported, on a machine that is busy and in a process that was paused.
const REPORT_DELAY: Duration = Duration::from_secs(5);

/// The number of the process that took the lock last.
const HOLDER: &str = "holder";

/// Asks a process to stop itself where a long pause does no harm. It has when the file is gone and
/// the process is stopped.
pub(crate) fn freeze(number: usize, directory: &Path) {
    fs::write(freezing(number, directory), "").expect("a writable directory");
}

/// The process that took the lock last.
pub(crate) fn holder(directory: &Path) -> Option<usize> {
    let number = fs::read_to_string(directory.join(HOLDER)).ok()?;
    number.parse().ok()
}

/// What a worker process does.
pub(crate) fn run(worker: &Worker) {
    let journal = Arc::new(Journal(Log::open(
        &worker.directory,
        format!("{}.events", worker.number),
    )));
    let client = || {
        // A server that has just been started may have forgotten what holds.
        let builder = worker.strict(TTL);
        let observer = calling(&journal, Journal::event);
        builder.observer(observer).build().unwrap()
    };
    let (client, other, writing) = (client(), client(), RwLock::new(()));
    // One more, behind those that take the lock.
    worker.threads(THREADS + 1, |index| {
        if index == THREADS {
            return freeze_when_asked(worker, &writing);
        }
        let mutex = |client: &Redlock| {
            let mutex = client.mutex(RESOURCE).ttl(TTL);
            match index % 2 {
                0 => mutex.watchdog(Watchdog::new()),
                _ => mutex,
            }
        };
        let mut thread = Thread {
            mutex: mutex(&client),
            other: mutex(&other),
            worker,
            counter: Counter::of(&worker.directory),
            log: worker.log(index),
            writing: &writing,
            random: worker.random(index),
        };
        while !worker.is_over() {
            thread.work();
        }
    });
}

fn freezing(number: usize, directory: &Path) -> PathBuf {
    directory.join(format!("freeze.{number}"))
}

fn freeze_when_asked(worker: &Worker, writing: &RwLock<()>) {
    let order = freezing(worker.number, &worker.directory);
    while !worker.is_over() {
        if order.exists() {
            let nobody_writes = writing.write().unwrap();
            fs::remove_file(&order).unwrap();
            raise(Signal::SIGSTOP).unwrap();
            drop(nobody_writes);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

struct Thread<'p> {
    mutex: quorumlock::Mutex,
    /// The same lock by another client.
    other: quorumlock::Mutex,
    worker: &'p Worker,
    counter: Counter,
    log: Log,
    writing: &'p RwLock<()>,
    random: Random,
}

impl Thread<'_> {
    /// Takes the lock, if it can be had, uses it and lets it go.
    fn work(&mut self) {
        let Some(guard) = self.take() else { return };
        let mut since = now();
        let holder = self.worker.directory.join(HOLDER);
        fs::write(holder, self.worker.number.to_string()).unwrap();
        let Some(guard) = self.hold(guard, &mut since) else {
            return;
        };
        if !self.update(&guard, &mut since) {
            return self.give_up(guard);
        }
        if self.random.below(2) == 0 {
            return drop(guard);
        }
        self.log.say(match guard.unlock() {
            Ok(ReleaseOutcome::Released) => "unlocked: released",
            Ok(ReleaseOutcome::Expired) => "unlocked: expired",
            Ok(other) => panic!("{other}"),
            Err(_) => "unlocked: unconfirmed",
        });
    }

    /// Increments the number, having relied on the lock since then. False, and nothing is done,
    /// when too little time is left.
    fn update(&mut self, guard: &MutexGuard, since: &mut u64) -> bool {
        let value = self.counter.read() + 1;
        thread::sleep(self.random.up_to(Duration::from_millis(3)));
        // From the look to the write there is no long pause.
        let gate = self.writing.read().unwrap();
        if guard.remaining() < NEEDED {
            return false;
        }
        self.counter.write(value);
        let until = now();
        drop(gate);
        let times = [*since, *since, until];
        self.log.done(Stay::new(self.worker.number, times, value));
        *since = until;
        true
    }

    fn take(&mut self) -> Option<MutexGuard> {
        let second = Duration::from_secs(1);
        let taken = match self.random.below(8) {
            0 => match self.mutex.try_lock() {
                Ok(None) => {
                    self.log.say("try_lock: held");
                    thread::sleep(self.random.up_to(Duration::from_millis(5)));
                    return None;
                }
                taken => taken,
            },
            1 => self.mutex.lock().map(Some),
            2 => {
                let handle = CancelHandle::new();
                let patience = self.random.up_to(Duration::from_millis(100));
                let wait = Wait::timeout(second).cancelled_by(&handle);
                thread::scope(|scope| {
                    scope.spawn(|| {
                        thread::sleep(patience);
                        handle.cancel();
                    });
                    self.mutex.lock_with(&wait)
                })
            }
            _ => self.mutex.lock_timeout(second),
        };
        self.log.say(match &taken {
            Ok(Some(_)) => "acquired",
            Ok(None) => "waited: timed out",
            Err(error) => match error.kind() {
                ErrorKind::Cancelled => "waited: cancelled",
                ErrorKind::Unavailable => "waited: unavailable",
                _ => panic!("{error}"),
            },
        });
        taken.ok().flatten()
    }

    /// Holds it for a while, in one of several ways.
    fn hold(&mut self, mut guard: MutexGuard, since: &mut u64) -> Option<MutexGuard> {
        match self.random.below(300) {
            // Longer than the lock lasts: what is watched goes on, and the rest must notice.
            0 => self.keep_on(&guard, since, TTL * 5 / 4),
            1 => {
                // As long, and extended by hand on the way.
                for _ in 0..3 {
                    self.keep_on(&guard, since, TTL * 5 / 12);
                    if guard.extend(TTL).unwrap() == ExtendOutcome::Lost {
                        assert!(
                            guard.remaining().is_zero(),
                            "an extension says that the lock is lost, and the guard does not"
                        );
                    }
                }
            }
            2..30 => {
                // The guard and the observer report how it ended.
                let _ = guard.extend(TTL).unwrap();
            }
            30..50 => {
                let text = guard.detach().unwrap().into_text();
                match self.other.attach(text.expose().parse().unwrap()) {
                    Ok(attached) => {
                        self.log.say("handed over: attached");
                        guard = attached;
                    }
                    Err(error) if error.kind() == ErrorKind::LeaseLost => {
                        self.log.say("handed over: too late");
                        return None;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            _ => {}
        }
        Some(guard)
    }

    /// Increments the number over and over for so long, for as long as there is time left.
    fn keep_on(&mut self, guard: &MutexGuard, since: &mut u64, time: Duration) {
        let until = now() + time.as_nanos() as u64;
        while now() < until && self.update(guard, since) {
            thread::sleep(self.random.up_to(Duration::from_millis(20)));
        }
        thread::sleep(Duration::from_nanos(until.saturating_sub(now())));
    }

    /// Too little is left. When nothing is, there is no doubt about it.
    fn give_up(&self, guard: MutexGuard) {
        self.log.say("given up for lack of time");
        if guard.remaining().is_zero() {
            // Without a thread that watches there is no channel.
            if let Ok(lost) = guard.lost() {
                assert!(
                    lost.recv_timeout(REPORT_DELAY).is_ok(),
                    "a lease has ended, and no loss was reported"
                );
                self.log
                    .say("given up: the guard's channel reported the loss");
            }
            assert!(
                guard.remaining().is_zero(),
                "a lease that had ended goes on"
            );
        }
    }
}

/// Records the events of the clients of this process.
struct Journal(Log);

impl Journal {
    fn event(&self, event: &Event) {
        self.0.say(match event {
            Event::AttemptLost { refused: 1.., .. } => "attempt refused",
            Event::AttemptLost { .. } => "attempt unanswered",
            Event::Extended {
                is_automatic: true, ..
            } => "extended by the watchdog",
            Event::Extended { .. } => "extended by hand",
            Event::ExtensionFailed { .. } => "extension failed",
            Event::Lost {
                reason: LossReason::KeyGone,
                ..
            } => "loss reported: the key is gone",
            Event::Lost { .. } => "loss reported: the lease ended",
            Event::NodeDown { .. } => "node down",
            Event::NodeQuarantined { .. } => "node quarantined",
            Event::NodeUp { .. } => "node up",
            Event::Repaired { .. } => "key repaired",
            _ => return,
        });
    }
}
