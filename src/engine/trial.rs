//! Two ways of doing the same thing, of which the faster one is used.
//!
//! What pays depends on what the client cannot see: how far the servers are, how many processors there are for them,
//! what else runs on the machine. So both ways are tried, each for a while, again and again; in between, the one is
//! used that took less time, by so much as the one way costs or saves otherwise.

use std::time::Duration;

/// Of so many periods, one is a trial of the one way, and one of the other.
const CYCLE: u32 = 32;
/// The part of a period that does not count: the way before it has an effect for a moment longer.
const SETTLING: u32 = 4;
/// A time counts as so many times the average at most: what was interrupted says nothing.
const OUTLIER: u32 = 4;

/// What both ways took lately.
#[derive(Debug)]
pub(super) struct Trial {
    /// How many times are counted in a period.
    length: u32,
    /// The one way is used where it takes at most so many hundredths of the time of the other one: it may cost
    /// something else, or save it.
    most: u32,
    period: u32,
    count: u32,
    sum: Duration,
    /// The averages of periods without, and with. The latest one counts for half.
    averages: [Duration; 2],
    is_on: bool,
}

impl Trial {
    pub(super) fn new(length: u32, most: u32) -> Trial {
        Trial { length, most, period: 0, count: 0, sum: Duration::ZERO, averages: [Duration::ZERO; 2], is_on: true }
    }

    /// Whether the one way is to be used now.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Counts a time that the present way took.
    pub(super) fn learn(&mut self, time: Duration) {
        let average = &mut self.averages[usize::from(self.is_on)];
        self.count += 1;
        if self.count > self.length / SETTLING {
            self.sum += if average.is_zero() { time } else { time.min(*average * OUTLIER) };
        }
        if self.count < self.length {
            return;
        }
        let latest = self.sum / (self.length - self.length / SETTLING);
        *average = if average.is_zero() { latest } else { (*average + latest) / 2 };
        (self.count, self.sum) = (0, Duration::ZERO);
        self.period = (self.period + 1) % CYCLE;
        let [without, with] = self.averages;
        self.is_on = match self.period {
            0 => true,
            1 => false,
            _ => with * 100 <= without * self.most,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u32 = 32;

    /// Of a hundred, how many times it is on when both ways take this long, in microseconds.
    fn share(with: u64, without: u64) -> u32 {
        let mut trial = Trial::new(LENGTH, 94);
        let count = 10 * CYCLE * LENGTH;
        let mut on = 0;
        for _ in 0..count {
            on += u32::from(trial.is_on());
            trial.learn(Duration::from_micros(if trial.is_on() { with } else { without }));
        }
        on * 100 / count
    }

    #[test]
    fn the_faster_way_is_used_and_the_other_one_is_tried_now_and_then() {
        assert!((90..100).contains(&share(60, 100)), "{}", share(60, 100));
        assert!((1..10).contains(&share(100, 60)), "{}", share(100, 60));
        assert!((1..10).contains(&share(97, 100)), "it gains too little for what it costs: {}", share(97, 100));
    }

    #[test]
    fn a_time_that_was_interrupted_changes_little() {
        let mut trial = Trial::new(LENGTH, 94);
        let mut on = 0;
        for number in 0..10 * CYCLE * LENGTH {
            on += u32::from(trial.is_on());
            let usual = Duration::from_micros(if trial.is_on() { 60 } else { 100 });
            // The second one waited for a connection.
            trial.learn(if trial.is_on() && number % 100 == 1 { Duration::from_secs(1) } else { usual });
        }
        assert!(on > 9 * CYCLE * LENGTH, "{trial:?}");
    }

    #[test]
    fn what_changes_is_noticed() {
        let mut trial = Trial::new(LENGTH, 94);
        let mut turn = |with, without| {
            let mut on = 0;
            for _ in 0..4 * CYCLE * LENGTH {
                on += u32::from(trial.is_on());
                trial.learn(Duration::from_micros(if trial.is_on() { with } else { without }));
            }
            on
        };
        assert!(turn(60, 100) > 2 * CYCLE * LENGTH);
        assert!(turn(200, 100) < 2 * CYCLE * LENGTH);
        assert!(turn(50, 100) > 2 * CYCLE * LENGTH);
    }
}
