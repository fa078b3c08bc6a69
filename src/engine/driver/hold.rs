//! For how long submissions wait for the batch before them: group commit, where it pays.
//!
//! What several threads submit while a batch is in flight leaves together when the batch is answered: in one write to
//! each node, which each server reads and answers at once. Servers that are bound by their work for each write answer
//! all of them sooner. Where the time is spent on the way, a command that waits only comes later. So a batch is held
//! for only as long as batches take at present, never longer than [`LONGEST_HOLD`], and only while submissions are
//! decided about as soon with it. Nor is it for one other thread: of two threads, each would only wait for the other.

use crate::engine::trial::Trial;
use std::time::Duration;

/// Longest hold, and the longest batch that the next one is held for.
const LONGEST_HOLD: Duration = Duration::from_millis(2);
/// How many submissions are a period of the trial: some batches of many threads.
const SUBMISSIONS: u32 = 512;
/// A submission may take so many hundredths of the time without a hold: fewer writes save processor time at both ends.
const MOST: u32 = 115;
/// The part by which the average time of a batch changes with one.
const WEIGHT: u32 = 8;
/// So many commands have to be in flight at a time.
const CROWD: usize = 3;
/// After so many commands without it, a crowd is taken to be smaller by one.
const DECAY: u8 = 32;

/// What batches and submissions took lately.
#[derive(Debug)]
pub(super) struct Hold {
    /// Of a batch, on average.
    batch: Duration,
    trial: Trial,
    /// How many commands were in flight lately, and for how many commands that was not so.
    crowd: usize,
    age: u8,
}

impl Hold {
    pub(super) fn new() -> Hold {
        Hold { batch: Duration::ZERO, trial: Trial::new(SUBMISSIONS, MOST), crowd: 0, age: 0 }
    }

    /// For how long submissions may wait for a batch that is sent now.
    pub(super) fn time(&self) -> Duration {
        if self.may_pay() && self.trial.is_on() { (self.batch * 2).min(LONGEST_HOLD) } else { Duration::ZERO }
    }

    /// Notes how many commands are in flight.
    pub(super) fn record_in_flight(&mut self, number: usize) {
        self.age += 1;
        if number >= self.crowd {
            (self.crowd, self.age) = (number, 0);
        } else if self.age >= DECAY {
            (self.crowd, self.age) = (self.crowd - 1, 0);
        }
    }

    /// Counts how long a batch took, from its begin to its last verdict.
    pub(super) fn record_batch(&mut self, time: Duration) {
        self.batch = if self.batch.is_zero() { time } else { (self.batch * (WEIGHT - 1) + time) / WEIGHT };
    }

    /// Counts how long a submission took until it was decided.
    pub(super) fn record_submission(&mut self, time: Duration) {
        if self.may_pay() {
            self.trial.learn(time);
        }
    }

    fn may_pay(&self) -> bool {
        self.crowd >= CROWD && self.batch <= LONGEST_HOLD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: Duration = Duration::from_micros(200);

    /// After so many submissions of so many threads, which take this long with and without a hold.
    fn hold(threads: usize, submissions: u32, with: Duration, without: Duration) -> Hold {
        let mut hold = Hold::new();
        for _ in 0..submissions {
            hold.record_in_flight(threads);
            hold.record_batch(BATCH);
            let is_held = !hold.time().is_zero();
            hold.record_submission(if is_held { with } else { without });
        }
        hold
    }

    #[test]
    fn a_crowd_is_held_for_as_long_as_its_batches_take() {
        let mut hold = hold(3, 4 * SUBMISSIONS, BATCH, 2 * BATCH);
        assert_eq!(hold.time(), BATCH * 2);
        for _ in 0..100 {
            hold.record_batch(LONGEST_HOLD);
        }
        assert_eq!(hold.time(), LONGEST_HOLD);
    }

    #[test]
    fn far_servers_are_not_waited_for() {
        let mut hold = hold(16, 4 * SUBMISSIONS, BATCH, BATCH);
        assert!(!hold.time().is_zero(), "a hold that costs nothing saves writes");
        for _ in 0..100 {
            hold.record_batch(LONGEST_HOLD * 2);
        }
        assert_eq!(hold.time(), Duration::ZERO);
    }

    #[test]
    fn a_crowd_that_gains_nothing_is_not_held() {
        assert_eq!(hold(16, 4 * SUBMISSIONS, 2 * BATCH, BATCH).time(), Duration::ZERO);
    }

    #[test]
    fn two_threads_are_not_held() {
        assert_eq!(hold(2, 10, BATCH, BATCH).time(), Duration::ZERO);
    }

    #[test]
    fn a_crowd_that_has_left_is_forgotten() {
        let mut hold = hold(4, 10, BATCH, BATCH);
        for _ in 0..DECAY {
            hold.record_in_flight(1);
        }
        assert!(hold.time() > Duration::ZERO, "three are still taken to be here");
        for _ in 0..DECAY {
            hold.record_in_flight(1);
        }
        assert_eq!(hold.time(), Duration::ZERO);
    }
}
