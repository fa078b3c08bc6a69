//! Wait cells: what a thread sleeps on until it has its verdict, or is to look for itself.

use crate::os::sync::{Condvar, Mutex, lock};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// What one thread sleeps on, once. What it is woken with is stored before the notification, and
/// the thread takes it from here without another lock.
pub(super) struct WaitCell<V> {
    pub(super) slot: WaitSlot,
    /// Set when the thread is woken: with its verdict, or with none to look at the connections and
    /// rounds itself.
    woken: Mutex<Option<Option<V>>>,
    signal: Condvar,
}

/// The number of a wait cell. No other cell has had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaitSlot(u64);

impl<V> WaitCell<V> {
    pub(super) fn new() -> Arc<WaitCell<V>> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let slot = WaitSlot(NEXT.fetch_add(1, Ordering::Relaxed));
        Arc::new(WaitCell {
            slot,
            woken: Mutex::new(None),
            signal: Condvar::new(),
        })
    }

    /// Wakes the thread: with its verdict, or to look for itself unless it has one by now.
    pub(super) fn wake(&self, verdict: Option<V>) {
        let mut woken = lock(&self.woken);
        if verdict.is_some() || woken.is_none() {
            *woken = Some(verdict);
        }
        drop(woken);
        self.signal.notify_one();
    }

    /// Sleeps until the thread is woken, or the time is up. Returns the verdict, if there is one.
    pub(super) fn wait(&self, time: Duration) -> Option<V> {
        let mut woken = lock(&self.woken);
        if woken.is_none() && !time.is_zero() {
            (woken, _) = self
                .signal
                .wait_timeout(woken, time)
                .unwrap_or_else(PoisonError::into_inner);
        }
        woken.take().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that is named to drive is woken when the mutex is free: it may be decided by then.
    #[test]
    fn a_verdict_stays_when_its_thread_is_woken_to_look() {
        let cell = WaitCell::new();
        cell.wake(None);
        cell.wake(Some(1));
        cell.wake(None);
        assert_eq!(cell.wait(Duration::ZERO), Some(1));
    }
}
