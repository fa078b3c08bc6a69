//! Time as the model has it: it stops while the watchdog's thread has something to do, and jumps
//! when it sleeps.
//!
//! Threads sleep on the [`Condvar`] below until they are notified or their time comes. The
//! observing thread calls [`tick`] again and again; time moves on to the first moment for which a
//! thread sleeps. *Punctual* threads, which are those that the library starts, are never late:
//! while one of them is awake, no time passes. So what such a thread does too late, it does too
//! late because it slept, and it slept because no notification came. All other threads are as slow
//! as the scheduler makes them.
//!
//! All threads of a model share one thread of the operating system, and switch only where shuttle's
//! own types are called. So all of them see the same thread-local variable, and no other thread
//! runs while it is borrowed.

use quorumlock::algorithm::time::{LeaseTime, Readings, Timestamp};
use shuttle::sync::{Mutex, MutexGuard};
use shuttle::thread::{JoinHandle, ThreadId, current};
use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::sync::{Arc, LockResult};
use std::time::Duration;

thread_local! {
    static TIME: RefCell<Time> = RefCell::default();
}

#[derive(Default)]
struct Time {
    now: Timestamp,
    punctual: HashSet<ThreadId>,
    /// Why no time passes, though all punctual threads sleep.
    still: usize,
    sleepers: Vec<Sleeper>,
    last_id: u64,
}

struct Sleeper {
    id: u64,
    until: Timestamp,
    condvar: Arc<shuttle::sync::Condvar>,
    is_punctual: bool,
    /// It has been notified, and has not woken yet.
    is_notified: bool,
}

/// What to call before a model begins: each begins at the origin, with no thread asleep.
pub(crate) fn begin() {
    TIME.with(|time| *time.borrow_mut() = Time::default());
}

/// The present time.
pub(crate) fn now() -> Timestamp {
    TIME.with(|time| time.borrow().now)
}

/// The present time by the lease clock, which goes on as the other does: no one sets the wall clock
/// here.
pub(crate) fn lease_now() -> LeaseTime {
    readings(now()).lease
}

/// What both clocks show then.
pub(crate) fn readings(now: Timestamp) -> Readings {
    Readings {
        steady: now,
        lease: LeaseTime::from_nanos(now.as_nanos()),
    }
}

/// The present time, which is never the same again, as with a clock of nanoseconds: of two
/// readings, one is the earlier.
pub(crate) fn moment() -> Timestamp {
    TIME.with(|time| {
        let time = &mut *time.borrow_mut();
        time.now = time.now.after(Duration::from_nanos(1));
        time.now
    })
}

/// Whether nothing happens any more before time goes on: all punctual threads sleep, and none has
/// been notified.
pub(crate) fn is_quiet() -> bool {
    TIME.with(|time| time.borrow().is_quiet())
}

/// Keeps time from passing until this is dropped.
pub(crate) fn stand_still() -> Still {
    TIME.with(|time| time.borrow_mut().still += 1);
    Still
}

pub(crate) struct Still;

impl Drop for Still {
    fn drop(&mut self) {
        TIME.with(|time| time.borrow_mut().still -= 1);
    }
}

/// Lets time move on to the first moment for which a thread sleeps, if it may.
pub(crate) fn tick() {
    let condvars: Vec<_> = TIME.with(|time| {
        let time = &mut *time.borrow_mut();
        if time.is_quiet()
            && let Some(next) = time.sleepers.iter().map(|sleeper| sleeper.until).min()
            && next < Timestamp::NEVER
        {
            time.now = time.now.max(next);
            let due = time
                .sleepers
                .iter_mut()
                .filter(|sleeper| sleeper.until <= next);
            due.for_each(|sleeper| sleeper.is_notified = true);
        }
        // Also the threads that were notified on their way to sleep: they missed it, and check
        // again.
        time.sleepers
            .iter()
            .filter(|sleeper| sleeper.is_notified)
            .map(|sleeper| Arc::clone(&sleeper.condvar))
            .collect()
    });
    condvars.iter().for_each(|condvar| condvar.notify_all());
    shuttle::thread::yield_now();
}

/// Sleeps until then, or later.
pub(crate) fn sleep_until(until: Timestamp) {
    let mutex = Mutex::new(());
    let condvar = Condvar::new();
    let mut guard = mutex.lock().unwrap();
    while now() < until {
        guard = condvar.wait_timeout(guard, until.since(now())).unwrap().0;
    }
}

impl Time {
    fn is_quiet(&self) -> bool {
        let asleep = self
            .sleepers
            .iter()
            .filter(|sleeper| sleeper.is_punctual && !sleeper.is_notified)
            .count();
        self.still == 0 && asleep == self.punctual.len()
    }
}

/// The library's condition variable: shuttle's, with a limit in simulated time.
#[derive(Default)]
pub(crate) struct Condvar(Arc<shuttle::sync::Condvar>);

impl Condvar {
    pub(crate) fn new() -> Condvar {
        Condvar(Arc::new(shuttle::sync::Condvar::new()))
    }

    pub(crate) fn notify_all(&self) {
        self.note_notified();
        self.0.notify_all();
    }

    /// At most one thread ever sleeps on what the library notifies once.
    pub(crate) fn notify_one(&self) {
        assert!(self.note_notified() <= 1);
        self.0.notify_one();
    }

    /// Without a limit threads wait for a guard that is shared, and none is here.
    pub(crate) fn wait<'a, T>(&self, _: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        unreachable!("no guard is shared")
    }

    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        if time.is_zero() {
            return Ok((guard, ()));
        }
        let me = current().id();
        let id = TIME.with(|all| {
            let all = &mut *all.borrow_mut();
            all.last_id += 1;
            all.sleepers.push(Sleeper {
                id: all.last_id,
                until: all.now.after(time),
                condvar: Arc::clone(&self.0),
                is_punctual: all.punctual.contains(&me),
                is_notified: false,
            });
            all.last_id
        });
        let guard = self.0.wait(guard);
        TIME.with(|all| all.borrow_mut().sleepers.retain(|sleeper| sleeper.id != id));
        guard
            .map(|guard| (guard, ()))
            .map_err(|_| unreachable!("no thread goes on after a panic"))
    }

    fn note_notified(&self) -> usize {
        TIME.with(|time| {
            let sleepers = &mut time.borrow_mut().sleepers;
            let here = sleepers
                .iter_mut()
                .filter(|sleeper| Arc::ptr_eq(&sleeper.condvar, &self.0));
            here.map(|sleeper| sleeper.is_notified = true).count()
        })
    }
}

/// Starts a thread of the library's: one of shuttle's, and punctual.
pub(crate) fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let still = stand_still();
    shuttle::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let me = current().id();
            TIME.with(|time| time.borrow_mut().punctual.insert(me));
            drop(still);
            work();
            TIME.with(|time| time.borrow_mut().punctual.remove(&me));
        })
}
