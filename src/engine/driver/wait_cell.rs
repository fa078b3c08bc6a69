//! Wait slots: what a thread sleeps on until it has its verdict.

use crate::os::sync::{Condvar, Mutex, lock};
use std::sync::PoisonError;
use std::time::Duration;

/// What one thread sleeps on. A verdict is stored before the notification, and the thread takes it from here without
/// another lock.
pub(super) struct WaitCell<V> {
    state: Mutex<CellState<V>>,
    signal: Condvar,
}

struct CellState<V> {
    verdict: Option<V>,
    /// The thread is to look at the connections and rounds itself.
    is_called: bool,
    /// Where the wait is registered, once the submission was begun.
    begun: Option<Begun>,
}

/// How a submission was begun.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    pub(super) waiter: WaitSlot,
    pub(super) has_to_connect: bool,
}

/// A registered waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitSlot(pub(super) u32);

impl<V> WaitCell<V> {
    pub(super) fn new() -> WaitCell<V> {
        let state = CellState { verdict: None, is_called: false, begun: None };
        WaitCell { state: Mutex::new(state), signal: Condvar::new() }
    }

    /// Notes that the submission was begun.
    pub(super) fn begin(&self, begun: Begun) {
        lock(&self.state).begun = Some(begun);
    }

    pub(super) fn begun(&self) -> Option<Begun> {
        lock(&self.state).begun
    }

    /// Stores the verdict, and wakes the thread.
    pub(super) fn decide(&self, verdict: V) {
        lock(&self.state).verdict = Some(verdict);
        self.signal.notify_one();
    }

    /// Wakes the thread to look for itself.
    pub(super) fn call(&self) {
        lock(&self.state).is_called = true;
        self.signal.notify_one();
    }

    /// Sleeps until there is a verdict, the thread is called, or the time is up.
    pub(super) fn wait(&self, time: Duration) -> Option<V> {
        let mut state = lock(&self.state);
        if state.verdict.is_none() && !state.is_called && !time.is_zero() {
            (state, _) = self.signal.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_called = false;
        state.verdict.take()
    }

    /// The verdict, if there is one.
    pub(super) fn take(&self) -> Option<V> {
        lock(&self.state).verdict.take()
    }

    /// Prepares the cell for another wait.
    pub(super) fn reset(&self) {
        *lock(&self.state) = CellState { verdict: None, is_called: false, begun: None };
    }
}
