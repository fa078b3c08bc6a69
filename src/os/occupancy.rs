//! Which thread uses something that one thread may use at a time.
//!
//! ```text
//!             enter
//!   free ◄──────────► in use
//!            drop of InUse
//! ```
//!
//! Others wait for it, also while it is in a callback of the program. A callback that is called on
//! the same thread meanwhile would wait for itself, and is refused.

use crate::os::fork::ForkEpoch;
use crate::os::sync::{Condvar, Mutex, MutexGuard, lock};
use crate::os::thread_number::ThreadNumber;
use std::sync::PoisonError;
use std::time::Duration;

/// A suspended machine does not count a sleep's time, so a sleep is short and the clock is read
/// again.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Which thread uses it, if one does.
#[derive(Default)]
pub(crate) struct Occupancy {
    user: Mutex<Option<ThreadNumber>>,
    left: Condvar,
}

/// That this thread uses it: it asks in a callback.
#[derive(Debug)]
pub(crate) struct InCallback;

/// No thread uses it, nor begins to while this exists.
pub(crate) struct Free<'o> {
    occupancy: &'o Occupancy,
    user: MutexGuard<'o, Option<ThreadNumber>>,
}

/// The time of a call in which no other thread uses it, however it ends.
pub(crate) struct InUse<'o> {
    occupancy: &'o Occupancy,
    begun_in: ForkEpoch,
}

impl Occupancy {
    /// Waits until no other thread uses it, for as long as `left` returns that there is time. None
    /// if there is none left.
    ///
    /// # Errors
    /// This thread uses it.
    pub(crate) fn free_within(
        &self,
        left: impl Fn() -> Duration,
    ) -> Result<Option<Free<'_>>, InCallback> {
        let mut user = lock(&self.user);
        while let Some(by) = *user {
            if by == ThreadNumber::current() {
                return Err(InCallback);
            }
            let left = left();
            if left.is_zero() {
                return Ok(None);
            }
            user = self
                .left
                .wait_timeout(user, left.min(LONGEST_SLEEP))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        Ok(Some(Free {
            occupancy: self,
            user,
        }))
    }

    /// Waits until no other thread uses it.
    ///
    /// # Errors
    /// This thread uses it.
    pub(crate) fn free(&self) -> Result<Free<'_>, InCallback> {
        self.free_within(|| LONGEST_SLEEP)?.ok_or(InCallback)
    }
}

impl<'o> Free<'o> {
    /// Uses it.
    pub(crate) fn enter(mut self) -> InUse<'o> {
        *self.user = Some(ThreadNumber::current());
        InUse {
            occupancy: self.occupancy,
            begun_in: ForkEpoch::known(),
        }
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        // In a child, another thread of the parent may have the mutex for ever.
        if !self.begun_in.is_forked() {
            *lock(&self.occupancy.user) = None;
            self.occupancy.left.notify_all();
        }
    }
}
