//! Time as the model has it: it stands still while the watchdog's thread has something to do, and jumps when it sleeps.
//!
//! Threads sleep on the [`Condvar`] below until they are rung or their moment comes. Whoever plays the clock calls
//! [`tick`] again and again; the time moves on to the first moment that somebody sleeps for. *Punctual* threads, which are
//! those that the library starts, are never late: while one of them is awake, no time passes. So what such a thread does
//! too late, it does too late because it slept, and slept because nobody rang. All other threads are as slow as the
//! scheduler wants them to be.
//!
//! All threads of a model share one thread of the operating system, and change places only where shuttle's own types are
//! called. So a thread-local variable is what they all see, and nobody comes between while it is borrowed.

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
    bell: Arc<shuttle::sync::Condvar>,
    is_punctual: bool,
    /// It has been rung, and has not come yet.
    is_rung: bool,
}

/// What to call before a model begins: each begins at the origin, with nobody asleep.
pub(crate) fn begin() {
    TIME.with(|time| *time.borrow_mut() = Time::default());
}

/// The present time.
pub(crate) fn now() -> Timestamp {
    TIME.with(|time| time.borrow().now)
}

/// The present time by the lease clock, which goes on as the other does: no one sets the wall clock here.
pub(crate) fn lease_now() -> LeaseTime {
    readings(now()).lease
}

/// What both clocks show then.
pub(crate) fn readings(now: Timestamp) -> Readings {
    Readings { steady: now, lease: LeaseTime::from_nanos(now.as_nanos()) }
}

/// The present time, which is never the same again, as with a clock of nanoseconds: of two readings, one is the earlier.
pub(crate) fn moment() -> Timestamp {
    TIME.with(|time| {
        let time = &mut *time.borrow_mut();
        time.now = time.now.after(Duration::from_nanos(1));
        time.now
    })
}

/// Whether nothing happens any more before time goes on: all punctual threads sleep, and nobody has rung them.
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

/// Lets the time move on to the first moment that somebody sleeps for, if it may.
pub(crate) fn tick() {
    let bells: Vec<_> = TIME.with(|time| {
        let time = &mut *time.borrow_mut();
        if time.is_quiet()
            && let Some(next) = time.sleepers.iter().map(|sleeper| sleeper.until).min()
            && next < Timestamp::NEVER
        {
            time.now = time.now.max(next);
            let due = time.sleepers.iter_mut().filter(|sleeper| sleeper.until <= next);
            due.for_each(|sleeper| sleeper.is_rung = true);
        }
        // Also those who were rung on their way to sleep: they cannot have heard it, and look again.
        time.sleepers.iter().filter(|sleeper| sleeper.is_rung).map(|sleeper| Arc::clone(&sleeper.bell)).collect()
    });
    bells.iter().for_each(|bell| bell.notify_all());
    shuttle::thread::yield_now();
}

/// Sleeps until then, or later.
pub(crate) fn sleep_until(until: Timestamp) {
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    let mut guard = mutex.lock().unwrap();
    while now() < until {
        guard = condvar.wait_timeout(guard, until.since(now())).unwrap().0;
    }
}

impl Time {
    fn is_quiet(&self) -> bool {
        let asleep = self.sleepers.iter().filter(|sleeper| sleeper.is_punctual && !sleeper.is_rung).count();
        self.still == 0 && asleep == self.punctual.len()
    }
}

/// The library's condition variable: shuttle's, with a limit in simulated time.
pub(crate) struct Condvar(Arc<shuttle::sync::Condvar>);

impl Condvar {
    pub(crate) fn new() -> Condvar {
        Condvar(Arc::new(shuttle::sync::Condvar::new()))
    }

    pub(crate) fn notify_all(&self) {
        self.note_rung();
        self.0.notify_all();
    }

    /// At most one thread ever sleeps on what the library rings for one.
    pub(crate) fn notify_one(&self) {
        assert!(self.note_rung() <= 1);
        self.0.notify_one();
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
                bell: Arc::clone(&self.0),
                is_punctual: all.punctual.contains(&me),
                is_rung: false,
            });
            all.last_id
        });
        let guard = self.0.wait(guard);
        TIME.with(|all| all.borrow_mut().sleepers.retain(|sleeper| sleeper.id != id));
        guard.map(|guard| (guard, ())).map_err(|_| unreachable!("nobody panics and goes on"))
    }

    fn note_rung(&self) -> usize {
        TIME.with(|time| {
            let sleepers = &mut time.borrow_mut().sleepers;
            let here = sleepers.iter_mut().filter(|sleeper| Arc::ptr_eq(&sleeper.bell, &self.0));
            here.map(|sleeper| sleeper.is_rung = true).count()
        })
    }
}

/// Starts a thread of the library's: one of shuttle's, and punctual.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let still = stand_still();
    shuttle::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let me = current().id();
        TIME.with(|time| time.borrow_mut().punctual.insert(me));
        drop(still);
        work();
        TIME.with(|time| time.borrow_mut().punctual.remove(&me));
    })
}
