//! A client process: threads that take the lock in every way there is, and increment a number that nothing else
//! protects.
//!
//! A thread looks at the time that is left to it, writes the number, and writes down what it did (see
//! [`log`](super::log)). Now and then it takes longer than the lock's time to live: some threads rely on a watchdog
//! for that or on an extension by hand, the others on what the guard says is left. Now and then the lock changes hands
//! between two clients.
//!
//! A process can be paused at any time for less than what a thread wants to be left ([`NEEDED`]): that is what it is
//! there for. It can be paused for longer than a lease at any time but between the look and the write, because no lock
//! survives that there: [`freeze`] asks for it, and a thread of the process chooses the moment.

use super::log::{Interval, Log, now};
use super::random::Random;
use super::text;
use crate::clients::calling;
use nix::sys::signal::{Signal, raise};
use quorumlock::event::{Event, LossReason};
use quorumlock::{
    CancelHandle, ErrorKind, ExtendOutcome, MutexGuard, Redlock, ReleaseOutcome, RestartPolicy, Wait, Watchdog,
};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::Duration;

pub(crate) const RESOURCE: &str = "the number";
pub(crate) const TTL: Duration = Duration::from_secs(2);
pub(crate) const THREADS: usize = 3;
/// A thread with less time left does not write: far more than a write takes on a busy machine, or in a process that is
/// paused for [`SHORT_PAUSE`].
const NEEDED: Duration = Duration::from_millis(700);
/// The longest pause that can be survived between a look at the time and the write.
pub(crate) const SHORT_PAUSE: Duration = Duration::from_millis(250);
/// How late a loss may be reported, on a machine that is busy and in a process that was paused.
const REPORT_DELAY: Duration = Duration::from_secs(5);

/// Set in worker processes: a number, the directory and the nodes, separated by spaces.
const VARIABLE: &str = "QUORUMLOCK_NEMESIS_WORKER";
/// When this file is there, workers end.
const STOP: &str = "stop";
/// The number of the process that took the lock last.
const HOLDER: &str = "holder";

/// Starts one more process.
pub(crate) fn start(number: usize, directory: &Path, urls: &[String]) -> Child {
    let binary = std::env::current_exe().expect("the path of this test binary");
    let output = File::create(directory.join(format!("output.{number}"))).expect("a file for what it says");
    Command::new(binary)
        .args([super::TEST, "--exact", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, format!("{number} {} {}", directory.display(), urls.join(" ")))
        .stdout(output.try_clone().expect("the same file"))
        .stderr(Stdio::from(output))
        .spawn()
        .expect("this test binary runs")
}

/// Lets all processes end, each when its threads have had the lock once more or given up.
pub(crate) fn stop(directory: &Path) {
    fs::write(directory.join(STOP), "").expect("a writable directory");
}

/// Asks a process to stop itself where a long pause does no harm. It has when the file is gone and the process stands.
pub(crate) fn freeze(number: usize, directory: &Path) {
    fs::write(freezing(number, directory), "").expect("a writable directory");
}

/// The process that took the lock last.
pub(crate) fn holder(directory: &Path) -> Option<usize> {
    text(&directory.join(HOLDER)).parse().ok()
}

/// The number, zero when it was never written.
pub(crate) fn counter(directory: &Path) -> u64 {
    match text(&directory.join("counter")).as_str() {
        "" => 0,
        number => number.parse().unwrap(),
    }
}

/// Whether this process is a worker.
pub(crate) fn is_wanted() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// What a worker process does.
pub(crate) fn run() {
    // A process that stands still would not see that the test is gone.
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).unwrap();
    let order = std::env::var(VARIABLE).unwrap();
    let mut words = order.split(' ');
    let (number, directory) = (words.next().unwrap(), PathBuf::from(words.next().unwrap()));
    let urls: Vec<&str> = words.collect();
    let journal = Arc::new(Journal(Log::open(&directory, &format!("{number}.events"))));
    let client = || {
        let builder = Redlock::builder().nodes(urls.iter().copied()).observer(calling(&journal, Journal::event));
        // A server that has just been started may have forgotten what holds.
        builder.restart_policy(RestartPolicy::Strict).ttl(TTL).max_ttl(TTL).build().unwrap()
    };
    let (client, other) = (client(), client());
    let (number, writing) = (number.parse::<usize>().unwrap(), RwLock::new(()));
    thread::scope(|scope| {
        for index in 0..THREADS {
            let mutex = |client: &Redlock| {
                let mutex = client.mutex(RESOURCE).ttl(TTL);
                if index % 2 == 0 { mutex.watchdog(Watchdog::new()) } else { mutex }
            };
            let mut thread = Thread {
                mutex: mutex(&client),
                other: mutex(&other),
                number,
                directory: &directory,
                log: Log::open(&directory, &format!("{number}.{index}")),
                writing: &writing,
                random: Random::from_seed((number * 1000 + index) as u64),
            };
            scope.spawn(move || {
                while !is_over(thread.directory) {
                    thread.work();
                }
            });
        }
        scope.spawn(|| freeze_when_asked(number, &directory, &writing));
    });
}

/// The directory goes with the test that started this process, however that ends.
fn is_over(directory: &Path) -> bool {
    directory.join(STOP).exists() || !directory.exists()
}

fn freezing(number: usize, directory: &Path) -> PathBuf {
    directory.join(format!("freeze.{number}"))
}

fn freeze_when_asked(number: usize, directory: &Path, writing: &RwLock<()>) {
    let order = freezing(number, directory);
    while !is_over(directory) {
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
    number: usize,
    directory: &'p Path,
    log: Log,
    writing: &'p RwLock<()>,
    random: Random,
}

impl Thread<'_> {
    /// Takes the lock, if it can be had, uses it and lets it go.
    fn work(&mut self) {
        let Some(guard) = self.take() else { return };
        let mut since = now();
        fs::write(self.directory.join(HOLDER), self.number.to_string()).unwrap();
        let Some(guard) = self.hold(guard, &mut since) else { return };
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

    /// Increments the number, having relied on the lock since then. False, and nothing is done, when too little time
    /// is left.
    fn update(&mut self, guard: &MutexGuard, since: &mut u64) -> bool {
        let value = counter(self.directory) + 1;
        thread::sleep(self.random.up_to(Duration::from_millis(3)));
        // From the look to the write there is no long pause.
        let gate = self.writing.read().unwrap();
        if guard.remaining() < NEEDED {
            return false;
        }
        fs::write(self.directory.join("new"), value.to_string()).unwrap();
        let renamed = fs::rename(self.directory.join("new"), self.directory.join("counter"));
        renamed.expect("the file that was just written, which only another holder could have taken away");
        let end = now();
        drop(gate);
        self.log.done(Interval { start: *since, end, value });
        *since = end;
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
                let (handle, patience) = (CancelHandle::new(), self.random.up_to(Duration::from_millis(100)));
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
                // The guard and the observer say how it ended.
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
                assert!(lost.recv_timeout(REPORT_DELAY).is_ok(), "a lease has ended, and no loss was reported");
                self.log.say("given up: the guard's channel reported the loss");
            }
            assert!(guard.remaining().is_zero(), "a lease that had ended goes on");
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
            Event::Extended { is_automatic: true, .. } => "extended by the watchdog",
            Event::Extended { .. } => "extended by hand",
            Event::ExtensionFailed { .. } => "extension failed",
            Event::Lost { reason: LossReason::KeyGone, .. } => "loss reported: the key is gone",
            Event::Lost { .. } => "loss reported: the lease ended",
            Event::NodeDown { .. } => "node down",
            Event::NodeQuarantined { .. } => "node quarantined",
            Event::NodeUp { .. } => "node up",
            Event::Repaired { .. } => "key repaired",
            _ => return,
        });
    }
}
