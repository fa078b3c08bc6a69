//! Whether a client is being shut down, and the counts of what a shutdown waits for that no queue
//! of the client's threads contains.
//!
//! No call escapes a shutdown. A shutdown first stores that it has begun, then looks at the queues
//! and the counts. A call first enters its queue or its count, and becomes the holder of what it
//! has acquired, and then asks whether a shutdown has begun. So the call sees the shutdown, or the
//! shutdown sees the call.

use crate::algorithm::time::Timestamp;
use crate::engine::watchdog_thread::CLOCK_CHECK_INTERVAL;
use crate::os::fork::ForkEpoch;
use crate::os::sync::{Condvar, Mutex, lock};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The shutdown of one client.
pub(crate) struct ShutdownState {
    created_in: ForkEpoch,
    has_begun: AtomicBool,
    /// Calls for locks that are in no queue.
    calls: AtomicUsize,
    /// Locks that are held to read. The queues contain the holders of all others.
    reads: AtomicUsize,
    mutex: Mutex<()>,
    has_ended: Condvar,
}

/// A call for a lock, until it returns.
pub(crate) struct CallInProgress<'s> {
    state: &'s ShutdownState,
    is_counted: bool,
}

impl ShutdownState {
    pub(crate) fn new(created_in: ForkEpoch) -> ShutdownState {
        ShutdownState {
            created_in,
            has_begun: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            mutex: Mutex::new(()),
            has_ended: Condvar::new(),
        }
    }

    /// No lock is granted from now on.
    pub(crate) fn begin(&self) {
        self.has_begun.store(true, Ordering::SeqCst);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst)
    }

    /// A call for a lock begins. `is_counted`: it enters no queue.
    pub(crate) fn begin_call(&self, is_counted: bool) -> CallInProgress<'_> {
        if is_counted {
            self.calls.fetch_add(1, Ordering::SeqCst);
        }
        CallInProgress {
            state: self,
            is_counted,
        }
    }

    /// How many calls are in no queue.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// A lock is held to read from now on.
    pub(crate) fn begin_read(&self) {
        self.reads.fetch_add(1, Ordering::SeqCst);
    }

    /// How many locks are held to read.
    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    /// A lock is held no more, and its release is queued.
    pub(crate) fn on_hold_ended(&self, is_read: bool) {
        if is_read {
            self.reads.fetch_sub(1, Ordering::SeqCst);
        }
        self.on_end();
    }

    fn on_end(&self) {
        if self.has_begun() && !self.created_in.is_forked() {
            drop(lock(&self.mutex));
            self.has_ended.notify_all();
        }
    }

    /// Waits until `is_over`, until then at most, and returns whether it is. It is asked again when
    /// a call or a lock has ended.
    pub(crate) fn wait(
        &self,
        until: Timestamp,
        now: impl Fn() -> Timestamp,
        mut is_over: impl FnMut() -> bool,
    ) -> bool {
        let mut guard = lock(&self.mutex);
        while !is_over() {
            let left = until.since(now());
            if left.is_zero() {
                return false;
            }
            // A suspended machine does not count a sleep's time, so a sleep is short and the clock
            // is read again.
            guard = self
                .has_ended
                .wait_timeout(guard, left.min(CLOCK_CHECK_INTERVAL))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }
}

impl Drop for CallInProgress<'_> {
    fn drop(&mut self) {
        if self.is_counted {
            self.state.calls.fetch_sub(1, Ordering::SeqCst);
        }
        self.state.on_end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const TURNS: usize = if cfg!(miri) { 2 } else { 200 };

    #[test]
    fn a_call_sees_the_shutdown_or_the_shutdown_sees_the_call() {
        for _ in 0..TURNS {
            let state = &ShutdownState::new(ForkEpoch::current().unwrap());
            let (seen, sees) = thread::scope(|scope| {
                let call = scope.spawn(|| {
                    // Neither ends before the shutdown has looked.
                    std::mem::forget(state.begin_call(true));
                    state.begin_read();
                    state.has_begun()
                });
                state.begin();
                let seen = (state.calls(), state.reads());
                (seen, call.join().unwrap())
            });
            assert!(sees || seen == (1, 1), "{seen:?}");
        }
    }
}
