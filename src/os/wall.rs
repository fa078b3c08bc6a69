//! The wall clock, where a time must mean the same on other machines.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time since 1970. None before that.
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
