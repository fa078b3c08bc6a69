//! Taking the lock: attempt, undo, back off, and try again, until it is won or there is a reason to
//! stop.
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
//! [`Acquire`] is a value on the stack of the thread that wants the lock. It knows no socket, no
//! clock and no entropy. How to drive it:
//!
//! 1. Call [`poll`](Acquire::poll) and do what it returns.
//! 2. [`Output::Attempt`]: draw a fresh owner token, read both clocks as `t0`, send the `SET`s, and
//!    collect votes until the tally is decided or [`attempt_deadline`](Acquire::attempt_deadline)
//!    has come, at which the undecided nodes are timed out. Then read both clocks and call
//!    [`attempted`](Acquire::attempted); for a fenced lock (its commands:
//!    [`fenced`](crate::protocol::kinds::fenced)), call
//!    [`attempted_fenced`](Acquire::attempted_fenced) with the agreement of the fences, if any node
//!    granted.
//! 3. [`Output::Raise`]: only for a fenced lock. Send the raise to the nodes that are behind, and
//!    collect votes, with the replies of the nodes that have the fence counted already, until
//!    [`raise_deadline`](Acquire::raise_deadline). Then read the clock and call
//!    [`raised`](Acquire::raised).
//! 4. [`Output::Undo`]: queue the release of that token on these nodes, behind the `SET`, and wait
//!    for nothing. A call that waits in the queue has its ticket stored there by the same command.
//! 5. [`Output::Store`]: have these nodes store the call's ticket, and wait for nothing.
//! 6. [`Output::Enqueue`]: the call is to wait in the queues of the lock: give it an entry by
//!    [`enter`](Acquire::enter), and subscribe. The next attempt asks as [`queue`](Acquire::queue)
//!    requires, and what the nodes reply is handed over with
//!    [`answered_in_turn`](Acquire::answered_in_turn) before the attempt is counted.
//! 7. [`Output::Wait`]: sleep until then, or until something ends the wait early; then call
//!    [`woken`](Acquire::woken), [`retry_now`](Acquire::retry_now),
//!    [`on_message`](Acquire::on_message), or [`cancelled`](Acquire::cancelled), which may also be
//!    called at any other time but during an attempt.
//! 8. [`Output::Done`]: stop. A token belongs to one attempt; the winning one is the last that was
//!    drawn.

mod access;
mod bounds;
mod config;
mod output;

use super::early_end::EarlyEnd;
use super::fence::Agreement;
use super::node::{NodeId, NodeSet};
use super::queue::{Aftermath, Message, QueueRound, QueuedCall};
use super::time::{Readings, Timestamp};
use super::vote::{Outcome, Tally};
pub use bounds::WaitBounds;
pub use config::{AcquireConfig, WaitLimit};
pub use output::{Output, Verdict};
use std::time::Duration;

/// The state machine of one call that takes the lock.
#[derive(Clone, Debug)]
pub struct Acquire {
    config: AcquireConfig,
    state: AcquireState,
    /// Where a lost attempt is undone before anything else.
    undo: NodeSet,
    /// Which nodes are to store the ticket behind that.
    store: NodeSet,
    attempts: u32,
    started: Timestamp,
    /// How long the nodes of the last attempt had to answer at most.
    budget: Duration,
    /// How long the last attempt took.
    attempt_time: Duration,
    /// Whether the last attempt that had its full time, of this call or of the one before it, found
    /// the lock held.
    held: bool,
    /// Whether it failed.
    has_failed: bool,
    /// Whether the last attempt was lost only because the caller's limit came.
    is_cut_short: bool,
    /// What the last attempt found out about the next wait.
    bounds: WaitBounds,
    /// When a quorum was last available: the start, or the last attempt that a quorum answered in
    /// time.
    available_at: Timestamp,
    /// What may end the wait before its time.
    early_end: EarlyEnd,
    /// The call in the queues of the lock, once it waits there.
    queue: Option<Box<QueuedCall>>,
    /// The replies of the nodes to it.
    round: Option<(Box<QueueRound>, NodeSet)>,
}

#[derive(Clone, Copy, Debug)]
enum AcquireState {
    Entering,
    Attempting,
    Raising {
        t0: Readings,
        agreement: Agreement,
        undo: NodeSet,
    },
    Waiting {
        until: Timestamp,
        last: Verdict,
    },
    Done(Verdict),
}

/// How an attempt has ended.
struct Ended {
    outcome: Outcome,
    /// Whether several attempts may share the nodes.
    is_split: bool,
    t0: Readings,
    /// Where it is undone if it is lost.
    undo: NodeSet,
}

impl Acquire {
    /// Begins at `now`.
    pub fn new(config: AcquireConfig, now: Timestamp) -> Acquire {
        Acquire {
            config,
            state: if config.first_in_turn.is_some() {
                AcquireState::Entering
            } else {
                AcquireState::Attempting
            },
            undo: NodeSet::EMPTY,
            store: NodeSet::EMPTY,
            attempts: 0,
            started: now,
            budget: config.node_timeout,
            attempt_time: Duration::ZERO,
            held: false,
            has_failed: false,
            is_cut_short: false,
            bounds: WaitBounds::NONE,
            available_at: now,
            early_end: EarlyEnd::default(),
            queue: None,
            round: None,
        }
    }

    /// What to do next.
    pub fn poll(&mut self) -> Output {
        if !self.undo.is_empty() {
            return Output::Undo(std::mem::take(&mut self.undo));
        }
        if !self.store.is_empty() {
            return Output::Store(std::mem::take(&mut self.store));
        }
        match self.state {
            AcquireState::Entering => Output::Enqueue,
            AcquireState::Attempting => Output::Attempt,
            AcquireState::Raising { agreement, .. } => Output::Raise(agreement),
            AcquireState::Waiting { until, .. } => Output::Wait(until),
            AcquireState::Done(verdict) => Output::Done(verdict),
        }
    }

    /// Until when the nodes of an attempt that began at `t0` may answer: for the node timeout, but
    /// no longer than the answer is of use. An attempt that has to connect to nodes first has
    /// another node timeout for that.
    pub fn attempt_deadline(&mut self, t0: Timestamp, has_to_connect: bool) -> Timestamp {
        self.budget = self
            .config
            .node_timeout
            .saturating_mul(1 + u32::from(has_to_connect));
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

    /// Another call found the lock held before this one begins, and nothing else since. A first
    /// attempt that is cut short does not contradict that.
    pub fn was_held(&mut self) {
        self.held = true;
    }

    /// Sets what the next wait goes by. To be called before [`attempted`](Acquire::attempted).
    pub fn set_wait_bounds(&mut self, bounds: WaitBounds) {
        self.bounds = bounds;
    }

    /// Takes the count of an attempt that began at `t0` and may have written to the nodes
    /// `reached`. `now` is read after the last counted reply was; `random` is drawn evenly from all
    /// of `u64`.
    pub fn attempted(
        &mut self,
        t0: Readings,
        tally: &Tally,
        reached: NodeSet,
        now: Readings,
        random: u64,
    ) {
        // No client holds a quorum: the lock is free, or several attempts share the nodes.
        let is_split = !tally.granted().is_empty() || tally.refused().len() < tally.quorum();
        let undo = reached.without(tally.untouched());
        self.early_end
            .record_faults(tally.is_quorum_impossible(), t0.steady);
        self.conclude(
            &Ended {
                outcome: tally.acquisition(),
                is_split,
                t0,
                undo,
            },
            now,
            random,
        );
    }

    /// [`attempted`](Acquire::attempted), for a fenced lock: with what the granted fences come to.
    /// When they differ, the attempt is not over yet.
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
            self.state = AcquireState::Raising {
                t0,
                agreement,
                undo: reached.without(tally.untouched()),
            };
        } else {
            self.attempted(t0, tally, reached, now, random);
        }
    }

    /// Until when the nodes may answer to a raise that began at `now`.
    pub fn raise_deadline(&self, now: Timestamp) -> Timestamp {
        match self.state {
            AcquireState::Raising { t0, .. } => self
                .deadline_within(now, self.config.node_timeout)
                .min(t0.steady.after(self.config.ttl.validity())),
            _ => now,
        }
    }

    /// Takes the count of a raise. `now` is read after the last counted reply was.
    pub fn raised(&mut self, tally: &Tally, now: Readings, random: u64) {
        let AcquireState::Raising {
            t0,
            mut agreement,
            undo,
        } = self.state
        else {
            return;
        };
        agreement.acknowledged(tally.granted());
        let outcome = match agreement.stands(tally.quorum()) {
            true => Outcome::Won,
            // A node that does not have this attempt's token any more has or had the token of
            // another.
            false if !tally.refused().is_empty() => Outcome::Held,
            false => Outcome::Unavailable,
        };
        self.conclude(
            &Ended {
                outcome,
                is_split: true,
                t0,
                undo,
            },
            now,
            random,
        );
    }

    /// The call has an entry, and asks in its turn from now on.
    pub fn enter(&mut self, queue: QueuedCall, now: Timestamp) {
        self.queue = Some(Box::new(queue));
        self.state = match self.config.first_in_turn {
            // Only if the attempt that follows has its full time.
            Some(until) if now < until && self.limit().since(until) >= self.config.node_timeout => {
                AcquireState::Waiting {
                    until,
                    last: Verdict::Held,
                }
            }
            _ => AcquireState::Attempting,
        };
    }

    /// The call waits in another queue, or in none.
    pub fn leave_queue(&mut self) {
        self.queue = None;
        if self.config.queues {
            self.state = AcquireState::Entering;
        }
    }

    /// The call in the queues of the lock.
    pub fn queue(&mut self) -> Option<&mut QueuedCall> {
        self.queue.as_deref_mut()
    }

    /// Takes what the nodes replied that did not grant an attempt that was made in turn. To be
    /// called before [`attempted`](Acquire::attempted).
    pub fn answered_in_turn(&mut self, round: Box<QueueRound>, granted: NodeSet) {
        self.round = Some((round, granted));
    }

    /// The entry of a set is in the queue of one of its keys. If that key `is_free`, the set asks
    /// for all keys next; otherwise it waits. The nodes that have no entry, or another ticket, are
    /// to store it.
    pub fn enqueued(&mut self, round: &QueueRound, is_free: bool, now: Timestamp, random: u64) {
        let Some(queue) = &mut self.queue else { return };
        // A call whose time is up before it asks for all keys has found this one held.
        self.held |= round.replies.iter().any(|(_, reply)| !reply.is_free());
        let store = queue
            .lost(NodeSet::EMPTY, round, self.bounds.free_at, now)
            .store();
        self.early_end.record_key(self.bounds.is_endless, now);
        self.state = self.after_loss(Verdict::Held, now, random);
        if is_free {
            self.state = AcquireState::Attempting;
        } else {
            self.store = store;
        }
    }

    /// No node was asked: other calls of the client have all that could be had.
    pub fn refused_here(&mut self, now: Timestamp, random: u64) {
        self.held = true;
        self.state = self.after_loss(Verdict::Held, now, random);
    }

    /// A message arrived on the client's channel.
    pub fn on_message(&mut self, node: NodeId, message: Message, at: Timestamp) {
        let Some(queue) = &mut self.queue else { return };
        queue.on_message(node, message, at);
        // One without a ticket is in no queue: its messages are forged, or of an attempt that has
        // been undone.
        if let (AcquireState::Waiting { until, .. }, Some(_)) = (&mut self.state, queue.ticket) {
            *until = queue.due().min(*until);
        }
    }

    /// Ends the wait before its time: the lock may be free.
    pub fn retry_now(&mut self, now: Timestamp) {
        self.config.backoff.reset();
        if let AcquireState::Waiting { until, .. } = &mut self.state {
            *until = now;
        }
        self.woken(now);
    }

    /// The wait may be over.
    pub fn woken(&mut self, now: Timestamp) {
        if let AcquireState::Waiting { until, last } = self.state
            && now >= until
        {
            if now >= self.bounds.free_at {
                self.config.backoff.reset();
            }
            // A call does not end without one attempt.
            self.state = if now >= self.limit() && self.attempts > 0 {
                AcquireState::Done(last)
            } else {
                AcquireState::Attempting
            };
        }
    }

    /// The wait was cancelled. What a lost attempt has left behind is still undone first.
    pub fn cancelled(&mut self) {
        match self.state {
            AcquireState::Done(_) => return,
            AcquireState::Raising { undo, .. } => self.undo = undo,
            AcquireState::Entering | AcquireState::Attempting | AcquireState::Waiting { .. } => {}
        }
        self.store = NodeSet::EMPTY;
        self.state = AcquireState::Done(Verdict::Cancelled);
    }

    /// Goes by how an attempt has ended.
    fn conclude(&mut self, ended: &Ended, now: Readings, random: u64) {
        let Ended {
            outcome,
            is_split,
            t0,
            undo,
        } = *ended;
        self.attempts = self.attempts.saturating_add(1);
        self.attempt_time = now.steady.since(t0.steady);
        let round = self.round.take();
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
        } else if let (true, WaitLimit::WhileAvailable(limit)) = (was_held, self.config.wait_limit)
        {
            // For as long as the waiter slept, no quorum was asked. Half of the limit is left for
            // further attempts.
            let unanswered = t0.steady.since(self.available_at);
            self.available_at = self
                .available_at
                .after(unanswered.saturating_sub(limit / 2));
        }
        self.early_end
            .record_key(self.held && self.bounds.is_endless, now.steady);
        if is_split {
            // Attempts that share the nodes separate if their delays differ by more than an attempt
            // lasts.
            self.config.backoff.widen(self.attempt_time);
        }
        let aftermath = match (&mut self.queue, round) {
            (Some(queue), Some((round, granted))) => {
                let aftermath = queue.lost(granted, &round, self.bounds.free_at, now.steady);
                if queue.is_passed_on() && !is_split {
                    self.config.backoff.reset();
                }
                Some((aftermath, round))
            }
            (Some(queue), None) => {
                queue.collided(self.attempt_time, random);
                None
            }
            _ => None,
        };
        self.undo = undo;
        match aftermath {
            // What is undone leaves: where the call was refused, it has an entry.
            Some((Aftermath::BeginsAgain | Aftermath::StepsAside, round)) => {
                self.undo = undo.union(round.nodes());
            }
            Some((aftermath, _)) => self.store = aftermath.store(),
            None => {}
        }
        self.state = self.after_loss(lost, now.steady, random);
    }

    fn after_loss(&mut self, lost: Verdict, now: Timestamp, random: u64) -> AcquireState {
        if self.config.wait_limit != WaitLimit::Once {
            if self.early_end.is_endless(now, self.config.node_timeout) {
                return AcquireState::Done(Verdict::NoExpiry);
            }
            if lost == Verdict::Unavailable
                && self
                    .early_end
                    .is_quorum_impossible(now, self.config.permanent_fault_limit)
            {
                return AcquireState::Done(lost);
            }
        }
        let mut delay = match &self.queue {
            Some(queue)
                if queue.ticket.is_some()
                    && queue.leaves().is_empty()
                    && lost != Verdict::Unavailable =>
            {
                let due = queue.due().since(now);
                match self.bounds.is_attentive {
                    true => due,
                    false => due.min(self.config.backoff.next_delay(random)),
                }
            }
            // No message is to be expected.
            _ => self.config.backoff.next_delay(random),
        };
        match self.config.wait_limit {
            WaitLimit::Once => return AcquireState::Done(lost),
            WaitLimit::Until(deadline) => {
                let left = deadline.since(now);
                if left.is_zero() {
                    return AcquireState::Done(lost);
                }
                // The time that is left is halved, and halved again. After long delays, one more
                // long delay could miss a release just before the deadline. The last delay ends at
                // the deadline.
                delay = delay
                    .min((left / 2).max(self.config.backoff.min()))
                    .min(left);
            }
            WaitLimit::WhileAvailable(limit) => {
                if lost != Verdict::Held && now.since(self.available_at) >= limit {
                    return AcquireState::Done(lost);
                }
            }
        }
        if lost == Verdict::Held
            && self.queue.is_none()
            && self.config.queues
            // The wait is long enough to listen: another attempt follows the subscription, and one
            // the release.
            && self.limit().since(now) >= self.attempt_time * 2
        {
            return AcquireState::Entering;
        }
        let mut until = now.after(delay);
        if self.queue.is_none() && self.bounds.free_at > now {
            until = until.min(self.bounds.free_at);
        }
        AcquireState::Waiting { until, last: lost }
    }

    /// The caller's limit; never, if there is none.
    fn limit(&self) -> Timestamp {
        match self.config.wait_limit {
            WaitLimit::Until(deadline) => deadline,
            WaitLimit::Once | WaitLimit::WhileAvailable(_) => Timestamp::NEVER,
        }
    }
}

#[cfg(test)]
mod tests;
