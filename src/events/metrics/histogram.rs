//! A histogram of times, with fixed buckets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets, in nanoseconds, with the numbers of seconds that name them. From a
/// lock on the same machine to the longest waits and holds that are usual.
pub(super) const BOUNDS: [(u64, &str); 13] = [
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_500_000_000, "2.5"),
    (10_000_000_000, "10"),
    (60_000_000_000, "60"),
];

/// A histogram of times. Its count is the sum of its buckets, so that the two cannot disagree.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// By bucket, how many times were in it and in no lower one; the last is for all that are
    /// longer.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Histogram {
    pub(super) fn observe(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS
            .iter()
            .position(|&(bound, _)| nanos <= bound)
            .unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// By bucket, how many times were in it or in a lower one; the last is the number of all.
    pub(super) fn cumulative(&self) -> [u64; BOUNDS.len() + 1] {
        let mut sum = 0;
        self.buckets.each_ref().map(|bucket| {
            sum += bucket.load(Ordering::Relaxed);
            sum
        })
    }

    /// How many times there were.
    pub(super) fn count(&self) -> u64 {
        self.cumulative()[BOUNDS.len()]
    }

    /// All times together.
    pub(super) fn sum(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let histogram = Histogram::default();
        for nanos in [0, 1_000_000, 1_000_001, 60_000_000_000, 60_000_000_001] {
            histogram.observe(Duration::from_nanos(nanos));
        }
        let cumulative = histogram.cumulative();
        assert_eq!(
            [0, 1, 12, 13].map(|bucket| cumulative[bucket]),
            [2, 3, 4, 5]
        );
        assert_eq!(histogram.sum().as_nanos(), 120_002_000_002);
        assert!(
            BOUNDS
                .iter()
                .all(|&(nanos, name)| name.parse::<f64>().unwrap() * 1e9 == nanos as f64)
        );
    }
}
