//! The library's locks and threads, on shuttle's scheduler, or Miri's.

#[cfg(miri)]
#[path = "../shuttle.rs"]
mod shuttle;

#[cfg(not(miri))]
use std::cell::RefCell;
use std::io;
use std::sync::{Arc, LockResult};
use std::time::Duration;

pub(crate) use shuttle::sync::{Mutex, MutexGuard};
pub(crate) use shuttle::thread::{JoinHandle, yield_now};

#[cfg(not(miri))]
thread_local! {
    /// All threads of a model share one thread of the operating system.
    static TIME: RefCell<Time> = RefCell::default();
}

/// Miri's threads do not, and it runs one model at a time.
#[cfg(miri)]
static TIME: std::sync::Mutex<Time> = std::sync::Mutex::new(Time {
    passed: Duration::ZERO,
    limited: Vec::new(),
});

fn with_time<R>(act: impl FnOnce(&mut Time) -> R) -> R {
    #[cfg(not(miri))]
    return TIME.with_borrow_mut(act);
    #[cfg(miri)]
    return act(&mut TIME.lock().unwrap());
}

/// The time that has passed, and what threads sleep on for a limited time.
#[derive(Default)]
struct Time {
    passed: Duration,
    limited: Vec<Arc<shuttle::sync::Condvar>>,
}

/// A model begins in which time passes.
pub(crate) fn begin() {
    with_time(|time| *time = Time::default());
}

/// Lets this time pass: all limited sleeps end.
pub(crate) fn pass(more: Duration) {
    let limited = with_time(|time| {
        time.passed += more;
        time.limited.clone()
    });
    limited.iter().for_each(|condvar| condvar.notify_all());
    shuttle::thread::yield_now();
}

/// The time that was let pass.
pub(crate) fn passed() -> Duration {
    with_time(|time| time.passed)
}

/// The library's condition variable: shuttle's, on which a sleep ends early where time
/// [passes](pass).
#[derive(Default)]
pub(crate) struct Condvar(Arc<shuttle::sync::Condvar>);

impl Condvar {
    pub(crate) fn new() -> Condvar {
        Condvar::default()
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.0.wait(guard)
    }

    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        _: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        with_time(|time| time.limited.push(Arc::clone(&self.0)));
        let guard = self.0.wait(guard);
        with_time(|Time { limited, .. }| {
            let mine = limited
                .iter()
                .position(|condvar| Arc::ptr_eq(condvar, &self.0));
            mine.map(|index| limited.swap_remove(index));
        });
        guard
            .map(|guard| (guard, ()))
            .map_err(|_| unreachable!("no thread goes on after a panic"))
    }
}

/// No callback is called here.
pub(crate) fn is_in_callback() -> bool {
    false
}

pub(crate) fn set_in_callback(_is_in_callback: bool) {}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

pub(crate) fn spawn(
    _name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    Ok(shuttle::thread::spawn(work))
}

pub(crate) fn is_current(thread: &JoinHandle<()>) -> bool {
    thread.thread().id() == shuttle::thread::current().id()
}

/// The clocks of the models do not advance.
pub(crate) struct ForkSafeSpinLock;

impl ForkSafeSpinLock {
    pub(crate) const fn new() -> ForkSafeSpinLock {
        ForkSafeSpinLock
    }

    pub(crate) fn pass<R>(&self, act: impl FnOnce() -> R) -> R {
        act()
    }
}
