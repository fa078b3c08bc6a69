//! The clocks of a machine: one for leases, which runs while the machine sleeps, and a steady one,
//! which cannot be set, for waits and everything else ([`time`](crate::algorithm::time)). Fencing
//! tokens begin with the wall clock.
//!
//! `std::time::Instant` stops while a machine is suspended, and Redis does not: a holder that
//! relies on it keeps a lock that ended long ago. This clock counts every advance of
//! `CLOCK_BOOTTIME`, which runs during suspend, and on top of it whatever the wall clock advances
//! *more* (rule 4.1). A wall clock set forward therefore only ends leases early; one set back
//! changes nothing, and a later step forward counts again. It never runs backwards.
//!
//! There is one for the whole process, and a child made by `fork` continues with it. So nothing
//! here waits for a thread that the child may not have.

use crate::algorithm::time::{Clock, LeaseTime, Readings, Timestamp};
use crate::os::sync::ForkSafeSpinLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Differences between the two clocks below this are reading noise and slewing, which the drift
/// allowance covers.
const TOLERANCE_NANOS: i64 = 1_000_000;
/// Two readings that took no longer than this were not interrupted in a way that matters.
const UNINTERRUPTED_NANOS: u64 = 100_000;
/// The difference between the two clocks before they were first read. No difference is this one.
const UNKNOWN: i64 = i64::MIN;

/// The operating system's clocks, one lease clock for the whole process.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    /// Where the system has no clock that counts suspend, what waits by this one waits longer.
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(source::steady())
    }

    fn lease_now(&self) -> LeaseTime {
        self.readings().lease
    }

    fn readings(&self) -> Readings {
        static CLOCK: LeaseClock = LeaseClock::new();
        CLOCK.advance(source::read)
    }
}

/// The wall clock's time in microseconds since 1970, where a time must mean the same on other
/// machines. Zero before then.
pub(crate) fn micros_since_epoch() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = time.unwrap_or_default().as_micros();
    u64::try_from(micros).unwrap_or(u64::MAX)
}

/// Combines a steady clock, which never runs backwards, with a wall clock, which can be set.
pub(crate) struct LeaseClock {
    /// How far the wall clock was ahead of the steady one, the last time that changed.
    reference: AtomicI64,
    /// All that the wall clock has ever gained on the steady one.
    gained: AtomicU64,
    change: ForkSafeSpinLock,
}

impl LeaseClock {
    pub(crate) const fn new() -> LeaseClock {
        LeaseClock {
            reference: AtomicI64::new(UNKNOWN),
            gained: AtomicU64::new(0),
            change: ForkSafeSpinLock::new(),
        }
    }

    /// The steady time and the lease time, given a way to read both clocks in nanoseconds.
    pub(crate) fn advance(&self, read: impl Fn() -> (u64, i64)) -> Readings {
        let (mut steady, mut wall) = read();
        if self.differs(steady, wall) {
            // A step of the wall clock, or a thread that was interrupted between the two readings:
            // read again, until a pair took too little time for that.
            for _ in 0..3 {
                let (before, _) = read();
                let (after, then) = read();
                steady = after;
                wall = then;
                if after.saturating_sub(before) < UNINTERRUPTED_NANOS {
                    break;
                }
            }
            self.change.pass(|| self.record(steady, wall));
        }
        let lease = steady.saturating_add(self.gained.load(Ordering::Acquire));
        Readings {
            steady: Timestamp::from_nanos(steady),
            lease: LeaseTime::from_nanos(lease),
        }
    }

    fn differs(&self, steady: u64, wall: i64) -> bool {
        ahead(steady, wall).abs_diff(self.reference.load(Ordering::Acquire))
            > TOLERANCE_NANOS.unsigned_abs()
    }

    /// Takes a changed difference between the clocks into account: a gain counts, a loss is only
    /// remembered. One thread at a time does; when a child is forked at the worst moment, it counts
    /// a gain twice, and leases end early there.
    fn record(&self, steady: u64, wall: i64) {
        if !self.differs(steady, wall) {
            return;
        }
        let ahead = ahead(steady, wall);
        let reference = self.reference.load(Ordering::Acquire);
        if reference != UNKNOWN && ahead > reference {
            let gained = self
                .gained
                .load(Ordering::Acquire)
                .saturating_add(ahead.abs_diff(reference));
            self.gained.store(gained, Ordering::Release);
        }
        self.reference.store(ahead, Ordering::Release);
    }
}

/// How far the wall clock is ahead of the steady one.
fn ahead(steady: u64, wall: i64) -> i64 {
    wall.saturating_sub(i64::try_from(steady).unwrap_or(i64::MAX))
        .max(UNKNOWN + 1)
}

#[cfg(unix)]
pub(crate) mod source {
    use rustix::time::{ClockId, clock_gettime};

    #[cfg(any(target_os = "android", target_os = "linux"))]
    const STEADY: ClockId = ClockId::Boottime;
    /// Where there is no clock that counts suspend, the wall clock makes up for it.
    #[cfg(not(any(target_os = "android", target_os = "linux")))]
    const STEADY: ClockId = ClockId::Monotonic;

    pub(crate) fn read() -> (u64, i64) {
        let wall = nanos(ClockId::Realtime);
        (steady(), wall)
    }

    pub(crate) fn steady() -> u64 {
        u64::try_from(nanos(STEADY)).unwrap_or(0)
    }

    /// Enough for 292 years from the clock's own epoch.
    fn nanos(clock: ClockId) -> i64 {
        let time = clock_gettime(clock);
        (time.tv_sec as i64)
            .saturating_mul(1_000_000_000)
            .saturating_add(time.tv_nsec as i64)
    }
}

#[cfg(not(unix))]
pub(crate) mod source {
    use std::sync::OnceLock;
    use std::time::{Instant, SystemTime};

    /// Where there is no clock that counts suspend, the wall clock makes up for it.
    pub(crate) fn read() -> (u64, i64) {
        let wall = match SystemTime::now().duration_since(origin().1) {
            Ok(advance) => i64::try_from(advance.as_nanos()).unwrap_or(i64::MAX),
            Err(set_back) => {
                i64::try_from(set_back.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos)
            }
        };
        (steady(), wall)
    }

    pub(crate) fn steady() -> u64 {
        u64::try_from(origin().0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn origin() -> &'static (Instant, SystemTime) {
        static START: OnceLock<(Instant, SystemTime)> = OnceLock::new();
        START.get_or_init(|| (Instant::now(), SystemTime::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SECOND: i64 = 1_000_000_000;
    const TURNS: usize = if cfg!(miri) { 1 } else { 100 };

    /// Feeds readings in seconds and returns the lease time in seconds.
    fn lease_times(readings: &[(i64, i64)]) -> Vec<u64> {
        let clock = LeaseClock::new();
        readings
            .iter()
            .map(|&(steady, wall)| {
                clock
                    .advance(|| ((steady * SECOND) as u64, wall * SECOND))
                    .lease
                    .as_nanos()
                    / SECOND as u64
            })
            .collect()
    }

    #[test]
    fn both_clocks_going_on_is_just_time() {
        assert_eq!(lease_times(&[(0, 0), (1, 1), (100, 100)]), [0, 1, 100]);
    }

    #[test]
    fn suspend_counts_wherever_it_shows() {
        assert_eq!(
            lease_times(&[(1, 1), (3601, 3601), (3602, 3602)]),
            [1, 3601, 3602],
            "in both clocks"
        );
        assert_eq!(
            lease_times(&[(1, 1), (2, 3602), (3, 3603)]),
            [1, 3602, 3603],
            "in the wall clock only"
        );
        assert_eq!(
            lease_times(&[(1, 1), (3601, 2), (3602, 3)]),
            [1, 3601, 3602],
            "in the steady clock only"
        );
    }

    #[test]
    fn a_wall_clock_set_forward_counts_and_set_back_neither_counts_nor_freezes() {
        assert_eq!(
            lease_times(&[(1, 1), (2, 3602), (3, 3), (4, 4), (5, 3605)]),
            [1, 3602, 3603, 3604, 7205]
        );
        assert_eq!(lease_times(&[(1, 1), (2, -3600), (3, -3599)]), [1, 2, 3]);
    }

    #[test]
    fn reading_noise_does_not_add_up() {
        let clock = LeaseClock::new();
        let mut last = LeaseTime::ORIGIN;
        let steps = if cfg!(miri) { 100 } else { 100_000 };
        for step in 0..steps {
            let noise = [0, 900_000, -900_000, 400_000][step as usize % 4];
            last = clock
                .advance(|| (step * 1000, (step * 1000) as i64 + noise))
                .lease;
        }
        assert!(
            last.as_nanos() <= steps * 1000 + 2 * TOLERANCE_NANOS as u64,
            "{last:?}"
        );
    }

    /// A thread that sees the difference that another one noted counts what it gained, too.
    #[test]
    fn no_thread_misses_a_gain_that_another_one_has_noted() {
        for _ in 0..TURNS {
            let clock = LeaseClock::new();
            let advance = |seconds| clock.advance(|| (0, seconds * SECOND)).lease.as_nanos();
            advance(0);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| assert_eq!(advance(3600), 3600 * SECOND as u64));
                }
            });
        }
    }

    #[test]
    fn extreme_readings_do_not_overflow() {
        let clock = LeaseClock::new();
        let mut last = LeaseTime::ORIGIN;
        for (steady, wall) in [
            (0, i64::MAX),
            (1, i64::MIN),
            (2, i64::MAX),
            (u64::MAX, i64::MIN),
            (u64::MAX, i64::MAX),
        ] {
            let now = clock.advance(|| (steady, wall)).lease;
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn the_system_clock_goes_on() {
        let before = SystemClock.readings();
        std::thread::sleep(Duration::from_millis(20));
        let after = SystemClock.readings();
        for passed in [
            after.steady.since(before.steady),
            after.lease.since(before.lease),
        ] {
            assert!(passed >= Duration::from_millis(20), "{passed:?}");
        }
    }
}
