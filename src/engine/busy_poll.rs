//! Whether to poll without sleeping for a moment, before sleeping in poll.
//!
//! A thread that sleeps until its replies come is woken late: on one machine by more than the servers take. Polling
//! again and again instead takes a processor from other threads, and from servers that share it. So only a thread that
//! is alone with its client does it, for a short time, and only where it has gained something lately: both ways are
//! tried now and then, and the faster one is used for the waits after that.

use std::time::Duration;

/// Of so many waits, so many are made in the way that was slower.
const PERIOD: u32 = 256;
const TRIAL: u32 = 8;
/// The part by which the average changes with a wait.
const WEIGHT: u32 = 16;
/// A wait counts as so many times the average at most: what was interrupted says nothing.
const OUTLIER: u32 = 4;

/// What waits took with and without a busy poll.
#[derive(Debug)]
pub(super) struct Spin {
    limit: Duration,
    is_on: bool,
    waits: u32,
    slept: Duration,
    spun: Duration,
}

impl Spin {
    /// Spins for this long at most; zero is never.
    pub(super) fn new(limit: Duration) -> Spin {
        Spin { limit, is_on: true, waits: 0, slept: Duration::ZERO, spun: Duration::ZERO }
    }

    /// For how long the next poll may spin.
    pub(super) fn allowance(&self, alone: bool) -> Duration {
        if alone && self.is_on { self.limit } else { Duration::ZERO }
    }

    /// Counts a wait that a thread has made alone.
    pub(super) fn learn(&mut self, time: Duration) {
        let average = if self.is_on { &mut self.spun } else { &mut self.slept };
        // The first one may have waited for a connection.
        let is_unknown = average.is_zero() || *average > time * OUTLIER;
        *average = match is_unknown {
            true => time,
            false => (*average * (WEIGHT - 1) + time.min(*average * OUTLIER)) / WEIGHT,
        };
        self.waits = (self.waits + 1) % PERIOD;
        // A processor is not given away for less than a sixteenth.
        let pays = self.spun < self.slept - self.slept / WEIGHT;
        self.is_on = match self.waits {
            ..TRIAL => true,
            waits if waits < 2 * TRIAL => false,
            _ => pays,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_micros(100);

    /// How many of the waits spin when they take this long, in microseconds.
    fn share(spun: u64, slept: u64) -> usize {
        let mut spin = Spin::new(LIMIT);
        let waits = 10 * PERIOD as usize;
        (0..waits)
            .filter(|_| {
                let spins = !spin.allowance(true).is_zero();
                spin.learn(Duration::from_micros(if spins { spun } else { slept }));
                spins
            })
            .count()
            * 100
            / waits
    }

    #[test]
    fn the_faster_way_is_used_and_the_other_one_is_tried_now_and_then() {
        assert!((90..100).contains(&share(60, 100)), "{}", share(60, 100));
        assert!((1..10).contains(&share(100, 60)), "{}", share(100, 60));
        assert!((1..10).contains(&share(99, 100)), "it gains too little for what it costs: {}", share(99, 100));
    }

    #[test]
    fn company_and_a_limit_of_zero_forbid_it() {
        assert_eq!(Spin::new(LIMIT).allowance(false), Duration::ZERO);
        assert_eq!(Spin::new(Duration::ZERO).allowance(true), Duration::ZERO);
    }

    #[test]
    fn a_wait_that_was_interrupted_changes_little() {
        let mut spin = Spin::new(LIMIT);
        for wait in 0..10 * PERIOD {
            let spins = !spin.allowance(true).is_zero();
            let usual = Duration::from_micros(if spins { 60 } else { 100 });
            spin.learn(if spins && wait % 64 == 0 { Duration::from_secs(1) } else { usual });
        }
        assert!(spin.spun < spin.slept, "{spin:?}");
    }
}
