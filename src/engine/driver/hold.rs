//! For how long submissions wait for the batch before them: group commit, where it pays.
//!
//! What several threads submit while a batch is in flight leaves together when the batch is answered: in one write to
//! each node, which each server reads and answers at once. Near servers are bound by their work for each write, so that
//! all threads gain. With a far server the round trip is time in which nothing is done, and a command that waits for it
//! only comes later. So a batch is held for only as long as batches take at present, never longer than
//! [`LONGEST`], and not at all where a batch takes longer than its commands explain. Nor for one other thread: of two
//! threads, each would only wait for the other.

use std::time::Duration;

/// Longest hold.
const LONGEST: Duration = Duration::from_millis(2);
/// A near server answers a batch within this time, and [`EACH`] for each of its commands.
const NEAR: Duration = Duration::from_micros(300);
const EACH: Duration = Duration::from_micros(40);
/// So many commands have to be in flight at a time.
const CROWD: usize = 3;
/// After so many commands without it, a crowd is taken to be smaller by one.
const DECAY: u8 = 32;
/// How many successes are counted at most.
const CREDIT: u8 = 8;
/// How many successes one failure costs.
const PENALTY: u8 = 2;

/// What batches took lately.
#[derive(Debug, Default)]
pub(super) struct Hold {
    /// A moving average.
    time: Duration,
    credit: u8,
    /// How many commands were in flight lately, and for how many commands that was not so.
    crowd: usize,
    age: u8,
}

impl Hold {
    /// For how long submissions may wait for a batch that is sent now.
    pub(super) fn time(&self) -> Duration {
        let pays = self.credit > 0 && self.crowd >= CROWD;
        if pays { (self.time * 2).min(LONGEST) } else { Duration::ZERO }
    }

    /// Notes how many commands are in flight.
    pub(super) fn note_in_flight(&mut self, number: usize) {
        self.age += 1;
        if number >= self.crowd {
            (self.crowd, self.age) = (number, 0);
        } else if self.age >= DECAY {
            (self.crowd, self.age) = (self.crowd - 1, 0);
        }
    }

    /// Counts how long a batch of so many commands took.
    pub(super) fn learn(&mut self, time: Duration, commands: usize) {
        let is_near = time <= NEAR + EACH * u32::try_from(commands).unwrap_or(u32::MAX);
        self.credit = if is_near { (self.credit + 1).min(CREDIT) } else { self.credit.saturating_sub(PENALTY) };
        self.time = if self.time.is_zero() { time } else { (self.time * 7 + time) / 8 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: Duration = Duration::from_micros(200);

    fn hold(threads: usize, batch: Duration) -> Hold {
        let mut hold = Hold::default();
        for _ in 0..threads {
            hold.note_in_flight(threads);
            hold.learn(batch, threads);
        }
        hold
    }

    #[test]
    fn a_crowd_at_near_servers_is_held_for_as_long_as_its_batches_take() {
        assert_eq!(hold(3, BATCH).time(), BATCH * 2);
        assert_eq!(hold(64, 10 * BATCH).time(), LONGEST);
    }

    #[test]
    fn two_threads_and_far_servers_are_not_held() {
        assert_eq!(hold(2, BATCH).time(), Duration::ZERO);
        assert_eq!(hold(16, Duration::from_millis(20)).time(), Duration::ZERO);
        assert_eq!(Hold::default().time(), Duration::ZERO);
    }

    #[test]
    fn a_crowd_that_has_left_is_forgotten() {
        let mut hold = hold(4, BATCH);
        for _ in 0..DECAY {
            hold.note_in_flight(1);
        }
        assert!(hold.time() > Duration::ZERO, "three are still taken to be here");
        for _ in 0..DECAY {
            hold.note_in_flight(1);
        }
        assert_eq!(hold.time(), Duration::ZERO);
    }

    #[test]
    fn a_late_batch_among_many_changes_little() {
        let mut hold = hold(4, BATCH);
        hold.learn(Duration::from_secs(1), 4);
        assert!(hold.time() > Duration::ZERO && hold.time() <= LONGEST);
    }
}
