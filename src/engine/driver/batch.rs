//! The submissions that were begun and sent together, and for how long those behind them wait:
//! group commit, where it pays.
//!
//! What several threads submit while a batch is in flight leaves together when the batch is
//! decided: in one write to each node, which each server reads and answers at once. Servers that
//! are bound by their work for each write answer all of them sooner. Where the time is spent on the
//! way, a command that waits is only answered later. So the next batch is held for [`LONGEST_HOLD`]
//! at most, and only while batches take no longer than that, and several threads use the client.
//!
//! The thread that begins the next batch yields the processor before it does, so that others submit
//! for it as well. Where other programs keep the processors busy, that takes long: then no thread
//! yields for a while.

use crate::algorithm::time::Timestamp;
use std::time::Duration;

/// Longest hold, and the longest batch that the next one is held for.
const LONGEST_HOLD: Duration = Duration::from_millis(2);
/// After a yield that took longer, no thread yields for a while.
const LONGEST_YIELD: Duration = Duration::from_micros(200);
/// For so many times as long as that yield.
const PAUSE: u32 = 256;
/// The part by which the average time of a batch changes with one.
const WEIGHT: u64 = 8;

/// What was begun and sent together, and the hold of what is submitted after it.
pub(super) struct Batch {
    pub(super) number: u64,
    /// How many of its submissions are undecided. The driver's own does not count.
    pending: usize,
    begun_at: Timestamp,
    /// Until when submissions stay in their queue, unless this batch is decided before. The driver
    /// then begins them. A driver that polls without knowing of the hold is not waited for: a
    /// thread that sleeps begins them when the hold is over. Never: they do not stay there.
    pub(super) held_until: Timestamp,
    /// How many nanoseconds batches take, on average.
    average: u64,
    /// From when on threads yield the processor before they begin a batch.
    yields_from: Timestamp,
}

impl Batch {
    /// The first one. 0 is the number of none.
    pub(super) const FIRST: Batch = Batch {
        number: 1,
        pending: 0,
        begun_at: Timestamp::ORIGIN,
        held_until: Timestamp::NEVER,
        average: 0,
        yields_from: Timestamp::ORIGIN,
    };

    /// The next batch begins. The one after it is held where batches are short, and several threads
    /// use the client.
    pub(super) fn begin_next(&mut self, now: Timestamp, is_alone: bool) {
        let pays = !is_alone && u128::from(self.average) <= LONGEST_HOLD.as_nanos();
        self.held_until = if pays {
            now.after(LONGEST_HOLD)
        } else {
            Timestamp::NEVER
        };
        self.number += 1;
        self.pending = 0;
        self.begun_at = now;
    }

    /// Whether submissions stay in their queue.
    pub(super) fn is_held(&self) -> bool {
        self.held_until < Timestamp::NEVER
    }

    /// Submissions do not stay in their queue.
    pub(super) fn end_hold(&mut self) {
        self.held_until = Timestamp::NEVER;
    }

    /// Whether the next batch is to begin, for a thread that waits for a ticket which was begun
    /// with the batch `own`.
    pub(super) fn is_hold_over(&self, own: u64, now: Timestamp) -> bool {
        self.held_until <= now || self.is_held() && self.pending == 0 && self.number != own
    }

    /// Whether submissions other than the driver's own are undecided, and worth waiting for.
    pub(super) fn is_in_flight(&self, now: Timestamp) -> bool {
        self.is_held() && self.pending > 0 && now < self.held_until
    }

    /// A submission is begun with it.
    pub(super) fn insert(&mut self) {
        self.pending += 1;
    }

    /// A submission that was begun with the batch of this number is decided, or is the driver's
    /// now.
    pub(super) fn remove(&mut self, number: u64, now: Timestamp) {
        if number == self.number {
            self.pending -= 1;
            if self.pending == 0 {
                self.record(now.since(self.begun_at));
            }
        }
    }

    /// Whether a thread that is to begin the next batch yields the processor first.
    pub(super) fn may_yield(&self, now: Timestamp) -> bool {
        now >= self.yields_from
    }

    /// A thread has yielded the processor for so long.
    pub(super) fn on_yielded(&mut self, time: Duration, now: Timestamp) {
        if time > LONGEST_YIELD {
            self.yields_from = now.after(time * PAUSE);
        }
    }

    /// Counts how long a batch took, from its begin to its last verdict.
    pub(super) fn record(&mut self, time: Duration) {
        let time = time.as_nanos() as u64;
        self.average = if self.average == 0 {
            time
        } else {
            self.average - self.average / WEIGHT + time / WEIGHT
        };
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
            batch.begin_next(now, false);
            assert_eq!(batch.is_held(), is_held, "{millis}");
            assert_eq!(
                batch.is_hold_over(0, now.after(LONGEST_HOLD)),
                is_held,
                "{millis}"
            );
        }
        let mut batch = after_batches_of(Duration::from_millis(20));
        (0..100).for_each(|_| batch.record(Duration::from_millis(1)));
        batch.begin_next(now, false);
        assert!(batch.is_held(), "they are near again");
        batch.begin_next(now, true);
        assert!(!batch.is_held(), "no other thread is there to wait");
    }

    #[test]
    fn a_batch_takes_until_the_last_of_its_submissions_is_decided() {
        let at = |millis| Timestamp::ORIGIN.after(Duration::from_millis(millis));
        let mut batch = Batch::FIRST;
        batch.begin_next(at(0), false);
        let number = batch.number;
        (0..2).for_each(|_| batch.insert());
        batch.remove(number - 1, at(1));
        batch.remove(number, at(1));
        assert!(batch.is_in_flight(at(1)) && !batch.is_hold_over(0, at(1)) && batch.average == 0);
        batch.remove(number, at(3));
        assert!(!batch.is_in_flight(at(1)) && batch.is_hold_over(0, at(1)));
        assert!(
            !batch.is_hold_over(number, at(1)),
            "the thread's own is undecided"
        );
        assert_eq!(batch.average, 3_000_000);
        batch.begin_next(at(3), false);
        assert!(!batch.is_held(), "the next one is not held");
    }

    #[test]
    fn after_a_yield_that_took_long_no_thread_yields_for_a_while() {
        let mut batch = Batch::FIRST;
        let now = Timestamp::from_nanos(1);
        assert!(batch.may_yield(now));
        batch.on_yielded(LONGEST_YIELD, now);
        assert!(batch.may_yield(now));
        batch.on_yielded(Duration::from_millis(1), now);
        let is_over = |millis| batch.may_yield(now.after(Duration::from_millis(millis)));
        assert_eq!([0, 255, 256].map(is_over), [false, false, true]);
    }
}
