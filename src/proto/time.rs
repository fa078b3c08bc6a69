//! Points in time, as the core sees them: numbers that its caller reads from one of two clocks.
//!
//! | clock | type | what goes by it |
//! |---|---|---|
//! | steady | [`Timestamp`] | waits, node timeouts, back-off, silence and connect limits, quarantines |
//! | lease | [`LeaseTime`] | the validity of locks, and when they are extended |
//!
//! Setting a machine's wall clock does not move the steady clock. So it ends no wait and no quarantine, and no node gets less
//! time to answer. The lease clock also counts what the wall clock gains: it may end a lease too early, never too
//! late. The two types cannot be mixed. [`Readings`] carries both, read at the same time, and is the one place where a time
//! of one clock becomes a time of the other.
//!
//! Nothing under `proto/` reads a clock: `now` is an argument. All arithmetic saturates: a time too far away to count is as
//! far away as can be counted, and nothing here can panic or wrap around.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// A source of times that never run backwards.
pub trait Clock: Send + Sync {
    /// The present time by the steady clock. It goes on while the machine sleeps, where the system has such a clock.
    fn now(&self) -> Timestamp;

    /// The present time by the lease clock.
    fn lease_now(&self) -> LeaseTime;

    /// The present time by both clocks.
    fn readings(&self) -> Readings {
        Readings { steady: self.now(), lease: self.lease_now() }
    }
}

/// Marks times of the steady clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Steady;

/// Marks times of the lease clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Leasing;

/// A time of the steady clock.
pub type Timestamp = Time<Steady>;

/// A time of the lease clock.
pub type LeaseTime = Time<Leasing>;

/// Nanoseconds since an origin that the clock chose. Comparable only with times of the same clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time<C>(u64, PhantomData<C>);

impl<C: Copy> Time<C> {
    /// The clock's origin.
    pub const ORIGIN: Time<C> = Time(0, PhantomData);
    /// Later than anything that will happen.
    pub const NEVER: Time<C> = Time(u64::MAX, PhantomData);

    /// The time so many nanoseconds after the clock's origin.
    pub const fn from_nanos(nanos: u64) -> Time<C> {
        Time(nanos, PhantomData)
    }

    /// Nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time `duration` later, or [`NEVER`](Time::NEVER).
    #[must_use]
    pub fn after(self, duration: Duration) -> Time<C> {
        Time(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)), PhantomData)
    }

    /// The time `duration` earlier, or [`ORIGIN`](Time::ORIGIN).
    #[must_use]
    pub fn before(self, duration: Duration) -> Time<C> {
        Time(self.0.saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)), PhantomData)
    }

    /// How long after `earlier` this is; zero when it is not later.
    pub fn since(self, earlier: Time<C>) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl<C> fmt::Debug for Time<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

/// One moment, as both clocks show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readings {
    /// By the steady clock.
    pub steady: Timestamp,
    /// By the lease clock.
    pub lease: LeaseTime,
}

impl Readings {
    /// What the steady clock shows at a lease time, or showed if that has passed. If the wall clock is set forward before then,
    /// the lease time comes sooner.
    pub fn steady_at(self, lease: LeaseTime) -> Timestamp {
        match lease {
            LeaseTime::NEVER => Timestamp::NEVER,
            _ if lease < self.lease => self.steady.before(self.lease.since(lease)),
            _ => self.steady.after(lease.since(self.lease)),
        }
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

    #[test]
    fn a_lease_time_is_as_far_away_by_the_steady_clock() {
        let now = Readings { steady: Timestamp::from_nanos(5), lease: LeaseTime::from_nanos(1000) };
        let table = [(1007, 12), (1000, 5), (998, 3), (3, 0), (u64::MAX - 1, u64::MAX - 996)];
        for (lease, steady) in table {
            assert_eq!(now.steady_at(LeaseTime::from_nanos(lease)), Timestamp::from_nanos(steady));
        }
        assert_eq!(now.steady_at(LeaseTime::NEVER), Timestamp::NEVER);
    }
}
