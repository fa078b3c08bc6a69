//! The attempts of one call, and what happens between them.
//!
//! [`Attempts::run`] drives the [`Acquire`] machine by the numbered steps of its module: one method
//! for each step. A call for a permit makes its attempts in [`search`](super::search), and
//! [`waiting`] is about the queues.

mod waiting;

use super::account::CallAccount;
use super::call::LockCall;
use super::slots::Search;
use crate::algorithm::acquire::{Acquire, AcquireConfig, Output, Verdict, WaitBounds};
use crate::algorithm::backoff::Backoff;
use crate::algorithm::fence::Agreement;
use crate::algorithm::kind::Kind;
use crate::algorithm::lease::Validity;
use crate::algorithm::node::NodeSet;
use crate::algorithm::queue::TakeRequest;
use crate::algorithm::time::Readings;
use crate::algorithm::vote::Outcome;
use crate::api::held_lock::HeldLock;
use crate::api::wait::{InterruptRegistration, Wait};
use crate::engine::calls::{AttemptRecord, AttemptRequest, InTurn, RoundResult};
use crate::engine::local_queue::{HoldId, QueueTicket, Unavailability};
use crate::engine::seat::Seat;
use crate::events::error::{Error, Result};
use crate::events::report::WonCall;
use crate::os::entropy;
use crate::protocol::lock_key::LockKey;
use crate::protocol::operation::Departure;
use getrandom::SysRng;
use std::time::Duration;

/// For how long a call of a program that has woken another one lets that one ask: what nodes do for
/// this call meanwhile is in vain, and in the way of that one.
const HEAD_START: Duration = Duration::from_micros(200);

/// The wait of a call that is the head of its program's queue, for messages from the nodes.
///
/// It ends with a message, at the given time, by an interrupt from this process, or when it is
/// cancelled. All sources are registered before a round asks the nodes, and the wait follows it: no
/// release is missed in between. Dropping it removes the call's entry.
struct Waiter<'w> {
    // Dropped before the seat: a cancellation does not interrupt a wait that has gone.
    registration: InterruptRegistration<'w>,
    seat: Seat<'w>,
}

/// The attempts of one call: the only one of its client for this lock, but for calls of `try_lock`.
pub(super) struct Attempts<'a, 'm> {
    pub(super) call: LockCall<'a>,
    pub(super) account: &'a mut CallAccount<'m>,
    pub(super) wait: &'a Wait,
    pub(super) machine: Acquire,
    /// For a call for a permit: where to try next.
    pub(super) search: Search,
    /// The last attempt, with the result of its last round.
    pub(super) last: Option<(AttemptRecord, RoundResult)>,
    /// What the last attempt ran into that had its full time, of this call or of the one before it,
    /// if it failed.
    failure: Option<Unavailability>,
    /// How many round trips the last attempt took.
    round_trips: u32,
    /// Both clocks, read after the last reply of the last round was.
    pub(super) now: Readings,
    /// Whether a lost attempt is still to be reported.
    is_loss_unreported: bool,
    /// Whether a set whose entry is in the queue of one of its keys asks for all keys next.
    asks_for_all: bool,
    // Fields are dropped in this order: a waiter is unregistered before its thread leaves the
    // queue.
    waiter: Option<Box<Waiter<'a>>>,
    /// The place in the queue, until the lock is won. A reader keeps it: threads behind it look for
    /// the lease when it leaves.
    pub(super) ticket: Option<QueueTicket<'a>>,
    /// For a set: which of its keys the ticket and the waiter are for.
    pub(super) key_index: usize,
}

impl<'a, 'm> Attempts<'a, 'm> {
    /// Begins with a first attempt. A call without a ticket does not wait; the ticket of a set is
    /// for one of its keys.
    pub(super) fn new(
        call: LockCall<'a>,
        queued: Option<(QueueTicket<'a>, usize)>,
        wait: &'a Wait,
        account: &'a mut CallAccount<'m>,
    ) -> Attempts<'a, 'm> {
        let LockCall {
            lock, ttl, started, ..
        } = call;
        let client = &lock.client;
        let settings = &client.settings;
        let (ticket, key_index) = queued.unzip();
        let waits = ticket.is_some() && call.wait_deadline().is_some();
        let queues = waits && client.engine.has_messages();
        let woken = client
            .engine
            .woke_another(call.awaited_keys(None))
            .map(|woken| woken.after(HEAD_START));
        let config = AcquireConfig {
            ttl,
            node_timeout: settings.node_timeout,
            wait_limit: call.limit,
            backoff: Backoff::new(settings.retry_min, settings.retry_max),
            permanent_fault_limit: settings.unavailable_after,
            queues,
            first_in_turn: woken
                .or(call.is_in_turn().then_some(started))
                .filter(|_| queues),
        };
        let mut machine = Acquire::new(config, started);
        let mut failure = None;
        if let Some(ticket) = ticket.as_ref().filter(|ticket| !ticket.is_first()) {
            match ticket.is_known_held() {
                Ok(()) => machine.was_held(),
                Err(found) if found.causes.is_empty() => {}
                Err(found) => {
                    machine.was_unavailable();
                    // The queue's head before this call may have found permanent faults: their time
                    // goes on to count.
                    if let Some(since) = found.quorum_impossible_since {
                        machine
                            .early_end()
                            .was_quorum_impossible(since.max(account.called_at.steady));
                    }
                    failure = Some(found);
                }
            }
        }
        Attempts {
            call,
            now: account.called_at,
            account,
            wait,
            machine,
            search: Search::default(),
            last: None,
            failure,
            round_trips: 1,
            is_loss_unreported: false,
            asks_for_all: false,
            waiter: None,
            ticket,
            key_index: key_index.unwrap_or_default(),
        }
    }

    /// Whether the wait is cancelled, or the client shut down.
    fn is_cancelled(&self) -> bool {
        self.call.client().shutdown.has_begun() || self.wait.is_cancelled()
    }

    /// Does what the machine asks for until it is done. `None`: the lock is held by another client.
    pub(super) fn run(&mut self) -> Result<Option<HeldLock>> {
        loop {
            let output = self.machine.poll();
            // An observer that gets the event of a lost attempt can rely on its undo having been
            // queued.
            if !matches!(output, Output::Undo(_)) {
                self.report_loss();
            }
            match output {
                Output::Attempt if self.is_cancelled() => self.machine.cancelled(),
                Output::Attempt if self.call.lock.permits.is_some() => self.search()?,
                Output::Attempt if self.is_to_enqueue() => self.enqueue_set()?,
                Output::Attempt => self.attempt()?,
                Output::Raise(agreement) => self.raise(&agreement),
                Output::Undo(nodes) => self.undo(nodes),
                Output::Store(nodes) => self.store(nodes),
                Output::Enqueue => self.enqueue(),
                Output::Wait(_) if self.is_behind() => {
                    if !self.wait_in_queue()? {
                        return Ok(self.held());
                    }
                    self.machine.retry_now(self.now.steady);
                }
                Output::Wait(until) => {
                    if !self.wait_in_turn(until)? {
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
        self.ask()?;
        self.attempted(1);
        Ok(())
    }

    /// Asks all nodes for the lock of the key: in the call's turn if it has an entry, or if the
    /// kind of the lock has to be asked for so.
    pub(super) fn ask(&mut self) -> Result<()> {
        let kind = self.call.kind();
        let is_set = self.call.lock.is_set();
        let is_asked_on = std::mem::take(&mut self.asks_for_all);
        if let (true, false, Some(queue)) = (is_set, is_asked_on, self.machine.queue()) {
            queue.ask(self.now.steady);
        }
        let in_turn = if is_set { None } else { self.in_turn() };
        self.last = Some(self.ask_nodes(self.call.key(), kind, in_turn)?);
        Ok(())
    }

    fn ask_nodes(
        &mut self,
        key: &LockKey,
        kind: Kind,
        in_turn: Option<InTurn>,
    ) -> Result<(AttemptRecord, RoundResult)> {
        let engine = &self.call.client().engine;
        let deadline = |t0, connects| self.machine.attempt_deadline(t0, connects);
        let token = entropy::draw(&mut SysRng)
            .map_err(|_| Error::entropy())?
            .labelled(self.call.label());
        let ttl_millis = self.call.ttl.millis();
        let request = AttemptRequest {
            key: key.clone(),
            token,
            ttl_millis,
            kind,
            in_turn,
        };
        let seat = self.waiter.as_deref().map(|waiter| &waiter.seat);
        let asked = engine.acquire(request, seat, deadline);
        if let (
            Some(waiter),
            Some(InTurn {
                request: TakeRequest { entry: Some(_), .. },
                ..
            }),
        ) = (&mut self.waiter, in_turn)
        {
            waiter.seat.record_stored(asked.0.reached);
        }
        self.now = engine.readings();
        Ok(asked)
    }

    /// Counts the last attempt, which took so many round trips.
    pub(super) fn attempted(&mut self, round_trips: u32) {
        let Some((record, result)) = &mut self.last else {
            return;
        };
        let random = random_unless_won(result);
        if let Some(round) = &mut result.queue {
            round.on_refusals(result.tally.refused());
        }
        let was_attentive = self.machine.is_attentive();
        self.machine
            .set_wait_bounds(wait_bounds(result, self.key_index, self.waiter.as_deref()));
        if let Some(round) = result.queue.take() {
            self.machine.answered_in_turn(round, result.tally.granted());
        }
        let t0 = record.t0;
        let tally = &result.tally;
        let reached = record.reached;
        match result.agreement {
            Some(agreement) => self
                .machine
                .attempted_fenced(t0, tally, agreement, reached, self.now, random),
            None => self.machine.attempted(t0, tally, reached, self.now, random),
        }
        let has_won = result.is_won();
        if let (Some(waiter), Some(queue)) = (&self.waiter, self.machine.queue())
            // A call that asks by a delay may win before the message arrives.
            && queue.has_missed(has_won && was_attentive)
        {
            waiter.seat.record_missed_message();
        }
        self.counted(round_trips);
    }

    /// Raises the fence on the nodes that are behind, and counts their answers.
    fn raise(&mut self, agreement: &Agreement) {
        // The machine asks for a raise only after an attempt.
        let Some((record, _)) = self.last.take() else {
            return self.machine.cancelled();
        };
        let engine = &self.call.client().engine;
        let deadline = |start| self.machine.raise_deadline(start);
        let result = engine.raise(self.call.key(), &record, agreement, deadline);
        let random = random_unless_won(&result);
        self.now = engine.readings();
        self.machine.raised(&result.tally, self.now, random);
        self.last = Some((record, result));
        self.counted(2);
    }

    /// Keeps what the last round has come to, for the threads behind in the queue as well.
    fn counted(&mut self, round_trips: u32) {
        let Some((_, result)) = &self.last else {
            return;
        };
        if self.machine.is_held() {
            // An attempt that the deadline cut short has no new answer; nor has one about another
            // key of a set.
            let is_answer =
                result.tally.acquisition() == Outcome::Held && is_about(result, self.key_index);
            if let (Some(ticket), true) = (&self.ticket, is_answer) {
                ticket.record_answer(self.now.steady);
            }
            self.failure = None;
        } else if !(result.is_won() || self.failure.is_some() && self.machine.is_cut_short()) {
            let quorum_impossible_since = self.machine.early_end().quorum_impossible_since();
            let found = Unavailability {
                quorum_impossible_since,
                ..self.call.client().unavailability(result)
            };
            if let Some(ticket) = &self.ticket {
                ticket.record_unavailability(found.clone());
            }
            self.failure = Some(found);
        }
        self.account.attempts = self.machine.attempts();
        self.is_loss_unreported = self.machine.is_lost();
        self.round_trips = round_trips;
    }

    /// Queues the release of what a lost attempt may have set on these nodes. The call's entry
    /// stays there, but where it leaves.
    fn undo(&mut self, nodes: NodeSet) {
        let departure = self.departure();
        let leaves = self
            .machine
            .queue()
            .map_or(NodeSet::EMPTY, |queue| queue.leaves());
        let Some((record, _)) = &self.last else {
            return;
        };
        let stays = nodes.without(leaves);
        let leaving = departure.map(Departure::without_ticket);
        for (reached, departure) in [(stays, departure), (nodes.without(stays), leaving)] {
            self.call.undo(record, reached, departure);
        }
    }

    /// What becomes of the call's entry where an attempt is undone.
    pub(super) fn departure(&mut self) -> Option<Departure> {
        let key = self.key_index as u8;
        self.machine.queue().map(|queue| Departure {
            entry: queue.entry(),
            ticket: queue.ticket,
            key,
        })
    }

    fn report_loss(&mut self) {
        if std::mem::take(&mut self.is_loss_unreported)
            && let Some((_, result)) = &self.last
        {
            let key = self.call.key();
            self.call.client().report.attempt_lost(
                key.title(),
                self.machine.attempts(),
                &result.tally,
                &result.faults,
            );
        }
    }

    /// Makes what is held of a lock that was won.
    fn acquired(&mut self, validity: Validity) -> Result<Option<HeldLock>> {
        let call = self.call;
        let LockCall {
            lock, local, ttl, ..
        } = call;
        let client = &lock.client;
        let departure = self.departure().map(Departure::without_ticket);
        let until = self.now.steady_at(validity.end());
        // Those that have hung or were lost since are not among the nodes of the last attempt.
        // The release removes the entry, if there is one.
        let waiter = self.waiter.take().filter(|_| departure.is_some());
        let may_have_entry = waiter.map_or(NodeSet::EMPTY, |waiter| waiter.seat.win(until));
        let held = self.last.take().map(|(record, _)| {
            let record = AttemptRecord {
                reached: record.reached.union(may_have_entry),
                departure,
                ..record
            };
            let begun = record.t0.lease;
            let link = self.account.span.link();
            // A thread that waits to read shares the lease of one that reads.
            if lock.kind != Kind::Read {
                local.hold(HoldId::of(&record.token), validity, self.now);
                // A shutdown waits for the ticket, and would not see the holder of a slot. It goes
                // before the span begins, of which a subscriber may take a lock as well.
                self.ticket.take_if(|_| !client.shutdown.has_begun());
            } else if let Some(ticket) = &self.ticket {
                // An observer may keep this thread for long.
                ticket.record_answer(self.now.steady);
            }
            (lock.hold(local, record, validity, ttl, link), begun)
        });
        let attempts = self.machine.attempts();
        let queue = self.machine.queue();
        let won = WonCall {
            waited: self.now.steady.since(self.account.called_at.steady),
            attempts,
            round_trips: self.round_trips,
            position: queue
                .as_ref()
                .and_then(|queue| queue.first_rank())
                .map(|rank| rank.saturating_add(1)),
            because: queue.map(|queue| queue.because()).unwrap_or_default(),
            has_waited: self.account.has_waited,
        };
        client.report.acquired(local.key().title(), &won);
        self.account.is_reported = true;
        let Some((held, begun)) = held else {
            return Ok(None);
        };
        held.announce();
        let is_told = cfg!(feature = "tracing") || client.report.is_observed();
        // If it is not granted, it is released before the ticket goes, and not kept.
        call.check_granted(&held, is_told)?;
        lock.keep(&held, || begun);
        Ok(Some(held))
    }

    /// The lock is held by another client.
    fn held(&mut self) -> Option<HeldLock> {
        self.account.faults = self
            .last
            .take()
            .map_or_else(Vec::new, |(_, result)| result.faults);
        None
    }

    /// The error of a call that found neither that the lock is its own nor that it is held.
    fn failed(&mut self, verdict: Verdict) -> Error {
        let client = self.call.client();
        let result = self.last.take().map(|(_, result)| result);
        match verdict {
            Verdict::Cancelled => self.call.cancelled(),
            Verdict::NoExpiry => {
                let nodes = result.map_or(NodeSet::EMPTY, |result| result.endless());
                let key = self
                    .call
                    .awaited_keys(Some(self.key_index))
                    .first()
                    .unwrap_or(self.call.key().title());
                if self.call.lock.permits.is_none() {
                    client.report.key_without_expiry(key, nodes);
                }
                client.no_expiry(key, nodes)
            }
            Verdict::TooLate => {
                self.account.is_too_late = true;
                Error::too_late(self.call.name(), self.call.ttl.duration())
            }
            Verdict::Acquired(_) | Verdict::Held | Verdict::Unavailable => self
                .call
                .unavailable(self.failure.take().unwrap_or_default()),
        }
    }
}

/// What the wait after this result goes by.
fn wait_bounds(result: &RoundResult, key_index: usize, waiter: Option<&Waiter<'_>>) -> WaitBounds {
    if !is_about(result, key_index) {
        return WaitBounds::NONE;
    }
    let unstored = result
        .queue
        .as_ref()
        .map_or(NodeSet::EMPTY, |round| round.unstored());
    let is_told = result
        .queue
        .as_ref()
        .is_none_or(|round| !round.waits_for_other_library());
    WaitBounds {
        free_at: result.free_at(),
        is_attentive: is_told && waiter.is_some_and(|waiter| waiter.seat.is_attentive(unstored)),
        is_endless: result.endless().len() >= result.tally.quorum(),
    }
}

/// Whether the result is about this key, which the call waits for, not another one of its set.
fn is_about(result: &RoundResult, key_index: usize) -> bool {
    result.refused_key().is_none_or(|key| key == key_index)
}

/// A random number for a delay. Without entropy, the shortest delay is used.
pub(super) fn random() -> u64 {
    entropy::draw_jitter(&mut SysRng).unwrap_or_default()
}

/// [`random`], for the delay after a lost attempt. After a won one there is no delay, and the
/// system call is saved.
fn random_unless_won(result: &RoundResult) -> u64 {
    if result.is_won() { 0 } else { random() }
}
