//! Taking the lock: attempt, undo, back off, and try again, until it is won or there is a reason to stop.
//!
//! ```text
//!            ┌──────────────────────────────────────────────┐
//!            ▼                                              │
//!         Attempt ──► won in time ──► Done(Acquired)        │
//!            │  │                       ▲                   │
//!            │  └─► Raise ── won in time┘                   │
//!            ▼        │                                     │
//!          lost ◄─────┘                                     │
//!            └────► Undo ──► stop? ──► Done(Held | …)       │
//!                              │                            │
//!                              └─────► Wait ──► woken ──────┘
//!                                       └─────► cancelled ──► Done(Cancelled)
//! ```
//!
//! [`Acquire`] is a value on the stack of the thread that wants the lock. It knows no socket, no clock and no entropy.
//! How to drive it:
//!
//! 1. Call [`poll`](Acquire::poll) and do what it says.
//! 2. [`Output::Attempt`]: draw a fresh owner token, read both clocks as `t0`, send the `SET`s, and collect votes until
//!    the tally is decided or [`attempt_deadline`](Acquire::attempt_deadline) has come, at which the undecided nodes
//!    are timed out. Then read both clocks and call [`attempted`](Acquire::attempted); for a fenced lock, whose nodes
//!    are asked as [`fenced`](crate::protocol::fenced) says, call [`attempted_fenced`](Acquire::attempted_fenced) with
//!    what the fences come to, if any node granted.
//! 3. [`Output::Raise`]: only for a fenced lock. Send the raise to the nodes that are behind, and collect votes, with
//!    those of the nodes that have the fence counted already, until [`raise_deadline`](Acquire::raise_deadline). Then
//!    read the clock and call [`raised`](Acquire::raised).
//! 4. [`Output::Undo`]: queue the release of that token on these nodes, behind the `SET`, and wait for nothing.
//! 5. [`Output::Wait`]: sleep until then, or until something ends the wait early; then call [`woken`](Acquire::woken),
//!    [`retry_now`](Acquire::retry_now), [`released`](Acquire::released), or [`cancelled`](Acquire::cancelled), which
//!    may also be called at any other time but during an attempt.
//! 6. [`Output::Done`]: stop. A token belongs to one attempt; the winning one is the last that was drawn.

mod access;
mod config;
mod listening;
mod place;

use super::early_end::EarlyEnd;
use super::fence::Agreement;
use super::lease::Validity;
use super::node::NodeSet;
use super::place::PlaceKeeper;
use super::time::{Readings, Timestamp};
use super::turns::{WakeOrder, short_delay};
use super::vote::{Outcome, Tally};
pub use config::{AcquireConfig, WaitLimit};
use listening::Listening;
pub use listening::WaitBounds;
use place::Place;
use std::time::Duration;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Make an attempt (step 2).
    Attempt,
    /// Raise the fence on the nodes that are behind (step 3).
    Raise(Agreement),
    /// Release what the lost attempt may have set on these nodes (step 4).
    Undo(NodeSet),
    /// Sleep until then at the latest (step 5).
    Wait(Timestamp),
    /// Stop (step 6).
    Done(Verdict),
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The lock is won, and valid for so long.
    Acquired(Validity),
    /// The wait was cancelled.
    Cancelled,
    /// Another client holds it.
    Held,
    /// It is held by a key that never expires.
    NoExpiry,
    /// A quorum granted, but only after the lease had ended.
    TooLate,
    /// Too few nodes can answer.
    Unavailable,
}

/// The state machine of one call that takes the lock.
#[derive(Clone, Debug)]
pub struct Acquire {
    config: AcquireConfig,
    state: AcquireState,
    attempts: u32,
    started: Timestamp,
    /// How long the nodes of the last attempt had to answer at most.
    budget: Duration,
    /// How long the last attempt took.
    attempt_time: Duration,
    /// Whether the last attempt that had its full time, of this call or of the one before it, found the lock held.
    held: bool,
    /// Whether it failed.
    has_failed: bool,
    /// Whether the last attempt was lost only because the caller's limit came.
    is_cut_short: bool,
    /// What the last attempt found out about the next wait.
    bounds: WaitBounds,
    /// When the next attempt follows if no release is announced.
    fallback: Timestamp,
    /// Whether the present attempt follows the end of a lock: a release was announced, or the holder's key has expired.
    follows_end: bool,
    /// How many attempts in a row followed the end of a lock and got some grants and no quorum.
    splits: u32,
    /// What is known of the holder, and of its release.
    listening: Listening,
    /// Its place behind others, if a release was announced since the last attempt.
    place: Option<Place>,
    /// When a quorum was last available: the start, or the last attempt that a quorum answered in time.
    available_at: Timestamp,
    /// What may end the wait before its time.
    early_end: EarlyEnd,
    /// Of a fair lock: the place in the queue.
    keeper: Option<PlaceKeeper>,
}

#[derive(Clone, Copy, Debug)]
enum AcquireState {
    Attempting,
    Raising { t0: Readings, agreement: Agreement, undo: NodeSet },
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
    pub fn new(config: AcquireConfig, now: Timestamp) -> Acquire {
        Acquire {
            config,
            state: AcquireState::Attempting,
            attempts: 0,
            started: now,
            budget: config.node_timeout,
            attempt_time: Duration::ZERO,
            held: false,
            has_failed: false,
            is_cut_short: false,
            bounds: WaitBounds::NONE,
            fallback: now,
            follows_end: false,
            splits: 0,
            listening: Listening::default(),
            place: None,
            available_at: now,
            early_end: EarlyEnd::default(),
            keeper: None,
        }
    }

    /// What to do next.
    pub fn poll(&mut self) -> Output {
        match self.state {
            AcquireState::Attempting => Output::Attempt,
            AcquireState::Raising { agreement, .. } => Output::Raise(agreement),
            AcquireState::Lost { undo, then } => {
                self.state = match then {
                    After::Stop(verdict) => AcquireState::Done(verdict),
                    After::Wait { until, last } => AcquireState::Waiting { until, last },
                };
                if undo.is_empty() { self.poll() } else { Output::Undo(undo) }
            }
            AcquireState::Waiting { until, .. } => Output::Wait(until),
            AcquireState::Done(verdict) => Output::Done(verdict),
        }
    }

    /// Until when the nodes of an attempt that began at `t0` may answer: for the node timeout, but no longer than the
    /// answer is of use. An attempt that has to connect to nodes first has another node timeout for that.
    pub fn attempt_deadline(&mut self, t0: Timestamp, has_to_connect: bool) -> Timestamp {
        self.budget = self.config.node_timeout.saturating_mul(1 + u32::from(has_to_connect));
        self.deadline_within(t0, self.budget)
    }

    /// Until when nodes that are asked at `start` may answer if they have so much time.
    fn deadline_within(&self, start: Timestamp, budget: Duration) -> Timestamp {
        let answer = start.after(budget.min(self.config.ttl.validity()));
        match self.config.wait_limit {
            // A call whose deadline has passed already still makes one whole attempt.
            WaitLimit::Until(deadline) if deadline > self.started => answer.min(deadline),
            _ => answer,
        }
    }

    /// Another call found the lock held before this one begins, and nothing else since. A first attempt that is cut
    /// short does not contradict that.
    pub fn was_held(&mut self) {
        self.held = true;
    }

    /// Sets what the next wait goes by. To be called before [`attempted`](Acquire::attempted).
    pub fn set_wait_bounds(&mut self, bounds: WaitBounds) {
        self.bounds = bounds;
    }

    /// Takes the count of an attempt that began at `t0` and may have written to the nodes `reached`. `now` is read
    /// after the last counted reply was; `random` is drawn evenly from all of `u64`.
    pub fn attempted(&mut self, t0: Readings, tally: &Tally, reached: NodeSet, now: Readings, random: u64) {
        // No client holds a quorum: the lock is free, or several attempts share the nodes.
        let is_split = !tally.granted().is_empty() || tally.refused().len() < tally.quorum();
        let undo = reached.without(tally.untouched());
        self.early_end.note_faults(tally.is_quorum_impossible(), t0.steady);
        self.conclude((tally.acquisition(), is_split), t0, undo, now, random);
    }

    /// [`attempted`](Acquire::attempted), for a fenced lock: with what the granted fences come to. When they differ,
    /// the attempt is not over yet.
    pub fn attempted_fenced(
        &mut self,
        t0: Readings,
        tally: &Tally,
        agreement: Agreement,
        reached: NodeSet,
        now: Readings,
        random: u64,
    ) {
        let is_to_raise = tally.acquisition() == Outcome::Won && !agreement.stands(tally.quorum());
        if is_to_raise && self.config.ttl.lease_from(t0.lease).is_valid(now.lease) {
            self.state = AcquireState::Raising { t0, agreement, undo: reached.without(tally.untouched()) };
        } else {
            self.attempted(t0, tally, reached, now, random);
        }
    }

    /// Until when the nodes may answer to a raise that began at `now`.
    pub fn raise_deadline(&self, now: Timestamp) -> Timestamp {
        match self.state {
            AcquireState::Raising { t0, .. } => {
                self.deadline_within(now, self.config.node_timeout).min(t0.steady.after(self.config.ttl.validity()))
            }
            _ => now,
        }
    }

    /// Takes the count of a raise. `now` is read after the last counted reply was.
    pub fn raised(&mut self, tally: &Tally, now: Readings, random: u64) {
        let AcquireState::Raising { t0, mut agreement, undo } = self.state else { return };
        agreement.acknowledged(tally.granted());
        let outcome = match agreement.stands(tally.quorum()) {
            true => Outcome::Won,
            // A node that does not have this attempt's token any more has or had that of another.
            false if !tally.refused().is_empty() => Outcome::Held,
            false => Outcome::Unavailable,
        };
        self.conclude((outcome, true), t0, undo, now, random);
    }

    /// Whether there is time to [`defer`](Acquire::defer_attempt) an attempt, and for one after that.
    pub fn may_defer(&self, now: Timestamp) -> bool {
        !matches!(self.config.wait_limit, WaitLimit::Until(deadline) if deadline <= now.after(short_delay(u64::MAX) * 2))
    }

    /// Whether the wait is long enough to subscribe: another attempt follows the subscription, and one the release.
    pub fn has_time_to_listen(&self, now: Timestamp) -> bool {
        !matches!(self.config.wait_limit, WaitLimit::Until(deadline) if deadline.since(now) < self.attempt_time * 2)
    }

    /// Delays an attempt, so that so many other programs go first.
    pub fn defer_attempt(&mut self, others: u8, now: Timestamp, random: u64) {
        let (short, number) = (short_delay(random), 1 + u32::from(others.max(1)));
        self.fallback = now.after((short * number).min(self.config.wait_limit.longest_sleep(now).max(short * 2)));
        self.state = AcquireState::Waiting { until: self.fallback, last: Verdict::Held };
    }

    /// The lock was released. Unless it is this waiter's turn for certain, the attempt is delayed for a moment.
    pub fn released(&mut self, order: WakeOrder, now: Timestamp, random: u64) {
        let AcquireState::Waiting { until, last } = self.state else { return };
        self.listening.announced();
        let Some(delay) = order.delay(random) else { return self.retry_now(now) };
        self.follows_end = order == WakeOrder::Due;
        let until = match order {
            WakeOrder::After(in_front) => {
                let longest = self.available_at.after(self.config.wait_limit.longest_sleep(self.available_at));
                self.fallback.max(Place::announced(&mut self.place, in_front, now).min(longest))
            }
            _ => until,
        };
        self.state = AcquireState::Waiting { until: until.min(now.after(delay)), last };
    }

    /// Ends the wait before its time: the lock may be free.
    pub fn retry_now(&mut self, now: Timestamp) {
        self.config.backoff.reset();
        self.follows_end = true;
        self.woken(now);
    }

    /// The wait is over.
    pub fn woken(&mut self, now: Timestamp) {
        if now >= self.bounds.free_at {
            self.config.backoff.reset();
            self.follows_end = true;
        }
        if let AcquireState::Waiting { last, .. } = self.state {
            self.state = match self.config.wait_limit {
                // A call does not end without one attempt.
                WaitLimit::Until(deadline) if now >= deadline && self.attempts > 0 => AcquireState::Done(last),
                _ => AcquireState::Attempting,
            };
        }
    }

    /// The wait was cancelled. What a lost attempt has left behind is still undone first.
    pub fn cancelled(&mut self) {
        self.state = match self.state {
            AcquireState::Attempting | AcquireState::Waiting { .. } => AcquireState::Done(Verdict::Cancelled),
            AcquireState::Raising { undo, .. } | AcquireState::Lost { undo, then: After::Wait { .. } } => {
                AcquireState::Lost { undo, then: After::Stop(Verdict::Cancelled) }
            }
            ended @ (AcquireState::Lost { then: After::Stop(_), .. } | AcquireState::Done(_)) => ended,
        };
    }

    /// The wait goes on for another key of a set, and nothing is known of its holder.
    pub fn waits_for_another_key(&mut self) {
        self.listening = Listening::default();
    }

    /// Ends an attempt with this outcome. `is_split`: several attempts may share the nodes. A lost attempt is undone on
    /// the nodes `undo`.
    fn conclude(
        &mut self,
        (outcome, is_split): (Outcome, bool),
        t0: Readings,
        undo: NodeSet,
        now: Readings,
        random: u64,
    ) {
        self.attempts = self.attempts.saturating_add(1);
        self.attempt_time = now.steady.since(t0.steady);
        // Answers take no longer than the budget: the rest is a process that stood still.
        let round_time = self.attempt_time.min(self.budget);
        self.keeper.iter_mut().for_each(|keeper| keeper.note_round_time(round_time));
        self.place = None;
        let lease = self.config.ttl.lease_from(t0.lease);
        let lost = match outcome {
            Outcome::Won if lease.is_valid(now.lease) => {
                self.state = AcquireState::Done(Verdict::Acquired(lease));
                return;
            }
            _ => self.verdict_on_loss(outcome, t0.steady, now.steady),
        };
        let was_held = std::mem::replace(&mut self.held, lost == Verdict::Held);
        if self.held {
            self.available_at = now.steady;
        } else if let (true, WaitLimit::WhileAvailable(limit)) = (was_held, self.config.wait_limit) {
            // For as long as the waiter slept, no quorum was asked. Half of the limit is left for further attempts.
            let unanswered = t0.steady.since(self.available_at);
            self.available_at = self.available_at.after(unanswered.saturating_sub(limit / 2));
        }
        self.early_end.note_key(self.held && self.bounds.is_endless, now.steady);
        let followed_end = std::mem::take(&mut self.follows_end) && !self.bounds.is_rumour;
        // Attempts that share the nodes separate if their delays differ by more than an attempt lasts.
        self.splits = if is_split && followed_end { self.splits + 1 } else { 0 };
        if is_split {
            self.config.backoff.widen(self.attempt_time);
        }
        if self.listening.attempted(&self.bounds, is_split || followed_end) {
            self.config.backoff.reset();
        }
        self.state = AcquireState::Lost { undo, then: self.after_loss(lost, followed_end, now.steady, random) };
    }

    fn after_loss(&mut self, lost: Verdict, followed_end: bool, now: Timestamp, random: u64) -> After {
        let longest = match self.config.wait_limit {
            _ if lost != Verdict::Held => Duration::ZERO,
            WaitLimit::WhileAvailable(_) => Duration::MAX,
            limit => limit.longest_sleep(now),
        };
        let mut delay = self.delay(longest, now, random);
        if self.splits > 0 {
            // The lock was free a moment ago, and no release will be announced: the attempts undo each other.
            delay = delay.min(short_delay(random) * self.splits.min(4));
            self.follows_end = self.splits < 4;
        } else if followed_end && self.keeper.as_ref().is_some_and(PlaceKeeper::is_first) {
            // Several that do not queue up may have got one node each, and their undoing is not announced.
            delay = delay.min(short_delay(random));
        }
        if self.config.wait_limit != WaitLimit::Once {
            if self.early_end.is_endless(now, self.config.node_timeout) {
                return After::Stop(Verdict::NoExpiry);
            }
            if lost == Verdict::Unavailable
                && self.early_end.is_quorum_impossible(now, self.config.permanent_fault_limit)
            {
                return After::Stop(lost);
            }
        }
        match self.config.wait_limit {
            WaitLimit::Once => return After::Stop(lost),
            WaitLimit::Until(deadline) => {
                let left = deadline.since(now);
                if left.is_zero() {
                    return After::Stop(lost);
                }
                // The time that is left is halved, and halved again. After long delays, one more long delay could miss
                // a release just before the deadline. The last delay ends at the deadline.
                delay = delay.min((left / 2).max(self.config.backoff.min())).min(left);
            }
            WaitLimit::WhileAvailable(limit) => {
                if lost != Verdict::Held && now.since(self.available_at) >= limit {
                    return After::Stop(lost);
                }
            }
        }
        let mut until = now.after(delay);
        if self.bounds.free_at > now {
            until = until.min(self.bounds.free_at);
        }
        self.fallback = until;
        After::Wait { until, last: lost }
    }
}

#[cfg(test)]
mod tests;
