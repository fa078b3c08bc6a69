//! Taking the lock: attempt, undo, back off, and again, until it is won or there is reason to stop.
//!
//! ```text
//!            ┌──────────────────────────────────────────────┐
//!            ▼                                              │
//!         Attempt ──► won in time ──► Done(Acquired)        │
//!            │                                              │
//!          lost ──► Undo ──► stop? ──► Done(Held | …)       │
//!                              │                            │
//!                              └─────► Wait ──► woken ──────┘
//!                                       └─────► cancelled ──► Done(Cancelled)
//! ```
//!
//! [`Acquire`] is a value on the stack of the thread that wants the lock. It knows no socket, no clock and no entropy.
//! How to drive it:
//!
//! 1. Call [`poll`](Acquire::poll) and do what it says.
//! 2. [`Output::Attempt`]: draw a fresh owner token, read the clock as `t0`, send the `SET`s, and collect votes until the
//!    tally is decided or [`attempt_deadline`](Acquire::attempt_deadline) has come, at which the undecided nodes are
//!    timed out. Then read the clock and call [`attempted`](Acquire::attempted).
//! 3. [`Output::Undo`]: queue the release of that token on these nodes, behind the `SET`, and wait for nothing.
//! 4. [`Output::Wait`]: sleep until then, or until something ends the wait early; then call [`woken`](Acquire::woken), or
//!    [`cancelled`](Acquire::cancelled), which may also be called at any other time but during an attempt.
//! 5. [`Output::Done`]: stop. A token belongs to one attempt; the winning one is the last that was drawn.

use super::backoff::Backoff;
use super::lease::{Lease, Ttl};
use super::node::NodeSet;
use super::time::Timestamp;
use super::vote::{Outcome, Tally};
use std::time::Duration;

/// How long to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// One attempt, no wait.
    Once,
    /// Until then at the latest.
    Until(Timestamp),
    /// As long as a quorum of nodes answers at least once in this time.
    WhileAvailable(Duration),
}

/// What does not change from attempt to attempt.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The time to live that is asked for.
    pub ttl: Ttl,
    /// How long each node has to answer.
    pub node_timeout: Duration,
    /// How long to try.
    pub patience: Patience,
    /// The delays between attempts.
    pub backoff: Backoff,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Make an attempt (step 2).
    Attempt,
    /// Release what the lost attempt may have set on these nodes (step 3).
    Undo(NodeSet),
    /// Sleep until then at the latest (step 4).
    Wait(Timestamp),
    /// Stop (step 5).
    Done(Verdict),
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The lock is ours for the time of this lease.
    Acquired(Lease),
    /// The wait was cancelled.
    Cancelled,
    /// Somebody else holds it.
    Held,
    /// A quorum granted, but only after the lease had ended.
    TooLate,
    /// Too few nodes can answer.
    Unavailable,
}

/// Taking the lock, step by step.
#[derive(Clone, Debug)]
pub struct Acquire {
    terms: Terms,
    state: State,
    attempts: u32,
    started: Timestamp,
    /// Whether the last attempt that had its full time found the lock held.
    held: bool,
    /// When the cluster was last seen to be there: the start, or the last attempt that a quorum answered in time.
    available_at: Timestamp,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Attempting,
    Lost { undo: NodeSet, then: After },
    Waiting { until: Timestamp, last: Verdict },
    Done(Verdict),
}

#[derive(Clone, Copy, Debug)]
enum After {
    Stop(Verdict),
    Wait { until: Timestamp, last: Verdict },
}

impl Acquire {
    /// Begins at `now`.
    pub fn new(terms: Terms, now: Timestamp) -> Acquire {
        Acquire { terms, state: State::Attempting, attempts: 0, started: now, held: false, available_at: now }
    }

    /// What to do next.
    pub fn poll(&mut self) -> Output {
        match self.state {
            State::Attempting => Output::Attempt,
            State::Lost { undo, then } => {
                self.state = match then {
                    After::Stop(verdict) => State::Done(verdict),
                    After::Wait { until, last } => State::Waiting { until, last },
                };
                if undo.is_empty() { self.poll() } else { Output::Undo(undo) }
            }
            State::Waiting { until, .. } => Output::Wait(until),
            State::Done(verdict) => Output::Done(verdict),
        }
    }

    /// Until when the nodes of an attempt that began at `t0` may answer: for the node timeout, but no longer than the
    /// answer is of use.
    pub fn attempt_deadline(&self, t0: Timestamp) -> Timestamp {
        let answer = t0.after(self.terms.node_timeout).min(self.terms.ttl.lease_from(t0).end());
        match self.terms.patience {
            // Patience that had run out when the call was made still buys one attempt.
            Patience::Until(deadline) if deadline > self.started => answer.min(deadline),
            _ => answer,
        }
    }

    /// Takes the count of an attempt that began at `t0` and may have written to the nodes `reached`. `now` is read after
    /// the last counted reply was; `random` is drawn evenly from all of `u64`.
    pub fn attempted(&mut self, t0: Timestamp, tally: &Tally, reached: NodeSet, now: Timestamp, random: u64) {
        self.attempts = self.attempts.saturating_add(1);
        let lease = self.terms.ttl.lease_from(t0);
        let lost = match tally.acquisition() {
            Outcome::Won if lease.is_valid(now) => {
                self.state = State::Done(Verdict::Acquired(lease));
                return;
            }
            Outcome::Won => Verdict::TooLate,
            Outcome::Held => Verdict::Held,
            // The caller's deadline cut this attempt short, so it says nothing against what the one before it found.
            Outcome::Pending | Outcome::Unavailable if self.held && self.is_cut_short(t0) => Verdict::Held,
            Outcome::Pending | Outcome::Unavailable => Verdict::Unavailable,
        };
        self.held = lost == Verdict::Held;
        if self.held {
            self.available_at = now;
        }
        let undo = reached.without(tally.refused());
        self.state = State::Lost { undo, then: self.after_loss(lost, now, random) };
    }

    /// The wait is over.
    pub fn woken(&mut self, now: Timestamp) {
        if let State::Waiting { last, .. } = self.state {
            self.state = match self.terms.patience {
                Patience::Until(deadline) if now >= deadline => State::Done(last),
                _ => State::Attempting,
            };
        }
    }

    /// The wait was cancelled. What a lost attempt has left behind is still undone first.
    pub fn cancelled(&mut self) {
        self.state = match self.state {
            State::Attempting | State::Waiting { .. } => State::Done(Verdict::Cancelled),
            State::Lost { undo, then: After::Wait { .. } } => {
                State::Lost { undo, then: After::Stop(Verdict::Cancelled) }
            }
            ended @ (State::Lost { then: After::Stop(_), .. } | State::Done(_)) => ended,
        };
    }

    /// Whether the last attempt that had its full time found the lock held.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Whether the attempt just counted was lost.
    pub fn is_lost(&self) -> bool {
        matches!(self.state, State::Lost { .. })
    }

    /// How many attempts were made.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    fn is_cut_short(&self, t0: Timestamp) -> bool {
        matches!(self.terms.patience, Patience::Until(deadline) if self.started < deadline && deadline < t0.after(self.terms.node_timeout))
    }

    fn after_loss(&mut self, lost: Verdict, now: Timestamp, random: u64) -> After {
        let mut delay = self.terms.backoff.next_delay(random);
        match self.terms.patience {
            Patience::Once => return After::Stop(lost),
            Patience::Until(deadline) => {
                let left = deadline.since(now);
                if left.is_zero() {
                    return After::Stop(lost);
                }
                // The last stretch is halved, and halved again: the longer the delays have grown, the worse it would be
                // to sleep through a release just before the deadline. The last of all is slept to its end.
                delay = delay.min((left / 2).max(self.terms.backoff.min())).min(left);
            }
            Patience::WhileAvailable(limit) => {
                if lost != Verdict::Held && now.since(self.available_at) >= limit {
                    return After::Stop(lost);
                }
            }
        }
        After::Wait { until: now.after(delay), last: lost }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fault::{Cause, Fault, Phase};
    use super::super::lease::MAX_TTL;
    use super::super::node::NodeId;
    use super::super::vote::Vote;
    use super::*;

    const NODE_TIMEOUT: Duration = Duration::from_millis(50);

    fn at(millis: u64) -> Timestamp {
        Timestamp::ORIGIN.after(Duration::from_millis(millis))
    }

    fn acquire(patience: Patience) -> Acquire {
        let ttl = Ttl::new(Duration::from_secs(1), 0.01, MAX_TTL).unwrap();
        let backoff = Backoff::new(Duration::from_millis(2), Duration::from_millis(250));
        Acquire::new(Terms { ttl, node_timeout: NODE_TIMEOUT, patience, backoff }, at(0))
    }

    fn tally(row: &str) -> (Tally, NodeSet) {
        let mut tally = Tally::new(row.len());
        for (index, letter) in row.chars().enumerate() {
            let vote = match letter {
                'g' => Vote::Granted,
                'r' => Vote::Refused,
                'x' => Vote::Fault(Fault::new(Phase::Reply, Cause::TimedOut)),
                _ => continue,
            };
            tally.record(NodeId::new(index), vote);
        }
        (tally, (0..row.len()).map(NodeId::new).collect())
    }

    #[test]
    fn an_attempt_that_came_too_late_says_nothing_against_the_one_before() {
        let mut machine = acquire(Patience::Until(at(100)));
        assert!(matches!(attempt(&mut machine, "rrr", 0, 1), Output::Wait(_)));
        machine.woken(Timestamp::from_nanos(99_999_000));
        assert_eq!(machine.poll(), Output::Attempt);
        assert_eq!(machine.attempt_deadline(at(100)), at(100), "no time for anybody to answer");
        let (tally, reached) = tally("xxx");
        machine.attempted(at(100), &tally, reached, at(100), 0);
        while let Output::Undo(_) = machine.poll() {}
        assert_eq!(machine.poll(), Output::Done(Verdict::Held));
    }

    /// One attempt that begins at `t0` and is decided at `now`.
    fn attempt(machine: &mut Acquire, row: &str, t0: u64, now: u64) -> Output {
        assert_eq!(machine.poll(), Output::Attempt);
        let (tally, reached) = tally(row);
        machine.attempted(at(t0), &tally, reached, at(now), u64::MAX);
        machine.poll()
    }

    fn nodes(indices: &[usize]) -> NodeSet {
        indices.iter().copied().map(NodeId::new).collect()
    }

    #[test]
    fn a_quorum_in_time_wins_and_the_lease_counts_from_the_start() {
        let mut machine = acquire(Patience::Once);
        let Output::Done(Verdict::Acquired(lease)) = attempt(&mut machine, "ggg__", 100, 140) else { panic!() };
        assert_eq!(lease.end(), at(100 + 988));
    }

    #[test]
    fn a_quorum_after_the_lease_has_ended_is_undone() {
        for (decided, won) in [(1087, true), (1088, false), (5000, false)] {
            let mut machine = acquire(Patience::Once);
            let output = attempt(&mut machine, "ggr", 100, decided);
            if won {
                assert!(matches!(output, Output::Done(Verdict::Acquired(_))), "{decided}");
            } else {
                assert_eq!(output, Output::Undo(nodes(&[0, 1])), "{decided}");
                assert_eq!(machine.poll(), Output::Done(Verdict::TooLate));
            }
        }
    }

    #[test]
    fn a_loss_is_undone_wherever_it_was_not_definitely_refused() {
        let mut machine = acquire(Patience::Once);
        assert_eq!(attempt(&mut machine, "grx_r", 0, 50), Output::Undo(nodes(&[0, 2, 3])));
        assert_eq!(machine.poll(), Output::Done(Verdict::Held));

        let mut machine = acquire(Patience::Once);
        assert_eq!(attempt(&mut machine, "rrr", 0, 1), Output::Done(Verdict::Held));

        let mut machine = acquire(Patience::Once);
        assert_eq!(machine.poll(), Output::Attempt);
        machine.attempted(at(0), &tally("xxg").0, nodes(&[2]), at(1), 0);
        assert_eq!(machine.poll(), Output::Undo(nodes(&[2])));
        assert_eq!(machine.poll(), Output::Done(Verdict::Unavailable));
    }

    #[test]
    fn while_held_it_waits_longer_and_longer_and_tries_again() {
        let mut machine = acquire(Patience::WhileAvailable(Duration::from_secs(3)));
        let mut now = 0;
        for delay in [6, 18, 54, 162, 250, 250] {
            assert_eq!(attempt(&mut machine, "rrr", now, now + 1), Output::Wait(at(now + 1 + delay)));
            machine.woken(at(now + 2));
            now += 1000;
        }
        assert_eq!(machine.attempts(), 6);
    }

    #[test]
    fn it_gives_up_when_no_quorum_has_answered_for_long_enough() {
        let mut machine = acquire(Patience::WhileAvailable(Duration::from_secs(3)));
        assert!(matches!(attempt(&mut machine, "xx_", 0, 50), Output::Undo(_)));
        assert!(matches!(machine.poll(), Output::Wait(_)));
        machine.woken(at(100));
        // A quorum answers: the time starts anew.
        assert!(matches!(attempt(&mut machine, "rr_", 1000, 1001), Output::Undo(_)));
        assert!(matches!(machine.poll(), Output::Wait(_)));
        machine.woken(at(1100));
        for (now, gives_up) in [(2000, false), (4000, false), (4001, true)] {
            assert!(matches!(attempt(&mut machine, "xx_", now - 50, now), Output::Undo(_)));
            match machine.poll() {
                Output::Wait(_) => assert!(!gives_up),
                output => assert_eq!((output, gives_up), (Output::Done(Verdict::Unavailable), true)),
            }
            machine.woken(at(now));
        }
    }

    #[test]
    fn a_hopelessly_short_lease_does_not_retry_for_ever() {
        let mut machine = acquire(Patience::WhileAvailable(Duration::from_secs(3)));
        assert!(matches!(attempt(&mut machine, "ggg", 0, 5000), Output::Undo(_)));
        assert_eq!(machine.poll(), Output::Done(Verdict::TooLate));
    }

    #[test]
    fn a_deadline_bounds_attempts_and_waits() {
        let mut machine = acquire(Patience::Until(at(100)));
        assert_eq!(machine.attempt_deadline(at(0)), at(50));
        assert_eq!(machine.attempt_deadline(at(70)), at(100));
        let mut now = 0;
        let mut attempts = Vec::new();
        let verdict = loop {
            attempts.push(now);
            match attempt(&mut machine, "rrr", now, now) {
                Output::Wait(until) => {
                    assert!(until <= at(100));
                    now = until.since(at(0)).as_millis() as u64;
                    machine.woken(until);
                    if let Output::Done(verdict) = machine.poll() {
                        break verdict;
                    }
                }
                Output::Done(verdict) => break verdict,
                output => panic!("{output:?}"),
            }
        };
        assert_eq!(verdict, Verdict::Held);
        assert_eq!(attempts, [0, 6, 24, 62, 81, 90, 95, 97, 99]);
    }

    #[test]
    fn an_attempt_that_the_deadline_cut_short_does_not_turn_held_into_unavailable() {
        for (first, verdict) in [("rrr", Verdict::Held), ("xxx", Verdict::Unavailable)] {
            let mut machine = acquire(Patience::Until(at(100)));
            let mut output = attempt(&mut machine, first, 0, 50);
            if let Output::Undo(_) = output {
                output = machine.poll();
            }
            assert!(matches!(output, Output::Wait(_)), "{output:?}");
            machine.woken(at(98));
            assert_eq!(attempt(&mut machine, "xxx", 98, 100), Output::Undo(nodes(&[0, 1, 2])));
            assert_eq!(machine.poll(), Output::Done(verdict));
        }
    }

    #[test]
    fn a_deadline_in_the_past_still_buys_one_whole_attempt() {
        let mut machine = acquire(Patience::Until(at(0)));
        assert_eq!(machine.attempt_deadline(at(10)), at(60));
        assert_eq!(attempt(&mut machine, "rrr", 10, 11), Output::Done(Verdict::Held));
    }

    #[test]
    fn an_answer_after_the_lease_would_be_of_no_use() {
        let ttl = Ttl::new(Duration::from_millis(10), 0.01, MAX_TTL).unwrap();
        let machine = Acquire::new(Terms { ttl, ..acquire(Patience::Once).terms }, at(0));
        assert_eq!(machine.attempt_deadline(at(0)), Timestamp::from_nanos(7_900_000));
    }

    #[test]
    fn a_cancelled_wait_ends() {
        let mut machine = acquire(Patience::WhileAvailable(Duration::from_secs(3)));
        assert!(matches!(attempt(&mut machine, "rrr", 0, 1), Output::Wait(_)));
        machine.cancelled();
        assert_eq!(machine.poll(), Output::Done(Verdict::Cancelled));
    }

    #[test]
    fn a_cancelled_call_undoes_what_it_left_behind() {
        let mut machine = acquire(Patience::WhileAvailable(Duration::from_secs(3)));
        assert_eq!(machine.poll(), Output::Attempt);
        let (tally, reached) = tally("grr");
        machine.attempted(at(0), &tally, reached, at(1), 0);
        machine.cancelled();
        assert_eq!(machine.poll(), Output::Undo(nodes(&[0])));
        assert_eq!(machine.poll(), Output::Done(Verdict::Cancelled));
    }

    #[test]
    fn cancelling_does_not_take_a_won_lock_away() {
        let mut machine = acquire(Patience::Once);
        assert!(matches!(attempt(&mut machine, "ggg", 0, 1), Output::Done(Verdict::Acquired(_))));
        machine.cancelled();
        assert!(matches!(machine.poll(), Output::Done(Verdict::Acquired(_))));
    }
}
