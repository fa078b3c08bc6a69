//! One call that wants the lock, among nodes that answer what they like, when they like, on a clock
//! that runs as it likes.
//!
//! Input: the number of nodes and the config, then what happens until the bytes are used up. Beside
//! the machine runs a model that knows the rules of the specification and shares nothing with the
//! code but the types of its arguments: votes are counted in arrays, times are numbers. Rules:
//! 1. Won if, and only if, a quorum granted and the clock is before the lease's end; that end
//!    counts from the attempt's start.
//! 2. Each attempt has a token of its own. Before the next attempt, and before the end if it is not
//!    won, every node that the lost one may have reached and that has not refused it is asked to
//!    undo it, and no other node is.
//! 3. An attempt may be answered for the node timeout, and not beyond the lease's end or the
//!    caller's deadline.
//! 4. A wait lasts between the shortest and the longest delay, less only where the caller's
//!    deadline comes first, and never goes beyond that.
//! 5. One attempt is one; a deadline that has come, or a cluster that was away for as long as is
//!    waited for it, ends it, and nothing else does. The result distinguishes a held lock, too few
//!    answers, and a quorum that came too late.
//! 6. A cancelled call ends so, unless it had ended. What has ended stays ended, in the same way.

use super::Input;
use quorumlock::algorithm::acquire::{Acquire, AcquireConfig, Output, Verdict, WaitLimit};
use quorumlock::algorithm::backoff::Backoff;
use quorumlock::algorithm::lease::Ttl;
use quorumlock::algorithm::node::{NodeId, NodeSet};
use quorumlock::algorithm::time::{LeaseTime, Readings, Timestamp};
use quorumlock::algorithm::vote::{Tally, Vote};
use quorumlock::fault::{Cause, Fault, Phase};
use std::time::Duration;

const MILLI: u64 = 1_000_000;
const TTLS: [u64; 6] = [1_000, 3, 10, 100, 30_000, 86_400_000];
/// Hundredths of the time to live.
const DRIFTS: [u64; 3] = [1, 0, 10];
const TIMES: [u64; 8] = [50, 0, 1, 2, 7, 250, 3_000, u64::MAX / MILLI];
/// Where clocks begin.
const ORIGINS: [u64; 4] = [0, 1, 1 << 50, u64::MAX - 5_000 * MILLI];
const MOST_NODES: usize = 9;
/// Steps of one input.
const STEPS: usize = 2_000;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let Some(mut run) = Run::begin(&mut input) else {
        return;
    };
    for _ in 0..STEPS {
        if input.is_empty() || run.has_ended {
            break;
        }
        run.step(&mut input);
    }
    run.end();
}

struct Run {
    machine: Acquire,
    model: Model,
    now: u64,
    /// By how much the lease clock is ahead, because the wall clock was set.
    ahead: u64,
    has_ended: bool,
}

/// What the rules require.
struct Model {
    nodes: usize,
    validity: u64,
    node_timeout: u64,
    /// What the nodes of the last attempt had.
    budget: u64,
    delays: (u64, u64),
    wait_limit: WaitLimit,
    started: u64,
    /// When the cluster was last seen to be there.
    seen_at: u64,
    was_held: bool,
    has_failed: bool,
    attempts: u32,
    /// The nodes on which the key of the last attempt may be. One more attempt is one more token.
    left_behind: [bool; MOST_NODES],
    expects: Expected,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Expected {
    Attempt,
    Done(Verdict),
    Wait {
        earliest: u64,
        latest: u64,
        then: Verdict,
    },
}

impl Run {
    fn begin(input: &mut Input<'_>) -> Option<Run> {
        let nodes = 1 + usize::from(input.byte()) % MOST_NODES;
        let millis = pick(&TTLS, input);
        let drift = pick(&DRIFTS, input);
        let ttl = Ttl::new(
            Duration::from_millis(millis),
            drift as f64 / 100.0,
            Duration::MAX,
        );
        let validity = (millis * MILLI)
            .checked_sub(millis * MILLI * drift / 100 + 2 * MILLI)
            .filter(|left| *left > 0);
        assert_eq!(
            ttl.is_ok(),
            validity.is_some(),
            "{millis} ms less {drift} hundredths and two milliseconds"
        );
        let ttl = ttl.ok()?;
        let shortest = pick(&TIMES, input) * MILLI;
        let longest = pick(&TIMES, input) * MILLI;
        let now = pick(&ORIGINS, input);
        let wait_limit = match input.byte() % 4 {
            0 => WaitLimit::Until(time(now.saturating_add(pick(&TIMES, input) * MILLI))),
            1 => WaitLimit::WhileAvailable(Duration::from_nanos(pick(&TIMES, input) * MILLI)),
            2 => WaitLimit::Once,
            // It has passed.
            _ => WaitLimit::Until(time(now.saturating_sub(pick(&TIMES, input)))),
        };
        let node_timeout = pick(&TIMES, input) * MILLI;
        let backoff = Backoff::new(
            Duration::from_nanos(shortest),
            Duration::from_nanos(longest),
        );
        let config = AcquireConfig {
            ttl,
            node_timeout: Duration::from_nanos(node_timeout),
            wait_limit,
            backoff,
            permanent_fault_limit: Duration::MAX,
            queues: false,
            first_in_turn: None,
        };
        let model = Model {
            nodes,
            validity: validity?,
            node_timeout,
            budget: node_timeout,
            delays: (shortest.min(longest), longest),
            wait_limit,
            started: now,
            seen_at: now,
            was_held: false,
            has_failed: false,
            attempts: 0,
            left_behind: [false; MOST_NODES],
            expects: Expected::Attempt,
        };
        Some(Run {
            machine: Acquire::new(config, time(now)),
            model,
            now,
            ahead: 0,
            has_ended: false,
        })
    }

    /// Does what the machine returns, or cancels it.
    fn step(&mut self, input: &mut Input<'_>) {
        let choice = input.byte();
        if choice >= 248 {
            self.machine.cancelled();
            self.model.cancelled();
        }
        match self.machine.poll() {
            Output::Attempt => {
                assert_eq!(self.model.expects, Expected::Attempt);
                assert!(
                    self.model.nothing_left(),
                    "an attempt is begun before the last one is undone"
                );
                self.attempt(input);
            }
            Output::Undo(nodes) => {
                assert!(!nodes.is_empty());
                for index in 0..MOST_NODES {
                    let is_asked = nodes.contains(NodeId::new(index));
                    assert_eq!(
                        is_asked, self.model.left_behind[index],
                        "undone on {nodes:?}, node {index}"
                    );
                }
                assert!(nodes.iter().all(|node| node.index() < self.model.nodes));
                self.model.left_behind = [false; MOST_NODES];
            }
            Output::Wait(until) => {
                let Expected::Wait {
                    earliest, latest, ..
                } = self.model.expects
                else {
                    panic!("a wait, and not {:?}", self.model.expects)
                };
                assert!(
                    self.model.nothing_left(),
                    "a wait before the last attempt is undone"
                );
                let until = until.as_nanos();
                assert!(
                    (earliest..=latest).contains(&until),
                    "a wait until {until}, and not {earliest} to {latest}"
                );
                // To its end, or woken early, which ends nothing, or late.
                self.now = match choice % 4 {
                    0 => self.now.saturating_add(moment(input)).max(until),
                    1 => self
                        .now
                        .saturating_add(moment(input))
                        .min(until)
                        .max(self.now),
                    _ => until.max(self.now),
                };
                self.machine.woken(time(self.now));
                if self.now >= until {
                    self.model.woken(self.now);
                }
            }
            Output::Raise(_) => panic!("a plain lock has no fence"),
            Output::Store(_) | Output::Enqueue => panic!("a call without a queue has no entry"),
            Output::Done(_) => self.has_ended = true,
        }
    }

    /// One attempt: votes and moments in any order, until it is decided or out of time.
    fn attempt(&mut self, input: &mut Input<'_>) {
        self.now = self.now.saturating_add(moment(input));
        let t0 = self.now;
        let begun = self.readings();
        let connects = input.byte() >= 192;
        let deadline = self.machine.attempt_deadline(time(t0), connects).as_nanos();
        self.model.budget = self
            .model
            .node_timeout
            .saturating_mul(if connects { 2 } else { 1 });
        assert_eq!(deadline, self.model.attempt_deadline(t0));
        let mut tally = Tally::new(self.model.nodes);
        let mut votes = [None; MOST_NODES];
        let mut reached = NodeSet::EMPTY;
        while self.model.is_open(&votes) && self.now < deadline && !input.is_empty() {
            let choice = input.byte();
            if choice >= 224 {
                self.now = self.now.saturating_add(moment(input));
                continue;
            }
            let index = usize::from(choice / 8) % self.model.nodes;
            let vote = vote(choice % 8);
            // A node may answer once more; its first answer counts.
            assert_eq!(
                tally.record(NodeId::new(index), vote),
                votes[index].is_none()
            );
            votes[index] = votes[index].or(Some(vote));
            // A node that answers was reached. A node that does not may have been.
            if !matches!(vote, Vote::Fault(_)) || choice.is_multiple_of(2) {
                reached.insert(NodeId::new(index));
            }
        }
        let silent = input.byte();
        for index in 0..self.model.nodes {
            if silent >> (index % 8) & 1 == 1 {
                reached.insert(NodeId::new(index));
            }
            // Their time is over, whether or not it is written down.
            if votes[index].is_none() && self.model.is_open(&votes) && silent < 128 {
                let fault = Vote::Fault(Fault::new(Phase::Reply, Cause::TimedOut));
                votes[index] = Some(fault);
                assert!(tally.record(NodeId::new(index), fault));
            }
        }
        // The clock is read after the last answer, and may have gone on.
        self.now = self.now.saturating_add(moment(input));
        // And the wall clock may have been set forward.
        if input.byte() >= 240 {
            self.ahead = self.ahead.saturating_add(moment(input));
        }
        let now = self.readings();
        self.machine
            .attempted(begun, &tally, reached, now, input.number());
        self.model.attempted(begun, &votes, reached, now);
        assert_eq!(self.machine.attempts(), self.model.attempts);
        let is_won = matches!(self.model.expects, Expected::Done(Verdict::Acquired(_)));
        assert_eq!(self.machine.is_lost(), !is_won);
        assert!(is_won || self.machine.is_held() == self.model.was_held);
    }

    fn readings(&self) -> Readings {
        Readings {
            steady: time(self.now),
            lease: LeaseTime::from_nanos(self.now.saturating_add(self.ahead)),
        }
    }

    /// Follows the machine to its end if there is one, and sees to it that it stays there.
    fn end(mut self) {
        let output = self.machine.poll();
        if let Output::Undo(nodes) = output {
            assert!(
                nodes
                    .iter()
                    .all(|node| self.model.left_behind[node.index()])
            );
            assert_eq!(
                nodes.len(),
                self.model.left_behind.iter().filter(|left| **left).count()
            );
            self.model.left_behind = [false; MOST_NODES];
        }
        let Output::Done(verdict) = self.machine.poll() else {
            return;
        };
        assert_eq!(self.model.expects, Expected::Done(verdict));
        assert!(
            matches!(verdict, Verdict::Acquired(_)) || self.model.nothing_left(),
            "ended, and not undone"
        );
        self.machine.cancelled();
        assert_eq!(self.machine.poll(), Output::Done(verdict));
        self.machine.woken(time(u64::MAX));
        assert_eq!(self.machine.poll(), Output::Done(verdict));
    }
}

impl Model {
    fn quorum(&self) -> usize {
        (1..=self.nodes)
            .find(|count| 2 * count > self.nodes)
            .unwrap_or(self.nodes)
    }

    /// Granted, refused, failed, and not decided.
    fn count(&self, votes: &[Option<Vote>; MOST_NODES]) -> (usize, usize, usize, usize) {
        let count = |is: fn(&Option<Vote>) -> bool| {
            votes[..self.nodes].iter().filter(|vote| is(vote)).count()
        };
        (
            count(|vote| matches!(vote, Some(Vote::Granted))),
            count(|vote| matches!(vote, Some(Vote::Refused | Vote::Absent))),
            count(|vote| matches!(vote, Some(Vote::Fault(_)))),
            count(Option::is_none),
        )
    }

    fn is_open(&self, votes: &[Option<Vote>; MOST_NODES]) -> bool {
        let (granted, _, _, undecided) = self.count(votes);
        granted < self.quorum() && granted + undecided >= self.quorum()
    }

    /// The caller's deadline, if it is one: one that had passed at the start is not.
    fn deadline(&self) -> Option<u64> {
        match self.wait_limit {
            WaitLimit::Until(deadline) => {
                Some(deadline.as_nanos()).filter(|deadline| *deadline > self.started)
            }
            WaitLimit::Once | WaitLimit::WhileAvailable(_) => None,
        }
    }

    fn attempt_deadline(&self, t0: u64) -> u64 {
        let answer = t0.saturating_add(self.budget.min(self.validity));
        answer.min(self.deadline().unwrap_or(u64::MAX))
    }

    fn attempted(
        &mut self,
        begun: Readings,
        votes: &[Option<Vote>; MOST_NODES],
        reached: NodeSet,
        clocks: Readings,
    ) {
        let t0 = begun.steady.as_nanos();
        let now = clocks.steady.as_nanos();
        self.attempts += 1;
        let (granted, refused, failed, undecided) = self.count(votes);
        let end = LeaseTime::from_nanos(begun.lease.as_nanos().saturating_add(self.validity));
        if granted >= self.quorum() && clocks.lease < end {
            let lease = quorumlock::algorithm::lease::Validity::until(end);
            self.expects = Expected::Done(Verdict::Acquired(lease));
            return;
        }
        for (index, vote) in votes[..self.nodes].iter().enumerate() {
            let is_refused = matches!(vote, Some(Vote::Refused));
            self.left_behind[index] = reached.contains(NodeId::new(index)) && !is_refused;
        }
        let is_held = granted + undecided < self.quorum()
            && refused > 0
            && self.nodes - failed >= self.quorum();
        let left = self
            .deadline()
            .map_or(u64::MAX, |deadline| deadline.saturating_sub(t0));
        let is_over = now.saturating_sub(t0) >= left;
        // The caller's deadline left less than a node may take, and it has come.
        let is_cut = left < self.budget && is_over;
        // In less than a millisecond no node is expected to answer.
        let has_timed_out = !self.has_failed && left < MILLI && is_over;
        let verdict = match granted >= self.quorum() {
            true => Verdict::TooLate,
            false if is_held || is_cut && (self.was_held || has_timed_out) => Verdict::Held,
            false => Verdict::Unavailable,
        };
        self.has_failed =
            (self.has_failed || verdict == Verdict::Unavailable && !is_cut) && !is_held;
        let was_held = std::mem::replace(&mut self.was_held, verdict == Verdict::Held);
        if self.was_held {
            self.seen_at = now;
        } else if let (true, WaitLimit::WhileAvailable(limit)) = (was_held, self.wait_limit) {
            // The time asleep counts for half of the limit at most.
            let half = u64::try_from(limit.as_nanos() / 2).unwrap_or(u64::MAX);
            let asleep = t0.saturating_sub(self.seen_at);
            self.seen_at = self.seen_at.saturating_add(asleep.saturating_sub(half));
        }
        let end = match self.wait_limit {
            WaitLimit::Once => Some(now),
            WaitLimit::Until(deadline) => Some(deadline.as_nanos()),
            WaitLimit::WhileAvailable(time) => {
                let waited = Duration::from_nanos(now.saturating_sub(self.seen_at));
                (verdict != Verdict::Held && waited >= time).then_some(now)
            }
        };
        let (shortest, longest) = self.delays;
        self.expects = match end {
            Some(end) if end <= now => Expected::Done(verdict),
            end => {
                let end = end.unwrap_or(u64::MAX);
                let earliest = now.saturating_add(shortest);
                let latest = now.saturating_add(longest);
                Expected::Wait {
                    earliest: earliest.min(end),
                    latest: latest.min(end),
                    then: verdict,
                }
            }
        };
    }

    fn woken(&mut self, now: u64) {
        let Expected::Wait { then, .. } = self.expects else {
            return;
        };
        self.expects = match self.wait_limit {
            WaitLimit::Until(deadline) if now >= deadline.as_nanos() => Expected::Done(then),
            _ => Expected::Attempt,
        };
    }

    fn cancelled(&mut self) {
        if !matches!(self.expects, Expected::Done(_)) {
            self.expects = Expected::Done(Verdict::Cancelled);
        }
    }

    fn nothing_left(&self) -> bool {
        self.left_behind.iter().all(|left| !left)
    }
}

fn vote(kind: u8) -> Vote {
    match kind {
        0..=2 => Vote::Granted,
        3..=4 => Vote::Refused,
        5 => Vote::Absent,
        _ => Vote::Fault(Fault::new(Phase::Reply, Cause::TimedOut)),
    }
}

/// Nothing, or from nanoseconds to ages, most often milliseconds.
fn moment(input: &mut Input<'_>) -> u64 {
    let byte = u64::from(input.byte());
    match byte {
        0..128 => 0,
        128..240 => (byte - 127) * MILLI,
        240..254 => 1 << ((byte - 240) * 4),
        254 => input.number() % (1 << 40),
        _ => input.number(),
    }
}

fn pick(choices: &[u64], input: &mut Input<'_>) -> u64 {
    choices[usize::from(input.byte()) % choices.len()]
}

fn time(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}
