//! The attempts of one call, and what happens between them.
//!
//! [`Attempts::run`] drives the [`Acquire`] machine by the numbered steps of its module: one method for each step. A
//! call for a permit makes its attempts in [`search`](super::search).

use super::account::CallAccount;
use super::call::LockCall;
use super::place::HeldPlace;
use super::queueing::{self, Queued};
use super::slots::Search;
use super::waiter::{ReleaseWaiter, WaitEnd};
use crate::algorithm::acquire::{Acquire, AcquireConfig, Output, Verdict, WaitLimit};
use crate::algorithm::fence::Agreement;
use crate::algorithm::lease::Validity;
use crate::algorithm::lock_kind::Access;
use crate::algorithm::node::NodeSet;
use crate::algorithm::time::{Readings, Timestamp};
use crate::algorithm::turns::WakeOrder;
use crate::algorithm::vote::Outcome;
use crate::api::guard::MutexGuard;
use crate::api::wait::Wait;
use crate::engine::calls::{AttemptRecord, RoundResult};
use crate::engine::local_queue::{HoldId, QueuePosition, QueueTicket, Unavailability};
use crate::engine::wait_registry::WakeReason;
use crate::engine::watchdog_thread::CLOCK_CHECK_INTERVAL;
use crate::events::error::{Error, Result};
use crate::os::entropy;
use crate::protocol::lock_key::LockKey;
use getrandom::SysRng;

/// A lock that was won.
pub(super) struct Won<'a> {
    pub(super) guard: MutexGuard,
    /// Of a reader, its place in the queue: threads behind it look for the lease when it leaves.
    pub(super) ticket: Option<QueueTicket<'a>>,
}

/// The attempts of one call: the only one of its client for this lock, but for calls of `try_lock`.
pub(super) struct Attempts<'a, 'm> {
    pub(super) call: LockCall<'a>,
    pub(super) account: &'a mut CallAccount<'m>,
    pub(super) wait: &'a Wait,
    pub(super) machine: Acquire,
    /// Of a call for a permit: where to try next.
    pub(super) search: Search,
    /// The last attempt, with the result of its last round.
    last: Option<(AttemptRecord, RoundResult)>,
    /// What the last attempt ran into that had its full time, of this call or of the one before it, if it failed.
    failure: Option<Unavailability>,
    /// How many round trips the last attempt took.
    round_trips: u32,
    /// Both clocks, read after the last reply of the last round was.
    pub(super) now: Readings,
    /// Whether a lost attempt is still to be reported.
    is_loss_unreported: bool,
    // Fields are dropped in this order: a waiter is unregistered before its thread leaves the queue.
    pub(super) waiter: Option<ReleaseWaiter<'a>>,
    /// Of a fair lock.
    held_place: Option<HeldPlace<'a>>,
    pub(super) ticket: Option<QueueTicket<'a>>,
    /// Of a set: which of its keys the ticket and the waiter are for.
    place: usize,
}

impl<'a, 'm> Attempts<'a, 'm> {
    /// Begins with a first attempt. A call without a ticket does not wait; that of a set is for one of its keys.
    pub(super) fn new(
        call: LockCall<'a>,
        queued: Option<(QueueTicket<'a>, usize)>,
        wait: &'a Wait,
        account: &'a mut CallAccount<'m>,
    ) -> Attempts<'a, 'm> {
        let LockCall { client, ttl, called_at, started, .. } = call;
        let settings = client.settings();
        let config = AcquireConfig {
            ttl,
            node_timeout: settings.node_timeout,
            wait_limit: call.limit,
            backoff: settings.backoff,
            permanent_fault_limit: settings.unavailable_after,
        };
        let mut machine = Acquire::new(config, started);
        let (ticket, place) = queued.unzip();
        let mut failure = None;
        if let Some(ticket) = &ticket {
            match ticket.is_known_held() {
                Ok(()) => machine.was_held(),
                Err(found) if found.causes.is_empty() => {}
                Err(found) => {
                    machine.was_unavailable();
                    // The queue's head before this call may have found permanent faults: their time goes on to count.
                    if let Some(since) = found.quorum_impossible_since {
                        machine.early_end().was_quorum_impossible(since.max(called_at.steady));
                    }
                    failure = Some(found);
                }
            }
            // Other programs that have waited for the lock go first, if this client held it before them.
            // Turns count programs, and those that read are let in together.
            let takes_turns = call.access.is_none() && !call.is_fair && machine.may_defer(started);
            let others = if takes_turns { call.defers_to() } else { 0 };
            if others > 0 {
                machine.defer_attempt(others, started, random());
                // Nor do the threads behind take the nodes for unavailable meanwhile.
                ticket.note_answered(started);
            }
        }
        let waits = ticket.is_some() && !matches!(call.limit, WaitLimit::Until(deadline) if deadline <= started);
        let held_place = HeldPlace::begin(call, ticket.as_ref(), waits, &mut machine, random);
        Attempts {
            call,
            account,
            wait,
            machine,
            search: Search::default(),
            last: None,
            failure,
            round_trips: 1,
            now: called_at,
            is_loss_unreported: false,
            waiter: None,
            held_place,
            ticket,
            place: place.unwrap_or_default(),
        }
    }

    /// Does what the machine asks for until it is done. `None`: the lock is held by another client.
    pub(super) fn run(mut self) -> Result<Option<Won<'a>>> {
        self.drive()
    }

    /// Until when the call may wait.
    pub(super) fn until(&self) -> Timestamp {
        if let WaitLimit::Until(deadline) = self.call.limit { deadline } else { Timestamp::NEVER }
    }

    /// [`run`](Attempts::run), for a call that keeps what else it has found.
    pub(super) fn drive(&mut self) -> Result<Option<Won<'a>>> {
        loop {
            let output = self.machine.poll();
            // An observer that gets the event of a lost attempt can rely on its undo having been queued.
            if !matches!(output, Output::Undo(_)) {
                self.report_loss();
            }
            match output {
                Output::Attempt if self.wait.is_cancelled() => self.machine.cancelled(),
                Output::Attempt if self.call.permits.is_some() => self.search()?,
                Output::Attempt => self.attempt()?,
                Output::Raise(agreement) => self.raise(&agreement),
                Output::Undo(nodes) => self.undo(nodes),
                Output::Wait(_) if self.is_behind() => {
                    if !self.wait_in_queue()? {
                        return Ok(self.held());
                    }
                }
                Output::Wait(until) => {
                    if !self.wait_for_release(until) {
                        return Ok(self.held());
                    }
                }
                Output::Done(Verdict::Acquired(validity)) => return self.acquired(validity),
                Output::Done(Verdict::Held) => return Ok(self.held()),
                Output::Done(verdict) => return Err(self.failed(verdict)),
            }
        }
    }

    /// Makes one attempt on all nodes, and counts it.
    fn attempt(&mut self) -> Result<()> {
        let (record, result) = self.ask()?;
        self.attempted(record, result, 1);
        Ok(())
    }

    /// Asks all nodes for the lock of the key.
    pub(super) fn ask(&mut self) -> Result<(AttemptRecord, RoundResult)> {
        let engine = self.call.client.engine();
        let listener = self.waiter.as_ref().map(ReleaseWaiter::listener);
        let place = self.machine.keeper().map(|keeper| keeper.request());
        let deadline = |t0, connects| self.machine.attempt_deadline(t0, connects);
        let token = entropy::draw(&mut SysRng).map_err(|_| Error::entropy())?.labelled(self.call.label());
        let lease = (token, self.call.ttl.millis(), self.call.kind(), place);
        let asked = engine.acquire(self.call.key, lease, listener, deadline);
        self.now = engine.readings();
        Ok(asked)
    }

    /// Counts an attempt that took so many round trips.
    pub(super) fn attempted(&mut self, record: AttemptRecord, result: RoundResult, round_trips: u32) {
        let random = random_unless_won(&result);
        if let Some(waiter) = &mut self.waiter {
            let is_for_this_key = result.refused_key.is_none_or(|key| key == self.place);
            self.machine.set_wait_bounds(waiter.bounds(&result, is_for_this_key));
        }
        if let Some(place) = &mut self.held_place {
            place.answered(&mut self.machine, self.waiter.as_ref(), record.reached, &result);
        }
        let (t0, tally, reached) = (record.t0, &result.tally, record.reached);
        match result.agreement {
            Some(agreement) => self.machine.attempted_fenced(t0, tally, agreement, reached, self.now, random),
            None => self.machine.attempted(t0, tally, reached, self.now, random),
        }
        if let (true, Some(waiter)) = (self.machine.has_missed_release(), &self.waiter) {
            waiter.listener().missed_release();
        }
        self.counted(record, result, round_trips);
    }

    /// Raises the fence on the nodes that are behind, and counts their answers.
    fn raise(&mut self, agreement: &Agreement) {
        // The machine asks for a raise only after an attempt.
        let Some((record, _)) = self.last.take() else { return self.machine.cancelled() };
        let engine = self.call.client.engine();
        let deadline = |start| self.machine.raise_deadline(start);
        let result = engine.raise(self.call.key.as_bytes(), &record, agreement, deadline);
        let random = random_unless_won(&result);
        self.now = engine.readings();
        self.machine.raised(&result.tally, self.now, random);
        self.counted(record, result, 2);
    }

    /// Keeps what a round has come to, for the threads behind in the queue as well.
    fn counted(&mut self, record: AttemptRecord, result: RoundResult, round_trips: u32) {
        if self.machine.is_held() {
            // An attempt that the deadline cut short has no new answer; nor has one about another key of a set.
            let is_for_this_key = result.refused_key.is_none_or(|key| key == self.place);
            if let (Some(ticket), Outcome::Held, true) = (&self.ticket, result.tally.acquisition(), is_for_this_key) {
                ticket.note_answered(self.now.steady);
            }
            self.failure = None;
        } else if !(result.is_won() || self.failure.is_some() && self.machine.is_cut_short()) {
            let quorum_impossible_since = self.machine.early_end().quorum_impossible_since();
            let found = Unavailability { quorum_impossible_since, ..self.call.client.unavailability(&result) };
            if let Some(ticket) = &self.ticket {
                ticket.note_unavailable(found.clone());
            }
            self.failure = Some(found);
        }
        self.account.attempts = self.machine.attempts();
        self.is_loss_unreported = self.machine.is_lost();
        (self.last, self.round_trips) = (Some((record, result)), round_trips);
    }

    /// Whether other threads of this client are in front in the queue of a semaphore, or have all of its slots.
    fn is_behind(&self) -> bool {
        let position = |ticket| self.call.position(ticket, self.now.lease);
        let is_head = |position| matches!(position, QueuePosition::Head(_));
        self.call.permits.is_some() && self.ticket.as_ref().map(position).is_some_and(|position| !is_head(position))
    }

    /// Waits to be the head of the queue again, as before the first attempt. False when the time is up.
    fn wait_in_queue(&mut self) -> Result<bool> {
        self.waiter = None;
        let Some(ticket) = &self.ticket else { return Ok(false) };
        let position = self.call.position(ticket, self.now.lease);
        let queued = queueing::wait_in_queue(&mut self.call, (ticket, position, self.now), self.wait, self.account)?;
        self.now = self.call.client.engine().readings();
        match queued {
            Queued::Head => self.machine.retry_now(self.now.steady),
            Queued::OutOfTime(None) => return Ok(false),
            Queued::OutOfTime(Some(cause)) => {
                return Err(self.call.client.unavailable("lock", self.call.resource(), cause));
            }
        }
        Ok(true)
    }

    /// Queues the release of what a lost attempt may have set on these nodes.
    fn undo(&self, nodes: NodeSet) {
        let Some((record, _)) = &self.last else { return };
        let attempt = AttemptRecord { reached: nodes, ..record.clone() };
        let place = self.held_place.as_ref().map(HeldPlace::id);
        self.call.client.engine().undo(self.call.key, attempt, place, self.call.ttl.duration());
    }

    fn report_loss(&mut self) {
        if std::mem::take(&mut self.is_loss_unreported)
            && let Some((_, result)) = &self.last
        {
            let LockCall { client, key, .. } = self.call;
            client.report().attempt_lost(key.title(), self.machine.attempts(), &result.tally, &result.faults);
        }
    }

    /// Waits until then at the latest, and hands the machine what has ended the wait. False for a call that does not
    /// wait.
    fn wait_for_release(&mut self, until: Timestamp) -> bool {
        self.follow_refusal();
        let deadline = self.until();
        let Some(ticket) = &self.ticket else { return false };
        self.account.begin_to_wait(&self.call, self.now.lease);
        let (engine, machine) = (self.call.client.engine(), &mut self.machine);
        let subscribes = machine.has_time_to_listen(self.now.steady);
        let keys = self.call.awaited_keys(self.place);
        let place = self.held_place.as_ref().map(HeldPlace::id);
        let begin = || ReleaseWaiter::begin(engine, ticket, self.wait, (keys, subscribes, place));
        let waiter = self.waiter.get_or_insert_with(begin);
        let mut end = waiter.wait(until);
        // A set that was refused for another key than before has joined the end of that one's queue.
        while let (LockKey::Set(_), false) = (self.call.key, matches!(end, WaitEnd::Cancelled)) {
            let now = engine.readings();
            match until_turn(ticket, now) {
                Some(until) if now.steady < deadline => end = waiter.wait(until.min(deadline)),
                _ => break,
            }
        }
        // What the nodes have answered was so when they were asked: the replies may have been read much later.
        let asked_at = self.last.as_ref().map_or(self.now.steady, |(record, _)| record.t0.steady);
        let (now, access) = (engine.now(), self.call.access);
        match end {
            WaitEnd::Cancelled => machine.cancelled(),
            // A thread of this client was faster.
            WaitEnd::Woken(WakeReason::Released(_), place) if self.call.is_slot_taken(place, engine.lease_now()) => {}
            WaitEnd::Woken(WakeReason::Interrupted, _) if !self.call.has_slot_handed_on() => {}
            WaitEnd::Woken(WakeReason::Released(order), place) => match access {
                None => {
                    self.search.note_announced(place, order);
                    machine.released(order, now, random());
                }
                Some(Access::Read) => machine.retry_now(now),
                Some(Access::Write) => machine.released(WakeOrder::Due, now, random()),
            },
            // Before the first attempt there was no release to miss.
            WaitEnd::Woken(WakeReason::Subscribed | WakeReason::Unsubscribed, _)
                if machine.attempts() == 0 && machine.keeper().is_none() => {}
            WaitEnd::Woken(WakeReason::Subscribed, _)
                if machine.keeper().is_some_and(|keeper| keeper.is_behind(asked_at, now)) => {}
            WaitEnd::Woken(WakeReason::Subscribed | WakeReason::Unsubscribed, _) | WaitEnd::TimedOut => {
                machine.woken(now);
            }
            WaitEnd::Woken(WakeReason::Interrupted, _) => machine.retry_now(now),
        }
        true
    }

    /// Of a set: goes on to wait for the key that the last attempt was refused for, at the end of its queue. Nothing is
    /// held meanwhile.
    fn follow_refusal(&mut self) {
        let refused = self.last.as_ref().and_then(|(_, result)| result.refused_key);
        let keys = self.call.key.each();
        if let (Some(_), Some(place)) = (&self.ticket, refused.filter(|&key| key != self.place && key < keys.len())) {
            (self.waiter, self.ticket, self.place) = (None, None, place);
            self.ticket = Some(self.call.client.queues().join(&keys[place], self.now).0);
            self.machine.waits_for_another_key();
        }
    }

    /// Makes the guard of a lock that was won.
    fn acquired(&mut self, validity: Validity) -> Result<Option<Won<'a>>> {
        let call = self.call;
        let LockCall { client, key, ttl, watchdog, called_at, .. } = call;
        let (waits, attempts) = (self.ticket.as_ref().zip(self.waiter.as_ref()), self.machine.attempts());
        let place = self.held_place.take();
        let successor = place.and_then(|place| place.leave_won(waits, attempts, random, self.now.steady));
        self.waiter.take().into_iter().for_each(|waiter| waiter.won(successor));
        let mut ticket = self.ticket.take();
        let guard = self.last.take().map(|(record, _)| {
            let hold = HoldId::of(&record.token);
            // A thread that waits to read shares the lease of one that reads.
            if call.access != Some(Access::Read) {
                match ticket.take() {
                    Some(ticket) if call.permits.is_none() => ticket.hold(key.each(), hold, validity, self.now),
                    _ => client.queues().hold(key.each(), hold, validity, self.now),
                }
            }
            let watched = watchdog.map(|watchdog| {
                let extension = watchdog.extension_of(ttl, record.t0.lease, hold);
                client.watchdog_thread().watch(key, &record, validity, Some(extension))
            });
            MutexGuard::new(client.clone(), key.clone(), record, (validity, ttl), watched)
                .standing_at_least(call.min_hold)
        });
        let waited = self.now.steady.since(called_at.steady);
        let tries = (self.machine.attempts(), self.round_trips);
        let position = self.machine.keeper().and_then(|keeper| keeper.position());
        client.report().acquired(key.title(), waited, (tries, position), self.account.has_waited());
        self.account.is_reported = true;
        match guard {
            // An observer may have run for longer than the lease lasts.
            Some(guard) if guard.is_over() => Err(Error::ended_meanwhile(self.call.resource(), ttl.duration())),
            guard => Ok(guard.map(|guard| Won { guard, ticket })),
        }
    }

    /// The lock is held by another client.
    fn held(&mut self) -> Option<Won<'a>> {
        self.account.faults = self.last.take().map_or_else(Vec::new, |(_, result)| result.faults);
        None
    }

    /// The error of a call that found neither that the lock is its own nor that it is held.
    fn failed(&mut self, verdict: Verdict) -> Error {
        let LockCall { client, key, ttl, .. } = self.call;
        let resource = self.call.resource();
        let result = self.last.take().map(|(_, result)| result);
        match verdict {
            Verdict::Cancelled => self.call.cancelled(),
            Verdict::NoExpiry => {
                let nodes = result.map_or(NodeSet::EMPTY, |result| result.endless);
                let key = self.call.awaited_keys(self.place).first().unwrap_or(key.title());
                if self.call.permits.is_none() {
                    client.report().key_without_expiry(key, nodes);
                }
                client.no_expiry(key, nodes)
            }
            Verdict::TooLate => {
                self.account.is_too_late = true;
                Error::too_late(resource, ttl.duration())
            }
            Verdict::Acquired(_) | Verdict::Held | Verdict::Unavailable => {
                client.unavailable("lock", resource, self.failure.take().unwrap_or_default())
            }
        }
    }
}

/// When to look again whether it is this thread's turn, at the latest; none if it is.
fn until_turn(ticket: &QueueTicket<'_>, now: Readings) -> Option<Timestamp> {
    // Of a suspended machine, the time of a sleep does not pass.
    let next_check = now.steady.after(CLOCK_CHECK_INTERVAL);
    match ticket.position(now.lease) {
        QueuePosition::Head(_) => None,
        QueuePosition::HeldHere(until) => Some(now.steady_at(until).min(next_check)),
        QueuePosition::Behind(_) => Some(next_check),
    }
}

/// A random number for a delay. Without entropy, the shortest delay is used.
pub(super) fn random() -> u64 {
    entropy::draw_jitter(&mut SysRng).unwrap_or_default()
}

/// [`random`], for the delay after a lost attempt. After a won one there is no delay, and the system call is saved.
fn random_unless_won(result: &RoundResult) -> u64 {
    if result.is_won() { 0 } else { random() }
}
