//! The locks and threads of this library, as all of it uses them.
//!
//! The hand-over of driving and the automatic extension are written against the names in this
//! module alone, so that a model checker can put its own locks and threads in their place.

use crate::os::fork::ForkEpoch;
use std::cell::Cell;
use std::io;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread::{JoinHandle, yield_now};

thread_local! {
    /// Whether this thread is in a callback of the program's, of whichever client.
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in a callback of the program's.
pub(crate) fn is_in_callback() -> bool {
    IN_CALLBACK.get()
}

/// Notes that this thread is in a callback of the program's, or is not any more.
pub(crate) fn set_in_callback(is_in_callback: bool) {
    IN_CALLBACK.set(is_in_callback);
}

/// Locks, also after a panic elsewhere: what these mutexes protect is consistent whenever no call
/// is running, and a lock that is still held must be released even by a program that panics.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread of the library's own. No signal reaches it, not even as it starts: they are the
/// host program's business.
///
/// # Errors
/// The system does not start a thread.
pub(crate) fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
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

/// Whether the thread is the one that asks.
#[cfg(unix)]
pub(crate) fn is_current(thread: &JoinHandle<()>) -> bool {
    use std::os::unix::thread::JoinHandleExt;
    // Not by `thread::current`: that leaves a note of the thread that asks, and of a main thread
    // that is not Rust's for ever.
    thread.as_pthread_t() == nix::sys::pthread::pthread_self()
}

/// Whether the thread is the one that asks.
#[cfg(not(unix))]
pub(crate) fn is_current(thread: &JoinHandle<()>) -> bool {
    thread.thread().id() == std::thread::current().id()
}

/// Keeps other threads out for a few instructions. In a child of `fork`, a mutex stays locked if a
/// thread held it that did not fork; this lock does not. What that thread left half done must do no
/// harm.
pub(crate) struct ForkSafeSpinLock {
    /// The number of its fork epoch while a thread is inside, otherwise zero.
    inside: AtomicUsize,
}

impl ForkSafeSpinLock {
    pub(crate) const fn new() -> ForkSafeSpinLock {
        ForkSafeSpinLock {
            inside: AtomicUsize::new(0),
        }
    }

    /// Does something that is short, and cannot panic, while no other thread of this process does.
    pub(crate) fn pass<R>(&self, act: impl FnOnce() -> R) -> R {
        let here = ForkEpoch::known().number();
        loop {
            let inside = self.inside.load(Ordering::Relaxed);
            // A thread of another fork epoch is not in this process.
            let is_free = inside != here;
            if is_free
                && self
                    .inside
                    .compare_exchange(inside, here, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                break;
            }
            yield_now();
        }
        let result = act();
        self.inside.store(0, Ordering::Release);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each of four threads passes.
    const TURNS: usize = if cfg!(miri) { 5 } else { 5000 };

    #[test]
    fn one_thread_at_a_time_passes() {
        let spin_lock = ForkSafeSpinLock::new();
        let count = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..TURNS {
                        spin_lock.pass(|| {
                            let before = count.load(Ordering::Relaxed);
                            yield_now();
                            count.store(before + 1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 4 * TURNS);
    }

    #[test]
    fn a_thread_that_stayed_with_the_parent_blocks_no_lock() {
        let spin_lock = ForkSafeSpinLock {
            inside: AtomicUsize::new(ForkEpoch::of_a_parent().number()),
        };
        assert_eq!(
            spin_lock.pass(|| spin_lock.inside.load(Ordering::Relaxed)),
            ForkEpoch::current().unwrap().number()
        );
        assert_eq!(spin_lock.inside.into_inner(), 0);
    }
}
