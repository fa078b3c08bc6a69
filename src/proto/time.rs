//! Points in time, as the core sees them: numbers that somebody else read from a clock.
//!
//! Nothing under `proto/` reads a clock. Whoever drives it does, and says what `now` is. All arithmetic saturates: a time
//! too far away to count is as far away as can be counted, and nothing here can panic or wrap around.

use std::fmt;
use std::time::Duration;

/// A source of [`Timestamp`]s that never runs backwards.
pub trait Clock: Send + Sync {
    /// The present time.
    fn now(&self) -> Timestamp;

    /// The present time by a clock that nobody can set forward: for what must not end too early, as a lease must not end
    /// too late. Comparable with its own readings only.
    fn steady(&self) -> Timestamp {
        self.now()
    }
}

/// Nanoseconds since an origin that the clock chose. Comparable only with readings of the same clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The clock's origin.
    pub const ORIGIN: Timestamp = Timestamp(0);
    /// Later than anything that will happen.
    pub const NEVER: Timestamp = Timestamp(u64::MAX);

    /// The time so many nanoseconds after the clock's origin.
    pub const fn from_nanos(nanos: u64) -> Timestamp {
        Timestamp(nanos)
    }

    /// Nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time `duration` later, or [`NEVER`](Timestamp::NEVER).
    #[must_use]
    pub fn after(self, duration: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// The time `duration` earlier, or [`ORIGIN`](Timestamp::ORIGIN).
    #[must_use]
    pub fn before(self, duration: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How long after `earlier` this is; zero when it is not later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::from_nanos(5).after(Duration::MAX), Timestamp::NEVER);
        assert_eq!(Timestamp::NEVER.after(Duration::from_nanos(1)), Timestamp::NEVER);
        assert_eq!(Timestamp::from_nanos(5).before(Duration::from_nanos(6)), Timestamp::ORIGIN);
        assert_eq!(Timestamp::NEVER.before(Duration::MAX), Timestamp::ORIGIN);
        assert_eq!(Timestamp::from_nanos(7).before(Duration::from_nanos(3)), Timestamp::from_nanos(4));
        assert_eq!(Timestamp::ORIGIN.since(Timestamp::NEVER), Duration::ZERO);
        assert_eq!(Timestamp::from_nanos(7).since(Timestamp::from_nanos(3)), Duration::from_nanos(4));
    }
}
