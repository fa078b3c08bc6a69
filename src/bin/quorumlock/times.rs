//! How long something took, each time that it was done.

use crate::json::{Object, object};
use quorumlock::algorithm::time::Human;
use std::fmt;
use std::time::{Duration, Instant};

/// Times that were measured, the shortest first.
#[derive(Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    /// Does something again and again, so often and for so long at most.
    pub(crate) fn measure<E>(
        &mut self,
        most: usize,
        longest: Duration,
        mut work: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let begun = Instant::now();
        while self.0.len() < most && begun.elapsed() < longest {
            let start = Instant::now();
            work()?;
            self.0.push(start.elapsed());
        }
        self.0.sort_unstable();
        Ok(())
    }

    /// All of these together.
    pub(crate) fn of(all: Vec<Times>) -> Times {
        let mut times: Vec<Duration> = all.into_iter().flat_map(|times| times.0).collect();
        times.sort_unstable();
        Times(times)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// How many are longer than this.
    pub(crate) fn longer_than(&self, limit: Duration) -> usize {
        self.0.iter().filter(|&&time| time > limit).count()
    }

    /// The time that this part of all did not exceed.
    pub(crate) fn quantile(&self, part: f64) -> Duration {
        let rank = (self.0.len() as f64 * part).ceil() as usize;
        self.0
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or_default()
    }

    /// The times as part of an object: `p50_us` and `p99_us`.
    pub(crate) fn json(&self) -> Object {
        let [p50, p99] = [0.5, 0.99].map(|part| self.quantile(part).as_micros());
        object! { "p50_us": p50, "p99_us": p99 }
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (median), {} (p99)",
            Human(self.quantile(0.5)),
            Human(self.quantile(0.99))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_times_that_were_measured() {
        let times = Times((1..=100).map(Duration::from_millis).collect());
        let millis = |part| times.quantile(part).as_millis();
        assert_eq!(
            (millis(0.5), millis(0.99), millis(0.999), millis(1.0)),
            (50, 99, 100, 100)
        );
        assert_eq!(Times::default().quantile(0.5), Duration::ZERO);
    }
}
