//! How long to wait before the next try: decorrelated jitter.
//!
//! Every delay is drawn between the shortest one and three times the one before, and capped.
//! Contenders that collided once are therefore unlikely to collide again, and a lock that stays
//! held is asked for less and less often. The random number is an argument, like the clock's
//! reading elsewhere in the core.

use std::time::Duration;

/// Delays that grow from a shortest to a longest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    previous: Duration,
}

impl Backoff {
    /// Delays between `min` and `max`; when `max` is the shorter one, always `max`.
    pub fn new(min: Duration, max: Duration) -> Backoff {
        let min = min.min(max);
        Backoff {
            min,
            max,
            previous: min,
        }
    }

    /// The shortest delay.
    pub fn min(&self) -> Duration {
        self.min
    }

    /// The next delay, by a number drawn evenly from all of `u64`.
    pub fn next_delay(&mut self, random: u64) -> Duration {
        let ceiling = self.previous.saturating_mul(3).clamp(self.min, self.max);
        // In whole numbers: multiplying a Duration by a float panics on overflow.
        let span = u64::try_from((ceiling - self.min).as_nanos()).unwrap_or(u64::MAX);
        let share = u128::from(span) * u128::from(random) / u128::from(u64::MAX);
        self.previous = self
            .min
            .saturating_add(Duration::from_nanos(share as u64))
            .min(self.max);
        self.previous
    }

    /// Goes on with delays that are spread over this time at least: attempts that collide take so
    /// long.
    pub fn widen(&mut self, time: Duration) {
        self.previous = self.previous.max(time.min(self.max));
    }

    /// Starts over with short delays.
    pub fn reset(&mut self) {
        self.previous = self.min;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Duration = Duration::from_millis(2);
    const MAX: Duration = Duration::from_millis(250);

    #[test]
    fn delays_grow_threefold_at_most_and_stop_at_the_cap() {
        let mut backoff = Backoff::new(MIN, MAX);
        let delays: Vec<u128> = (0..7)
            .map(|_| backoff.next_delay(u64::MAX).as_millis())
            .collect();
        assert_eq!(delays, [6, 18, 54, 162, 250, 250, 250]);
        backoff.reset();
        assert_eq!(backoff.next_delay(u64::MAX).as_millis(), 6);
        assert_eq!(backoff.next_delay(0), MIN);
    }

    #[test]
    fn odd_bounds_do_no_harm() {
        assert_eq!(Backoff::new(MAX, MIN).next_delay(u64::MAX), MIN);
        assert_eq!(
            Backoff::new(Duration::ZERO, Duration::ZERO).next_delay(u64::MAX),
            Duration::ZERO
        );
        let mut huge = Backoff::new(Duration::from_secs(1), Duration::MAX);
        for _ in 0..200 {
            assert!(huge.next_delay(u64::MAX / 2) >= Duration::from_secs(1));
        }
    }

    #[test]
    fn delays_stay_within_their_bounds() {
        let mut backoff = Backoff::new(MIN, MAX);
        let numbers = 0..if cfg!(miri) { 100 } else { 10_000_u64 };
        // Multiples of an odd number near 2^64 / 1.618 are spread over all of the range.
        for random in numbers.map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            let delay = backoff.next_delay(random);
            assert!((MIN..=MAX).contains(&delay), "{delay:?}");
        }
    }
}
