//! The submissions that were begun and sent together, and for how long those behind them wait: group commit, where it
//! pays.
//!
//! What several threads submit while a batch is in flight leaves together when the batch is decided: in one write to
//! each node, which each server reads and answers at once. Servers that are bound by their work for each write answer
//! all of them sooner. Where the time is spent on the way, a command that waits only comes later. So the next batch is
//! held for [`LONGEST_HOLD`] at most, and only while batches take no longer than that.

use crate::algorithm::time::Timestamp;
use std::time::Duration;

/// Longest hold, and the longest batch that the next one is held for.
const LONGEST_HOLD: Duration = Duration::from_millis(2);
/// The part by which the average time of a batch changes with one.
const WEIGHT: u32 = 8;

/// What was begun and sent together.
pub(super) struct Batch {
    pub(super) number: u64,
    /// How many of its submissions are undecided. That of the driver does not count.
    pending: usize,
    /// Until when the next one may be held.
    pub(super) held_until: Timestamp,
    begun_at: Timestamp,
    /// How long batches take, on average.
    average: Duration,
}

impl Batch {
    /// The first one. 0 is the number of none.
    pub(super) const FIRST: Batch = Batch {
        number: 1,
        pending: 0,
        held_until: Timestamp::ORIGIN,
        begun_at: Timestamp::ORIGIN,
        average: Duration::ZERO,
    };

    /// The next batch begins. True: the one after it is held.
    pub(super) fn begin_next(&mut self, now: Timestamp) -> bool {
        let hold = if self.average <= LONGEST_HOLD { LONGEST_HOLD } else { Duration::ZERO };
        *self = Batch { number: self.number + 1, pending: 0, held_until: now.after(hold), begun_at: now, ..*self };
        !hold.is_zero()
    }

    /// A submission is begun with it.
    pub(super) fn insert(&mut self) {
        self.pending += 1;
    }

    /// A submission that was begun with the batch of this number is decided, or is the driver's now.
    pub(super) fn remove(&mut self, number: u64, now: Timestamp) {
        if number == self.number {
            self.pending -= 1;
            if self.pending == 0 {
                self.record(now.since(self.begun_at));
            }
        }
    }

    /// Whether all of its submissions are decided. That of the driver does not count.
    pub(super) fn is_decided(&self) -> bool {
        self.pending == 0
    }

    /// Counts how long a batch took, from its begin to its last verdict.
    pub(super) fn record(&mut self, time: Duration) {
        self.average = if self.average.is_zero() { time } else { (self.average * (WEIGHT - 1) + time) / WEIGHT };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_batches_of(time: Duration) -> Batch {
        let mut batch = Batch::FIRST;
        (0..100).for_each(|_| batch.record(time));
        batch
    }

    #[test]
    fn near_servers_are_waited_for_and_far_ones_are_not() {
        let now = Timestamp::from_nanos(1);
        for (millis, is_held) in [(0, true), (1, true), (2, true), (3, false), (20, false)] {
            let mut batch = after_batches_of(Duration::from_millis(millis));
            assert_eq!(batch.begin_next(now), is_held, "{millis}");
            assert_eq!(batch.held_until, if is_held { now.after(LONGEST_HOLD) } else { now }, "{millis}");
        }
        let mut batch = after_batches_of(Duration::from_millis(20));
        (0..100).for_each(|_| batch.record(Duration::from_millis(1)));
        assert!(batch.begin_next(now), "they are near again");
    }

    #[test]
    fn a_batch_takes_until_the_last_of_its_submissions_is_decided() {
        let at = |millis| Timestamp::ORIGIN.after(Duration::from_millis(millis));
        let mut batch = Batch::FIRST;
        batch.begin_next(at(0));
        let number = batch.number;
        (0..2).for_each(|_| batch.insert());
        batch.remove(number - 1, at(1));
        batch.remove(number, at(1));
        assert!(!batch.is_decided() && batch.average.is_zero());
        batch.remove(number, at(3));
        assert!(batch.is_decided());
        assert_eq!(batch.average, Duration::from_millis(3));
        assert!(!batch.begin_next(at(3)), "the next one is not held");
    }
}
