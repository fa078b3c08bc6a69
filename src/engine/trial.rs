//! Two ways of doing the same thing, of which the faster one is used.
//!
//! What pays depends on what the client cannot see: how far the servers are, how many processors there are for them,
//! what else runs on the machine. So both ways are tried, each for a while, again and again; in between, the one is
//! used that took less time.

use std::time::Duration;

/// Of so many periods, one is a trial of the one way, and one of the other.
const CYCLE: u32 = 32;
/// The part of a period that does not count: the way before it has an effect for a moment longer.
const SETTLING: u32 = 4;
/// A time counts as so many times the average at most: what was interrupted says nothing.
const OUTLIER: u32 = 4;
/// The costlier way is used only where it gains more than this part.
const GAIN: u32 = 16;

/// What both ways took lately.
#[derive(Debug)]
pub(super) struct Trial {
    /// How many times are counted in a period.
    length: u32,
    period: u32,
    count: u32,
    sum: Duration,
    /// The average of the latest period without, and with.
    averages: [Duration; 2],
    is_on: bool,
}

impl Trial {
    pub(super) fn new(length: u32) -> Trial {
        Trial { length, period: 0, count: 0, sum: Duration::ZERO, averages: [Duration::ZERO; 2], is_on: true }
    }

    /// Whether the costlier way is to be used now.
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
        *average = self.sum / (self.length - self.length / SETTLING);
        (self.count, self.sum) = (0, Duration::ZERO);
        self.period = (self.period + 1) % CYCLE;
        let [without, with] = self.averages;
        self.is_on = match self.period {
            0 => true,
            1 => false,
            _ => with < without - without / GAIN,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u32 = 32;

    /// Of a hundred, how many times it is on when both ways take this long, in microseconds.
    fn share(with: u64, without: u64) -> u32 {
        let mut trial = Trial::new(LENGTH);
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
        let mut trial = Trial::new(LENGTH);
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
        let mut trial = Trial::new(LENGTH);
        let mut turn = |with, without| {
            let mut on = 0;
            for _ in 0..2 * CYCLE * LENGTH {
                on += u32::from(trial.is_on());
                trial.learn(Duration::from_micros(if trial.is_on() { with } else { without }));
            }
            on
        };
        assert!(turn(60, 100) > CYCLE * LENGTH);
        assert!(turn(200, 100) < CYCLE * LENGTH);
        assert!(turn(50, 100) > CYCLE * LENGTH);
    }
}
