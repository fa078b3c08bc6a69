//! The locks and threads of this library, as all of it uses them.
//!
//! The hand-over of driving is written against the names in this module alone, so that a model checker can put its own
//! locks in their place.

use std::sync::PoisonError;
pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread::yield_now;

/// Locks, also after a panic elsewhere: what these mutexes protect is consistent whenever no call is running, and a lock
/// that is still held must be released even by a program that is falling apart.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps signals away from the calling thread, which is the library's own: they are the host program's business.
pub(crate) fn block_signals() {
    #[cfg(unix)]
    {
        // Fails only for a malformed set.
        let _ = nix::sys::signal::SigSet::all().thread_block();
    }
}
