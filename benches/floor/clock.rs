//! The clock that all processes share.

use rustix::time::{ClockId, clock_gettime};

/// The present time, in nanoseconds.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
