//! Whether to poll without sleeping for a moment, before sleeping in poll.
//!
//! A thread that sleeps until its replies come is woken late: on one machine by more than the servers take. Polling
//! again and again instead takes a processor from other threads, and from servers that share it. So only a thread that
//! is alone with its client does it, for a short time, and only where its waits are shorter with it.

use crate::engine::trial::Trial;
use std::time::Duration;

/// How many waits are a period of the trial.
const WAITS: u32 = 32;
/// Of a wait that does not spin, so many hundredths: to spin costs other threads and servers a processor.
const MOST: u32 = 94;

/// Whether a busy poll pays.
#[derive(Debug)]
pub(super) struct Spin {
    limit: Duration,
    trial: Trial,
}

impl Spin {
    /// Spins for this long at most; zero is never.
    pub(super) fn new(limit: Duration) -> Spin {
        Spin { limit, trial: Trial::new(WAITS, MOST) }
    }

    /// For how long the next poll may spin.
    pub(super) fn allowance(&self, alone: bool) -> Duration {
        if alone && self.trial.is_on() { self.limit } else { Duration::ZERO }
    }

    /// Counts a wait that a thread has made alone.
    pub(super) fn learn(&mut self, time: Duration) {
        self.trial.learn(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn company_and_a_limit_of_zero_forbid_it() {
        let limit = Duration::from_micros(100);
        assert_eq!(Spin::new(limit).allowance(true), limit);
        assert_eq!(Spin::new(limit).allowance(false), Duration::ZERO);
        assert_eq!(Spin::new(Duration::ZERO).allowance(true), Duration::ZERO);
    }
}
