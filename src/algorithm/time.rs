//! Points in time, as the core sees them: numbers that its caller reads from one of two clocks.
//!
//! | clock | type | what goes by it |
//! |---|---|---|
//! | steady | [`Timestamp`] | waits, node timeouts, back-off, silence and connect limits, quarantines |
//! | lease | [`LeaseTime`] | the validity of locks, and when they are extended |
//!
//! Setting a machine's wall clock does not move the steady clock. So it ends no wait and no
//! quarantine, and no node gets less time to answer. The lease clock also counts what the wall
//! clock gains: it may end a lease too early, never too late. The two types cannot be mixed.
//! [`Readings`] carries both, read at the same time, and is the one place where a time of one clock
//! becomes a time of the other.
//!
//! Nothing in [`algorithm`](crate::algorithm) or [`protocol`](crate::protocol) reads a clock: `now`
//! is an argument. All arithmetic saturates: a time too far away to count is as far away as can be
//! counted, and nothing here can panic or wrap around.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// A source of times that never run backwards.
pub trait Clock: Send + Sync {
    /// The present time by the steady clock. It runs while the machine sleeps, where the system has
    /// such a clock.
    fn now(&self) -> Timestamp;

    /// The present time by the lease clock.
    fn lease_now(&self) -> LeaseTime;

    /// The present time by both clocks.
    fn readings(&self) -> Readings {
        Readings {
            steady: self.now(),
            lease: self.lease_now(),
        }
    }
}

/// Marks times of the steady clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Steady;

/// Marks times of the lease clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
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
        Time(
            self.0
                .saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)),
            PhantomData,
        )
    }

    /// The time `duration` earlier, or [`ORIGIN`](Time::ORIGIN).
    #[must_use]
    pub fn before(self, duration: Duration) -> Time<C> {
        Time(
            self.0
                .saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)),
            PhantomData,
        )
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
    /// What the steady clock shows at a lease time, or showed if that has passed. If the wall clock
    /// is set forward before then, the lease time comes sooner.
    pub fn steady_at(self, lease: LeaseTime) -> Timestamp {
        match lease {
            LeaseTime::NEVER => Timestamp::NEVER,
            _ if lease < self.lease => self.steady.before(self.lease.since(lease)),
            _ => self.steady.after(lease.since(self.lease)),
        }
    }
}

/// A duration as an operator reads it: `250 µs`, `1.5 ms`, `58.3 s`, `5 min 10 s`, `1 h 30 min`, `3
/// d`. It is rounded up, so that a remaining time is never shown as nothing, and a limit that is
/// raised to what is shown is high enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Human(pub Duration);

impl fmt::Display for Human {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND: u128 = 1_000_000_000;
        let nanos = self.0.as_nanos();
        // In tenths of a unit, without a needless fraction.
        let mut tenths = |unit: u128, name: &str| match nanos.div_ceil(unit / 10) {
            tenths if tenths % 10 == 0 => write!(f, "{} {name}", tenths / 10),
            tenths => write!(f, "{}.{} {name}", tenths / 10, tenths % 10),
        };
        match nanos {
            1..1_000_000 => write!(f, "{} µs", nanos.div_ceil(1000)),
            1_000_000..SECOND => tenths(1_000_000, "ms"),
            _ if nanos < 120 * SECOND => tenths(SECOND, "s"),
            _ => {
                let seconds = nanos.div_ceil(SECOND);
                let minutes = seconds.div_ceil(60);
                let hours = minutes.div_ceil(60);
                let (greater, unit, less, lesser) = match seconds {
                    0..3600 => (seconds / 60, "min", seconds % 60, "s"),
                    3600..172_800 => (minutes / 60, "h", minutes % 60, "min"),
                    _ => (hours / 24, "d", hours % 24, "h"),
                };
                write!(f, "{greater} {unit}")?;
                if less > 0 {
                    write!(f, " {less} {lesser}")
                } else {
                    Ok(())
                }
            }
        }
    }
}

/// Parses a number and a unit: `250ms`, `1.5s`, `5m`. Zero needs no unit.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let end = text
        .find(|letter: char| !(letter.is_ascii_digit() || letter == '.'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        "" if number == "0" => 1.0,
        _ => return None,
    };
    if !number.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    let seconds = number.parse::<f64>().ok()? * unit;
    // A number that is too great is a duration that is refused, or as good as none.
    let time = Duration::try_from_secs_f64(seconds.min(1e12)).ok()?;
    // To whole microseconds: what a fraction loses in binary is no part of the setting.
    Some(Duration::from_micros(
        u64::try_from((time + Duration::from_nanos(500)).as_micros()).ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_in_two_units_at_most_and_rounded_up() {
        let micro = 1_000;
        let milli = 1_000_000;
        let second = 1_000_000_000;
        let minute = 60_000_000_000;
        let table = [
            (0, "0 s"),
            (1, "1 µs"),
            (250 * micro, "250 µs"),
            (999 * micro + 1, "1000 µs"),
            (milli, "1 ms"),
            (1500 * micro, "1.5 ms"),
            (100 * milli, "100 ms"),
            (99 * milli + 1, "99.1 ms"),
            (second, "1 s"),
            (58_234 * milli, "58.3 s"),
            (60 * second, "60 s"),
            (60 * second + milli, "60.1 s"),
            (119_900 * milli, "119.9 s"),
            (119_999 * milli, "120 s"),
            (2 * minute, "2 min"),
            (5 * minute + 10 * second, "5 min 10 s"),
            (60 * minute, "1 h"),
            (60 * minute + 1, "1 h 1 min"),
            (90 * minute, "1 h 30 min"),
            (24 * 60 * minute, "24 h"),
            (48 * 60 * minute, "2 d"),
            (76 * 60 * minute, "3 d 4 h"),
            (76 * 60 * minute + 1, "3 d 5 h"),
        ];
        for (nanos, shown) in table {
            assert_eq!(
                Human(Duration::from_nanos(nanos)).to_string(),
                shown,
                "{nanos}"
            );
        }
        assert!(Human(Duration::MAX).to_string().ends_with(" h"));
    }

    #[test]
    fn arithmetic_saturates() {
        let at = Timestamp::from_nanos;
        let nanos = Duration::from_nanos;
        assert_eq!(at(5).after(Duration::MAX), Timestamp::NEVER);
        assert_eq!(Timestamp::NEVER.after(nanos(1)), Timestamp::NEVER);
        assert_eq!(at(5).before(nanos(6)), Timestamp::ORIGIN);
        assert_eq!(Timestamp::NEVER.before(Duration::MAX), Timestamp::ORIGIN);
        assert_eq!(at(7).before(nanos(3)), at(4));
        assert_eq!(Timestamp::ORIGIN.since(Timestamp::NEVER), Duration::ZERO);
        assert_eq!(at(7).since(at(3)), nanos(4));
    }

    #[test]
    fn a_lease_time_is_as_far_away_by_the_steady_clock() {
        let now = Readings {
            steady: Timestamp::from_nanos(5),
            lease: LeaseTime::from_nanos(1000),
        };
        let table = [
            (1007, 12),
            (1000, 5),
            (998, 3),
            (3, 0),
            (u64::MAX - 1, u64::MAX - 996),
        ];
        for (lease, steady) in table {
            assert_eq!(
                now.steady_at(LeaseTime::from_nanos(lease)),
                Timestamp::from_nanos(steady)
            );
        }
        assert_eq!(now.steady_at(LeaseTime::NEVER), Timestamp::NEVER);
    }

    #[test]
    fn durations_have_a_unit() {
        let milli = Duration::from_millis;
        let second = Duration::from_secs;
        let table = [
            ("0", Some(Duration::ZERO)),
            ("250ms", Some(milli(250))),
            ("100us", Some(Duration::from_micros(100))),
            ("1.5s", Some(milli(1500))),
            ("0.1s", Some(milli(100))),
            ("5m", Some(second(300))),
            ("24h", Some(second(86_400))),
            ("366d", Some(second(366 * 86_400))),
            ("9999999999999999999d", Some(second(1_000_000_000_000))),
            ("30", None),
            ("", None),
            ("s", None),
            ("-1s", None),
            (".5s", None),
            ("1.2.3s", None),
            ("1 s", None),
            ("1S", None),
        ];
        for (text, time) in table {
            assert_eq!(parse_duration(text), time, "{text}");
        }
    }
}
