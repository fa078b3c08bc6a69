//! The library's locks and threads, on shuttle's scheduler.

use std::io;

pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use shuttle::thread::JoinHandle;

/// No callback is called here.
pub(crate) fn is_in_callback() -> bool {
    false
}

pub(crate) fn set_in_callback(_is_in_callback: bool) {}

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
