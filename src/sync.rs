//! The locks and threads of this library, as all of it uses them.
//!
//! The hand-over of driving is written against the names in this module alone, so that a model checker can put its own
//! locks in their place.

use std::io;
use std::sync::PoisonError;
pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
pub(crate) use std::thread::yield_now;

/// Locks, also after a panic elsewhere: what these mutexes protect is consistent whenever no call is running, and a lock
/// that is still held must be released even by a program that is falling apart.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread of the library's own. No signal reaches it, not even as it starts: they are the host program's
/// business.
///
/// # Errors
/// The system gives no thread.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    #[cfg(unix)]
    {
        use nix::sys::signal::{SigSet, SigmaskHow};
        // A thread begins with the mask of the one that starts it. Fails only for a malformed set.
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
        let spawned = thread.spawn(work);
        if let Ok(before) = before {
            let _ = before.thread_set_mask();
        }
        spawned
    }
    #[cfg(not(unix))]
    thread.spawn(work)
}
