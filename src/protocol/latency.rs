//! How long replies take: a histogram of fixed size, that is filled without an allocation and read
//! without a sort.
//!
//! Its buckets are logarithmic with linear parts: four to each doubling. The first four hold one
//! microsecond each. A quantile is the end of its bucket: never too small, at most a quarter too
//! large, and never more than the longest.

use std::time::Duration;

/// Parts of a doubling, as a power of two.
const PARTS: u32 = 2;
/// The doublings that have buckets of their own. The last one ends after 134 s; what is longer
/// counts there.
const LAST_DOUBLING: u32 = 26;
const BUCKETS: usize = ((LAST_DOUBLING - PARTS + 2) << PARTS) as usize;

/// Times, counted by their lengths.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: [u64; BUCKETS],
    sum_micros: u64,
    longest: Duration,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            counts: [0; BUCKETS],
            sum_micros: 0,
            longest: Duration::ZERO,
        }
    }
}

impl Histogram {
    /// Counts a time.
    pub fn record(&mut self, time: Duration) {
        let whole = time.as_secs().saturating_mul(1_000_000);
        let micros = whole.saturating_add(time.subsec_micros().into());
        self.counts[bucket_of(micros)] += 1;
        self.sum_micros = self.sum_micros.saturating_add(micros);
        self.longest = self.longest.max(time);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// All of them together, in whole microseconds each.
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_micros)
    }

    /// The longest. Zero without any.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// The time that this part of all, in percent, did not exceed. Zero without any.
    pub fn percentile(&self, percent: u64) -> Duration {
        let rank = (self.count() * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (end, count) in self.buckets() {
            seen += count;
            if seen >= rank {
                return end.min(self.longest);
            }
        }
        self.longest
    }

    /// Adds what another one has counted.
    pub fn add(&mut self, other: &Histogram) {
        self.counts
            .iter_mut()
            .zip(&other.counts)
            .for_each(|(count, more)| *count += more);
        self.sum_micros = self.sum_micros.saturating_add(other.sum_micros);
        self.longest = self.longest.max(other.longest);
    }

    /// Each doubling but the last, which has no end: its end, and how many times in all are
    /// shorter.
    pub fn doublings(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let mut shorter = 0;
        let doublings = self
            .counts
            .chunks_exact(1 << PARTS)
            .enumerate()
            .take((BUCKETS >> PARTS) - 1);
        doublings.map(move |(doubling, counts)| {
            shorter += counts.iter().sum::<u64>();
            (end_of((doubling << PARTS) + counts.len() - 1), shorter)
        })
    }

    /// Each bucket: the end of its times, which are shorter, and how many they are. Longer ones
    /// count in the last.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.counts
            .iter()
            .enumerate()
            .map(|(bucket, &count)| (end_of(bucket), count))
    }
}

fn bucket_of(micros: u64) -> usize {
    let doubling = micros.checked_ilog2().unwrap_or(0);
    if doubling < PARTS {
        return micros as usize;
    }
    let part = (micros >> (doubling - PARTS)) as usize & ((1 << PARTS) - 1);
    ((((doubling - PARTS + 1) as usize) << PARTS) + part).min(BUCKETS - 1)
}

fn end_of(bucket: usize) -> Duration {
    let doubling = bucket as u64 >> PARTS;
    let part = bucket as u64 & ((1 << PARTS) - 1);
    let micros = match doubling.checked_sub(1) {
        None => part + 1,
        Some(shift) => ((1 << PARTS) + part + 1) << shift,
    };
    Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_the_bucket_that_ends_next_after_it() {
        let near = (0..40).flat_map(|shift| {
            let power = 1_u64 << shift;
            [power - 1, power, power + 1, power + power / 3]
        });
        for micros in (0..if cfg!(miri) { 50 } else { 5000 }).chain(near) {
            let bucket = bucket_of(micros);
            let time = Duration::from_micros(micros);
            assert!(time < end_of(bucket) || bucket == BUCKETS - 1, "{micros}");
            assert!(bucket == 0 || end_of(bucket - 1) <= time, "{micros}");
            assert!(
                end_of(bucket) <= (time * 5 / 4).max(time + Duration::from_micros(1))
                    || micros == 0,
                "{micros}"
            );
        }
        assert_eq!((BUCKETS, bucket_of(u64::MAX)), (104, 103));
        assert_eq!(
            end_of(BUCKETS - 1),
            Duration::from_micros(1 << (LAST_DOUBLING + 1))
        );
    }

    #[test]
    fn quantiles_are_never_too_small_and_at_most_a_quarter_too_large() {
        let mut histogram = Histogram::default();
        assert_eq!(
            (
                histogram.count(),
                histogram.percentile(99),
                histogram.longest()
            ),
            (0, Duration::ZERO, Duration::ZERO)
        );
        (1..=1000).for_each(|millis| histogram.record(Duration::from_millis(millis)));
        for percent in [1, 50, 90, 99, 100] {
            let exact = Duration::from_millis(10 * percent);
            let found = histogram.percentile(percent);
            assert!(
                exact <= found && found <= exact * 5 / 4,
                "{percent}: {found:?}"
            );
        }
        assert_eq!(
            (histogram.count(), histogram.longest()),
            (1000, Duration::from_secs(1))
        );
        assert_eq!(histogram.sum(), Duration::from_millis(500_500));
        histogram.record(Duration::MAX);
        assert_eq!(
            histogram.percentile(100),
            Duration::from_micros(1 << (LAST_DOUBLING + 1)),
            "the last bucket's end"
        );
    }
}
