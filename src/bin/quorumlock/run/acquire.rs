//! Takes the locks, and stops waiting when a signal arrives.

use super::events::Events;
use super::options::Options;
use super::signals::{Received, Signals};
use super::suspend::Suspension;
use crate::deployment::Deployment;
use crate::exit::Failure;
use crate::locks::survey::Survey;
use crate::locks::verdict::{State, Verdict};
use crate::report;
use nix::sys::signal::Signal;
use quorumlock::kind::Any;
use quorumlock::{
    CancelHandle, ErrorKind, Mutex, MutexGuard, Redlock, ReleaseOutcome, Wait, Watchdog,
};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{PipeReader, pipe};
use std::thread;
use std::time::{Duration, Instant};

/// How many attempts are made while no program gets a majority.
const ATTEMPTS: usize = 20;
/// Longest pause between two of them.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// How long a wait lasts at most until the library names a key that has no expiry, in node
/// timeouts: it is sure after two attempts that are one of them apart.
const NAMING_TIMEOUTS: u32 = 5;

/// How the wait for the locks ended.
pub(super) enum Acquired {
    All(Held),
    /// Another client holds this one.
    HeldElsewhere(String),
    /// A signal came first.
    Stopped(Signal),
}

/// The locks under which the command runs.
///
/// After a command has run, [`release`](Held::release) ends them, and they stay for `--min-hold`. A
/// drop releases them at once: no command has run, and another machine may begin.
pub(super) struct Held {
    pub(super) guards: Vec<MutexGuard<Any>>,
    redlock: Redlock,
}

impl Held {
    /// For how long all of them may still be relied on.
    pub(super) fn remaining(&self) -> Duration {
        self.guards
            .iter()
            .map(MutexGuard::remaining)
            .min()
            .unwrap_or_default()
    }

    /// Releases the locks, the last first. Each of them remains held for as long as `--min-hold`
    /// asks for. Whether one was lost.
    pub(super) fn release(mut self, events: &Events) -> bool {
        let mut is_lost = false;
        for guard in std::mem::take(&mut self.guards).into_iter().rev() {
            match guard.unlock() {
                Ok(outcome) => is_lost |= outcome == ReleaseOutcome::Expired,
                Err(error) => {
                    let Failure { message, .. } = error.into();
                    events.say(&format!("{message}; the lock ends with its time to live"));
                }
            }
        }
        is_lost
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for guard in self.guards.drain(..).rev() {
            // A guard that is attached has no minimum hold. A lease that has ended needs no
            // release.
            drop(
                guard
                    .detach()
                    .and_then(|lease| self.redlock.attach(lease))
                    .map(MutexGuard::unlock),
            );
        }
    }
}

/// What the locks are taken for, and by what.
pub(super) struct Job<'j> {
    pub(super) options: &'j Options,
    pub(super) deployment: &'j Deployment,
    pub(super) redlock: &'j Redlock,
    pub(super) signals: &'j Signals,
    pub(super) events: &'j Events,
    pub(super) ttl: Duration,
    /// How long before the end of a lost lease the command is asked to stop.
    pub(super) grace: Duration,
}

/// A signal that has arrived and ends a wait. One that stops this program waits until the command
/// has been started.
pub(super) fn arrived(signals: &Signals) -> Option<Signal> {
    let received: Vec<Received> = std::iter::from_fn(|| signals.take()).collect();
    received
        .iter()
        .filter(|received| received.suspends())
        .for_each(|received| _ = Suspension::of(received.signal));
    received
        .iter()
        .find(|received| received.stops())
        .map(|received| received.signal)
}

/// Attempts to take a lock without waiting for a holder. Of programs that try at the same moment,
/// it can be that none gets a majority. Then nothing is held, and another attempt follows after a
/// random time.
fn attempt(
    mutex: &Mutex<Any>,
    keys: &[String],
    survey: impl Fn() -> Survey,
    naming: &Wait,
    cancel: &CancelHandle,
) -> quorumlock::Result<Option<MutexGuard<Any>>> {
    for _ in 0..ATTEMPTS {
        if let Some(guard) = mutex.try_lock()? {
            return Ok(Some(guard));
        }
        let survey = survey();
        if is_endless(&survey, keys) {
            return mutex.lock_with(naming);
        }
        let is_free = |key: &String| {
            !matches!(
                Verdict::of(&survey, key).state,
                State::Held | State::Unknown
            )
        };
        if cancel.is_cancelled() || !keys.iter().any(is_free) {
            return Ok(None);
        }
        // Without entropy, programs that started together stay together for longer.
        let random = getrandom::u32().unwrap_or_default();
        thread::sleep(LONGEST_PAUSE.mul_f64(f64::from(random) / f64::from(u32::MAX)));
    }
    Ok(None)
}

/// Whether a majority has each of the keys without an expiry.
fn is_endless(survey: &Survey, keys: &[String]) -> bool {
    keys.iter().all(|key| {
        let seen = survey.sightings(key).filter_map(|seen| seen.ok()?);
        seen.filter(|seen| seen.expires_in.is_none()).count() >= survey.quorum()
    })
}

impl Job<'_> {
    /// Takes all locks in their order.
    ///
    /// # Errors
    /// Too few nodes answered, or a setting cannot be used.
    pub(super) fn acquire(&self) -> Result<Acquired, Failure> {
        let cancel = CancelHandle::new();
        let (over, running) = pipe().map_err(Failure::system("make a pipe"))?;
        let (taken, stopped) = thread::scope(|scope| {
            let watch = || {
                report::with_progress(
                    || format!("waiting for {}", self.options.names.join(", ")),
                    |text| self.events.write_wanted(text),
                    || self.watch(&over, &cancel),
                )
            };
            let watcher = thread::Builder::new()
                .name("signals".to_owned())
                .spawn_scoped(scope, watch)
                .map_err(Failure::system("start a thread"))?;
            let taken = self.take(&cancel);
            drop(running);
            Ok::<_, Failure>((taken, watcher.join().ok().flatten()))
        })?;
        // One that arrived after the watcher's last look, and before the child.
        if let Some(signal) = stopped.or_else(|| arrived(self.signals)) {
            return Ok(Acquired::Stopped(signal));
        }
        Ok(taken?)
    }

    fn take(&self, cancel: &CancelHandle) -> quorumlock::Result<Acquired> {
        let limit = self.options.lock.limit();
        // Far times are as good as none.
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        let wait = end
            .map_or_else(Wait::unlimited, Wait::deadline)
            .cancelled_by(cancel);
        let naming_time = self
            .deployment
            .settings()
            .node_timeout
            .saturating_mul(NAMING_TIMEOUTS);
        // A key that never expires is an error, also for a program that does not wait for long.
        let naming = Wait::timeout(naming_time).cancelled_by(cancel);
        let mut held = Held {
            guards: Vec::new(),
            redlock: self.redlock.clone(),
        };
        for name in &self.options.names {
            let mutex = self.mutex(name);
            let keys = mutex.keys();
            let survey = || Survey::of_keys(self.deployment, &keys);
            let guard = match limit {
                Some(Duration::ZERO) => attempt(&mutex, &keys, survey, &naming, cancel),
                Some(limit) if limit < naming_time => match mutex.lock_with(&wait) {
                    Ok(None) if is_endless(&survey(), &keys) => mutex.lock_with(&naming),
                    result => result,
                },
                _ => mutex.lock_with(&wait),
            };
            match guard {
                Ok(Some(guard)) => held.guards.push(guard),
                Ok(None) => return Ok(Acquired::HeldElsewhere(name.clone())),
                // The watcher knows the signal.
                Err(error) if error.kind() == ErrorKind::Cancelled => {
                    return Ok(Acquired::Stopped(Signal::SIGTERM));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Acquired::All(held))
    }

    fn mutex(&self, name: &str) -> Mutex<Any> {
        let lock = &self.options.lock;
        let watchdog = Watchdog::new().notify_before(self.grace);
        let watchdog = if lock.no_extend {
            watchdog.max_extensions(0)
        } else {
            watchdog
        };
        let mutex = match lock.permits {
            Some(permits) => self.redlock.semaphore(name, permits.into()).erase(),
            None if lock.read => self.redlock.read_mutex(name).erase(),
            None if lock.write && lock.fenced => self.redlock.write_mutex(name).fenced().erase(),
            None if lock.write => self.redlock.write_mutex(name).erase(),
            None => {
                let mutex = self.redlock.mutex(name);
                let mutex = if lock.fair { mutex.fair() } else { mutex };
                if lock.fenced {
                    mutex.fenced().erase()
                } else {
                    mutex.erase()
                }
            }
        };
        mutex
            .ttl(self.ttl)
            .watchdog(watchdog)
            .min_hold(lock.min_hold)
    }

    /// Waits for a signal that ends the wait, and cancels it; stops the program meanwhile for job
    /// control. Ends when the other end of `over` is closed.
    fn watch(&self, over: &PipeReader, cancel: &CancelHandle) -> Option<Signal> {
        loop {
            let mut ready = [
                PollFd::new(self.signals, PollFlags::IN),
                PollFd::new(over, PollFlags::IN),
            ];
            let polled = poll(&mut ready, None);
            let is_over = polled.is_ok() && !ready[1].revents().is_empty();
            while let Some(received) = self.signals.take() {
                if received.stops() {
                    cancel.cancel();
                    return Some(received.signal);
                }
                if received.suspends() {
                    Suspension::of(received.signal).stop();
                }
            }
            if is_over {
                return None;
            }
        }
    }
}
