//! Whether to poll without sleeping for a moment, before sleeping in poll.
//!
//! A thread that sleeps until its replies arrive is woken late: on one machine by more than the
//! servers take. Polling again and again instead takes a processor from other threads, and from
//! servers that share it. So only a thread that is alone with its client does it, for a short time,
//! and only where its waits are shorter with it.
//!
//! What pays depends on what the client cannot see: how far the servers are, how many processors
//! there are for them, what else runs on the machine. So both ways are tried, each for a while,
//! again and again. In between, the client spins if waits were shorter with it, by as much as a
//! processor is worth to other threads and servers.

use std::time::Duration;

/// How many waits are a period.
const WAITS: u32 = 32;
/// So many waits at the start of a period do not count: the way before it has an effect for a
/// moment longer.
const SETTLING: u32 = WAITS / 4;
/// Of so many periods, one tries to spin, and one tries not to.
const CYCLE: u32 = 32;
/// The client spins if a wait takes at most so many hundredths of one that does not spin.
const MOST: u64 = 94;
/// A wait counts as so many times the average at most: one that was interrupted shows nothing.
const OUTLIER: u64 = 4;

/// Whether a busy poll pays.
#[derive(Debug)]
pub(super) struct Spin {
    /// For how long to spin at most.
    limit: Duration,
    /// Whether to spin in this period.
    is_on: bool,
    period: u32,
    /// The waits of this period, and the nanoseconds of those that count.
    waits: u32,
    sum: u64,
    /// The average nanoseconds of a wait without, and with. The latest period counts for half.
    averages: [u64; 2],
}

impl Spin {
    /// Spins for this long at most; zero is never.
    pub(super) fn new(limit: Duration) -> Spin {
        Spin {
            limit,
            is_on: true,
            period: 0,
            waits: 0,
            sum: 0,
            averages: [0; 2],
        }
    }

    /// For how long the next poll may spin.
    pub(super) fn allowance(&self, alone: bool) -> Duration {
        if alone && self.is_on {
            self.limit
        } else {
            Duration::ZERO
        }
    }

    /// Counts a wait that a thread has made alone.
    pub(super) fn learn(&mut self, time: Duration) {
        if self.limit.is_zero() {
            return;
        }
        let average = &mut self.averages[usize::from(self.is_on)];
        self.waits += 1;
        if self.waits > SETTLING {
            let most = if *average == 0 {
                u64::MAX
            } else {
                average.saturating_mul(OUTLIER)
            };
            self.sum = self.sum.saturating_add((time.as_nanos() as u64).min(most));
        }
        if self.waits < WAITS {
            return;
        }
        let latest = self.sum / u64::from(WAITS - SETTLING);
        *average = if *average == 0 {
            latest
        } else {
            average.midpoint(latest)
        };
        self.waits = 0;
        self.sum = 0;
        self.period = (self.period + 1) % CYCLE;
        let [without, with] = self.averages;
        self.is_on = match self.period {
            0 => true,
            1 => false,
            _ => with.saturating_mul(100) <= without.saturating_mul(MOST),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_micros(100);

    /// Of so many waits, how many spin when both ways take this long, in microseconds.
    fn spinning(spin: &mut Spin, waits: u32, time: impl Fn(u32, bool) -> u64) -> u32 {
        let mut on = 0;
        for number in 0..waits {
            on += u32::from(spin.is_on);
            spin.learn(Duration::from_micros(time(number, spin.is_on)));
        }
        on
    }

    fn share(with: u64, without: u64) -> u32 {
        let waits = 10 * CYCLE * WAITS;
        spinning(&mut Spin::new(LIMIT), waits, |_, is_on| {
            if is_on { with } else { without }
        }) * 100
            / waits
    }

    #[test]
    fn company_and_a_limit_of_zero_forbid_it() {
        assert_eq!(Spin::new(LIMIT).allowance(true), LIMIT);
        assert_eq!(Spin::new(LIMIT).allowance(false), Duration::ZERO);
        assert_eq!(Spin::new(Duration::ZERO).allowance(true), Duration::ZERO);
    }

    #[test]
    fn the_faster_way_is_used_and_the_other_one_is_tried_now_and_then() {
        assert!((90..100).contains(&share(60, 100)), "{}", share(60, 100));
        assert!((1..10).contains(&share(100, 60)), "{}", share(100, 60));
        assert!(
            (1..10).contains(&share(97, 100)),
            "it gains too little for what it costs: {}",
            share(97, 100)
        );
    }

    #[test]
    fn a_time_that_was_interrupted_changes_little() {
        let mut spin = Spin::new(LIMIT);
        // The second one waited for a connection.
        let on = spinning(&mut spin, 10 * CYCLE * WAITS, |number, is_on| match is_on {
            true if number % 100 == 1 => 1_000_000,
            true => 60,
            false => 100,
        });
        assert!(on > 9 * CYCLE * WAITS, "{spin:?}");
    }

    #[test]
    fn one_period_counts_for_half() {
        let mut spin = Spin::new(LIMIT);
        let usual = |_, is_on| if is_on { 60 } else { 100 };
        // To the end of the periods that try both ways.
        spinning(&mut spin, (4 * CYCLE + 2) * WAITS, usual);
        spinning(&mut spin, WAITS, |_, _| 120);
        assert!(spin.is_on, "60 and 120 are 90");
        spinning(&mut spin, WAITS, |_, _| 120);
        assert!(!spin.is_on, "90 and 120 are 105");
    }

    #[test]
    fn the_average_is_that_of_the_waits_that_count() {
        let mut spin = Spin::new(LIMIT);
        let time = |number, _| if number < SETTLING { 1_000_000 } else { 60 };
        spinning(&mut spin, WAITS, time);
        assert_eq!(spin.averages, [0, 60_000]);
    }

    #[test]
    fn what_changes_is_noticed() {
        let mut spin = Spin::new(LIMIT);
        let mut turn = |with, without| {
            spinning(&mut spin, 4 * CYCLE * WAITS, |_, is_on| {
                if is_on { with } else { without }
            })
        };
        assert!(turn(60, 100) > 2 * CYCLE * WAITS);
        assert!(turn(200, 100) < 2 * CYCLE * WAITS);
        assert!(turn(50, 100) > 2 * CYCLE * WAITS);
        assert!(turn(50, 20) < 2 * CYCLE * WAITS);
    }
}
