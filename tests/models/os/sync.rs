//! The library's locks and threads, on shuttle's scheduler.

use std::cell::Cell;
use std::io;

pub(crate) use shuttle::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use shuttle::thread::{JoinHandle, yield_now};

thread_local! {
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

pub(crate) fn is_in_callback() -> bool {
    IN_CALLBACK.get()
}

pub(crate) fn set_in_callback(is_in_callback: bool) {
    IN_CALLBACK.set(is_in_callback);
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

pub(crate) fn spawn(_name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Ok(shuttle::thread::spawn(work))
}

pub(crate) fn is_current(thread: &JoinHandle<()>) -> bool {
    thread.thread().id() == shuttle::thread::current().id()
}

/// The clocks of the models stand still.
pub(crate) struct ForkSafeSpinLock;

impl ForkSafeSpinLock {
    pub(crate) const fn new() -> ForkSafeSpinLock {
        ForkSafeSpinLock
    }

    pub(crate) fn pass<R>(&self, act: impl FnOnce() -> R) -> R {
        act()
    }
}
