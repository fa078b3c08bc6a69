//! The library's module of this name, on locks and threads that a scheduler controls.

pub(crate) use crate::time::{Condvar, spawn};
pub(crate) use shuttle::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use shuttle::sync::{Mutex, MutexGuard};
pub(crate) use shuttle::thread::{JoinHandle, yield_now};

pub(crate) fn is_current(thread: &JoinHandle<()>) -> bool {
    thread.thread().id() == shuttle::thread::current().id()
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

/// No callback is called here.
pub(crate) fn is_in_callback() -> bool {
    false
}

pub(crate) fn set_in_callback(_is_in_callback: bool) {}
