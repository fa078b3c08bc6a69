//! Which thread extends a held lock, or registers something for its loss: one at a time.
//!
//! ```text
//!             enter
//!   free ◄──────────► in use
//!            drop of InUse
//! ```
//!
//! Others wait for it, also while it is in a callback of the program. A callback that the extension
//! calls on the same thread would wait for itself, and is refused. What only looks at the lock
//! waits for none of them.

use crate::algorithm::time::Timestamp;
use crate::engine::watchdog_thread::CLOCK_CHECK_INTERVAL;
use crate::events::error::{Error, Result, config_error};
use crate::os::sync::{Condvar, Mutex, MutexGuard, lock};
use crate::os::thread_number::ThreadNumber;
use std::sync::PoisonError;
use std::time::Duration;

/// Which thread uses the lock, if one does.
#[derive(Default)]
pub(crate) struct Occupancy {
    user: Mutex<Option<ThreadNumber>>,
    left: Condvar,
}

/// No thread uses the lock, nor begins to while this exists.
pub(crate) struct Free<'o> {
    occupancy: &'o Occupancy,
    user: MutexGuard<'o, Option<ThreadNumber>>,
}

/// The time of a call in which no other thread uses the lock, however it ends.
pub(crate) struct InUse<'o>(&'o Occupancy);

impl Occupancy {
    /// Waits until no other thread uses the lock, until then at most. Without `until`, the call
    /// does not wait.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) when this thread uses it.
    pub(crate) fn free_until(
        &self,
        until: Option<Timestamp>,
        now: impl Fn() -> Timestamp,
    ) -> Result<Option<Free<'_>>> {
        let mut user = lock(&self.user);
        while let Some(by) = *user {
            if by == ThreadNumber::current() {
                return Err(in_callback());
            }
            let left = until.map_or(Duration::ZERO, |until| until.since(now()));
            if left.is_zero() {
                return Ok(None);
            }
            // A suspended machine does not count a sleep's time, so a sleep is short and the clock
            // is read again.
            let time = left.min(CLOCK_CHECK_INTERVAL);
            user = self
                .left
                .wait_timeout(user, time)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        Ok(Some(Free {
            occupancy: self,
            user,
        }))
    }

    /// Waits until no other thread uses the lock.
    ///
    /// # Errors
    /// As [`free_until`](Occupancy::free_until).
    pub(crate) fn free(&self, now: impl Fn() -> Timestamp) -> Result<Free<'_>> {
        self.free_until(Some(Timestamp::NEVER), now)?
            .ok_or_else(in_callback)
    }
}

impl<'o> Free<'o> {
    /// Uses the lock.
    pub(crate) fn enter(mut self) -> InUse<'o> {
        *self.user = Some(ThreadNumber::current());
        InUse(self.occupancy)
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        *lock(&self.0.user) = None;
        self.0.left.notify_all();
    }
}

fn in_callback() -> Error {
    config_error("a lock is used by a callback of its own extension")
}
