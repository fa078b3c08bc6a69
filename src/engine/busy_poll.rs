//! Whether to poll without sleeping for a moment, before sleeping in poll.
//!
//! A thread that sleeps until its replies come is woken late: on one machine by more than the servers take. Polling
//! again and again instead takes a processor from other threads. So only a thread that is alone with its client does
//! it, for a short time, and as long as it pays. After a few polls in vain it stops, and is tried again now and then.

use std::time::Duration;

/// How many successes are counted at most. It bounds how many failures stop the busy poll.
const CREDIT: u8 = 8;
/// How many successes one failure costs.
const PENALTY: u8 = 2;
/// After so many polls without it, it is tried once more.
const INTERVAL: u16 = 512;

/// How well a busy poll has paid.
#[derive(Debug)]
pub(super) struct Spin {
    limit: Duration,
    credit: u8,
    abstained: u16,
}

impl Spin {
    /// Spins for this long at most; zero is never.
    pub(super) fn new(limit: Duration) -> Spin {
        Spin { limit, credit: CREDIT, abstained: 0 }
    }

    /// For how long the next poll may spin.
    pub(super) fn allowance(&mut self, alone: bool) -> Duration {
        if !alone || self.limit.is_zero() {
            return Duration::ZERO;
        }
        if self.credit == 0 {
            self.abstained += 1;
            if self.abstained < INTERVAL {
                return Duration::ZERO;
            }
            self.abstained = 0;
        }
        self.limit
    }

    /// Counts a poll that was allowed to spin. `paid`: it found something without sleeping.
    pub(super) fn learn(&mut self, paid: bool) {
        self.credit = if paid { (self.credit + 1).min(CREDIT) } else { self.credit.saturating_sub(PENALTY) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_micros(100);

    #[test]
    fn in_vain_it_stops_and_is_tried_again_now_and_then() {
        let mut spin = Spin::new(LIMIT);
        let mut spun = 0;
        for _ in 0..usize::from(INTERVAL) * 10 {
            if spin.allowance(true) > Duration::ZERO {
                spun += 1;
                spin.learn(false);
            }
        }
        assert_eq!(spun, usize::from(CREDIT / PENALTY) + 9);
        spin.learn(true);
        assert_eq!(spin.allowance(true), LIMIT, "it pays again");
    }

    #[test]
    fn company_and_a_limit_of_zero_forbid_it() {
        assert_eq!(Spin::new(LIMIT).allowance(false), Duration::ZERO);
        assert_eq!(Spin::new(Duration::ZERO).allowance(true), Duration::ZERO);
    }

    #[test]
    fn a_failure_among_successes_changes_nothing() {
        let mut spin = Spin::new(LIMIT);
        for turn in 0..1000 {
            assert_eq!(spin.allowance(true), LIMIT);
            spin.learn(turn % 4 != 0);
        }
    }
}
