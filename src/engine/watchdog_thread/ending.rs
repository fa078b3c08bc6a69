//! The end of a client, and of its watchdog's thread.

use super::last_events::report_last_events;
use super::{CLOCK_CHECK_INTERVAL, Schedule, WatchdogThread};
use crate::os::sync::{MutexGuard, is_current, lock};
use std::sync::PoisonError;

impl Drop for WatchdogThread {
    /// Ends the thread, and waits for that: for the answers to its last batch, and for callbacks
    /// for one node timeout.
    fn drop(&mut self) {
        let mut schedule = lock(&self.shared.schedule);
        schedule.closing = true;
        self.shared.changed.notify_one();
        // A callback of the observer may drop the last handle on this very thread, which ends after
        // the callback.
        if let Some(thread) = schedule.thread.take().filter(|thread| !is_current(thread)) {
            if self.has_ended(schedule) {
                // The thread does not panic, and a drop is no place to pass a panic on.
                let _ = thread.join();
            } else {
                // It has a handle on the engine, which would end with the callback.
                self.engine.end();
            }
        } else {
            drop(schedule);
        }
        report_last_events(&self.report, &self.engine);
    }
}

impl WatchdogThread {
    /// Whether this is the thread, in a callback: while that runs, no lock is extended.
    pub(crate) fn is_current(&self) -> bool {
        let schedule = lock(&self.shared.schedule);
        schedule.thread.as_ref().is_some_and(is_current)
    }

    /// Waits for the end of the thread. False when it is in a callback that takes longer than a
    /// node timeout.
    fn has_ended(&self, mut schedule: MutexGuard<'_, Schedule>) -> bool {
        let mut deadline = None;
        while !schedule.has_ended {
            let now = self.engine.now();
            let until = if schedule.is_reporting {
                *deadline.get_or_insert(now.after(self.engine.node_timeout()))
            } else {
                now.after(CLOCK_CHECK_INTERVAL)
            };
            if now >= until {
                return false;
            }
            let slept = self.shared.noted.wait_timeout(schedule, until.since(now));
            schedule = slept.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}
