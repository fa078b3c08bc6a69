//! What stands under the driver's mutex: the reactor, which thread drives it, and what is in flight.

use super::batch::Batch;
use super::reactor::Reactor;
use super::sleepers::{Sleeper, Sleepers};
use super::submissions::{Next, Submissions, Submitted};
use super::wait_cell::{Begun, WaitCell, WaitSlot};
use crate::algorithm::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// So many solitary waits in a row show that no other thread uses the client.
const SOLITUDE: u32 = 64;

pub(super) struct State<R: Reactor> {
    pub(super) reactor: R,
    /// The time, as last read under the mutex. It is read again after each step that takes time: entering the mutex, a
    /// write, a poll, a sleep, and handing out many verdicts.
    pub(super) now: Timestamp,
    pub(super) driver: DriverState<R>,
    /// How many polls were begun.
    pub(super) polls: u64,
    /// How many of those have not come back from which another thread has taken over.
    deposed: usize,
    /// Whether submissions stay in their queue until the present batch is decided, or its hold is over. The driver then
    /// begins them. A driver that polls without knowing of the hold is not waited for: the threads that sleep do it
    /// when the hold is over.
    pub(super) is_open: bool,
    /// Whether the driver ends its poll when the hold is over. Otherwise a thread that sleeps does.
    pub(super) driver_ends_hold: bool,
    pub(super) batch: Batch,
    pub(super) helper: Helper,
    /// No helper is started any more.
    pub(super) is_closing: bool,
    sleepers: Sleepers<R>,
    /// How many more waits have to be solitary.
    company: u32,
    /// Kept for its memory.
    taken: Vec<Submitted<R>>,
}

/// The thread that drives for releases when no other does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Helper {
    Absent,
    Asleep,
    Awake,
}

/// What the driver does at present.
pub(super) enum DriverState<R: Reactor> {
    /// There is none, or it has the mutex.
    Absent,
    /// The thread that sleeps on this cell was called to drive.
    Named(Arc<WaitCell<R::Verdict>>),
    /// It waits for replies, in the poll of this number. A thread that has taken over polls by another one.
    Polling(u64),
}

impl<R: Reactor> DriverState<R> {
    pub(super) fn is_absent(&self) -> bool {
        matches!(self, DriverState::Absent)
    }

    pub(super) fn is_polling(&self) -> bool {
        matches!(self, DriverState::Polling(_))
    }

    pub(super) fn is_named(&self, cell: &Arc<WaitCell<R::Verdict>>) -> bool {
        matches!(self, DriverState::Named(named) if Arc::ptr_eq(named, cell))
    }
}

impl<R: Reactor> State<R> {
    pub(super) fn new(reactor: R) -> State<R> {
        let now = Timestamp::ORIGIN;
        State {
            reactor,
            now,
            driver: DriverState::Absent,
            polls: 0,
            deposed: 0,
            is_open: false,
            driver_ends_hold: false,
            batch: Batch::FIRST,
            helper: Helper::Absent,
            is_closing: false,
            sleepers: Sleepers::new(),
            company: 0,
            taken: Vec::new(),
        }
    }

    /// Reads the clock.
    pub(super) fn read_clock(&mut self) -> Timestamp {
        self.now = self.reactor.now();
        self.now
    }

    /// Acts on the reactor, and hands out the verdicts that come of it.
    pub(super) fn act<T>(&mut self, act: impl FnOnce(&mut R, Timestamp) -> T) -> T {
        let result = act(&mut self.reactor, self.now);
        while let Some(waiter) = self.reactor.next_decided() {
            self.deliver(waiter);
        }
        if self.driver.is_polling() {
            self.reactor.interrupt();
        }
        result
    }

    fn deliver(&mut self, id: WaitSlot) {
        let Some(waiter) = self.remove(id) else { return };
        // It does not come to drive.
        self.forget_named(&waiter.cell);
        if waiter.takes_verdict {
            waiter.cell.decide(self.reactor.conclude(waiter.ticket));
        } else {
            self.reactor.assign(waiter.ticket, None);
            waiter.cell.call();
        }
    }

    /// Registers the sleeper on this cell.
    pub(super) fn register(
        &mut self,
        cell: &Arc<WaitCell<R::Verdict>>,
        ticket: R::Ticket,
        takes_verdict: bool,
    ) -> WaitSlot {
        self.company = SOLITUDE;
        // Not as a part of a batch.
        let waiter = self.sleepers.insert(cell, ticket, takes_verdict, 0);
        self.reactor.assign(ticket, Some(waiter));
        waiter
    }

    /// The thread of this cell is awake. None if it has its verdict, or was called because its ticket is decided; then
    /// the slot may be that of another thread by now.
    pub(super) fn unregister(&mut self, waiter: WaitSlot, cell: &Arc<WaitCell<R::Verdict>>) -> Option<R::Ticket> {
        if !self.sleepers.is_on(waiter, cell) {
            return None;
        }
        let ticket = self.remove(waiter)?.ticket;
        self.reactor.assign(ticket, None);
        Some(ticket)
    }

    fn remove(&mut self, waiter: WaitSlot) -> Option<Sleeper<R>> {
        let waiter = self.sleepers.remove(waiter)?;
        self.batch.remove(waiter.batch, self.now);
        Some(waiter)
    }

    /// Begins what was submitted: as a part of the batch in flight if a driver holds the next one for it, otherwise as
    /// a batch of its own. `will_wait`: the thread drives or sleeps next, and ends the hold of the batch after it.
    pub(super) fn begin_submitted(&mut self, submissions: &Submissions<R>, will_wait: bool) {
        if will_wait && !(self.is_open && self.driver.is_polling()) {
            self.open_batch();
        }
        submissions.take(&mut self.taken, |_| self.is_open);
        self.begin_taken();
    }

    /// Begins what was submitted while the batch before it was in flight. If there is nothing, no thread leaves its
    /// submission to another one any more.
    pub(super) fn begin_next_batch(&mut self, submissions: &Submissions<R>) {
        self.read_clock();
        self.open_batch();
        let is_open = self.is_open;
        self.is_open = submissions.take(&mut self.taken, |is_empty| is_open && !is_empty);
        self.begin_taken();
    }

    fn open_batch(&mut self) {
        self.is_open = self.batch.begin_next(self.now);
    }

    fn begin_taken(&mut self) {
        if self.taken.is_empty() {
            return;
        }
        self.company = SOLITUDE;
        // Later than each submission: a node that was sent nothing since an attempt began has no key of it.
        self.read_clock();
        let mut taken = std::mem::take(&mut self.taken);
        for submitted in taken.drain(..) {
            match submitted {
                Submitted::Posted(posting) => {
                    self.act(|reactor, now| reactor.begin_posted(posting, now));
                }
                Submitted::Awaited(submission, cell) => self.begin(&submission, &cell),
            }
        }
        self.taken = taken;
    }

    fn begin(&mut self, submission: &R::Submission, cell: &Arc<WaitCell<R::Verdict>>) {
        let (ticket, has_to_connect) = self.act(|reactor, now| reactor.begin(submission, now));
        let waiter = self.sleepers.insert(cell, ticket, true, self.batch.number);
        self.batch.insert();
        cell.begin(Begun { waiter, has_to_connect });
        if self.reactor.is_decided(ticket) {
            self.deliver(waiter);
        } else {
            self.reactor.assign(ticket, Some(waiter));
        }
    }

    /// Sends what was begun.
    pub(super) fn flush(&mut self) {
        self.act(|reactor, _| reactor.flush());
    }

    /// For how much longer submissions may stay in their queue. For any time, if they do not stay there.
    pub(super) fn hold_left(&self, now: Timestamp) -> Duration {
        if self.is_open { self.batch.held_until.since(now) } else { Duration::MAX }
    }

    /// For how long the present thread may sleep before it has to end the hold itself.
    pub(super) fn hold_to_end(&self, now: Timestamp) -> Duration {
        let is_unknown = self.driver.is_polling() && !self.driver_ends_hold;
        if is_unknown { self.hold_left(now) } else { Duration::MAX }
    }

    /// Gives up a hold that the driver does not end, when the thread leaves that would have.
    pub(super) fn close_unknown_hold(&mut self, submissions: &Submissions<R>) {
        if self.is_open && self.driver.is_polling() && !self.driver_ends_hold {
            self.is_open = false;
            self.begin_submitted(submissions, false);
        }
    }

    /// Whether others of the batch are still to be answered, and are worth waiting for.
    pub(super) fn is_batch_in_flight(&self, now: Timestamp) -> bool {
        self.is_open && !self.batch.is_decided() && now < self.batch.held_until
    }

    /// The driver begins a poll. Gives its number.
    pub(super) fn begin_poll(&mut self) -> u64 {
        self.polls += 1;
        self.driver = DriverState::Polling(self.polls);
        self.polls
    }

    /// A poll is over. Nothing ends with it if another thread has taken over.
    pub(super) fn end_poll(&mut self, number: u64) {
        if matches!(self.driver, DriverState::Polling(current) if current == number) {
            self.driver = DriverState::Absent;
        } else {
            self.deposed -= 1;
        }
    }

    /// The thread that polls drives no more, though it has not come back.
    pub(super) fn depose(&mut self) {
        self.deposed += 1;
        self.driver = DriverState::Absent;
    }

    /// Wakes threads that poll without driving, because what they wait for may be decided. Others that poll may swallow
    /// that, so each thread that leaves does it again.
    pub(super) fn wake_deposed(&mut self) {
        if self.deposed > 0 {
            self.reactor.end_polls();
        }
    }

    /// Looks for replies without waiting, though another thread polls. That one is woken, as it does not see what was
    /// read here.
    pub(super) fn look(&mut self) {
        let mut watch = self.reactor.watch(false, self.now);
        R::poll(&mut watch, Duration::ZERO);
        self.act(|reactor, now| reactor.absorb(watch, now));
    }

    /// Counts how long the driver's own ticket has taken, alone or with others.
    pub(super) fn learn(&mut self, begun_at: Timestamp) {
        let time = self.now.since(begun_at);
        self.batch.record(time);
        if self.sleepers.is_empty() {
            self.company = self.company.saturating_sub(1);
        }
        if self.is_alone() {
            self.reactor.note_solitary_wait(time);
        }
    }

    /// Whether no other thread uses the client.
    pub(super) fn is_alone(&self) -> bool {
        self.sleepers.is_empty() && self.company == 0
    }

    pub(super) fn has_sleepers(&self) -> bool {
        !self.sleepers.is_empty()
    }

    /// The thread of this cell is awake, or has no reason to come.
    pub(super) fn forget_named(&mut self, cell: &Arc<WaitCell<R::Verdict>>) {
        if self.driver.is_named(cell) {
            self.driver = DriverState::Absent;
        }
    }

    /// Calls a thread to drive, if one has to and none does: the first one that waits in the queue, which then begins
    /// what has come until then, or one whose submission is in flight.
    pub(super) fn name_next_driver(&mut self, submissions: &Submissions<R>) {
        while self.driver.is_absent() {
            let next = match submissions.next() {
                Next::Posted => {
                    self.begin_submitted(submissions, false);
                    self.flush();
                    continue;
                }
                Next::Awaited(cell) => Some(cell),
                Next::Nothing => {
                    self.is_open = false;
                    self.sleepers.next_driver().cloned()
                }
            };
            let Some(cell) = next else { return };
            cell.call();
            self.driver = DriverState::Named(cell);
        }
    }
}
