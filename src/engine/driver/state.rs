//! What is under the driver's mutex: the reactor, which thread drives it, and what is in flight.

use super::batch::Batch;
use super::driving::Driving;
use super::reactor::Reactor;
use super::sleepers::{Sleeper, Sleepers};
use super::submissions::{Submissions, Submitted};
use super::wait_cell::{WaitCell, WaitSlot};
use crate::algorithm::time::Timestamp;
use crate::os::sync::{Mutex, lock};
use std::sync::Arc;
use std::time::Duration;

pub(super) struct State<R: Reactor> {
    pub(super) reactor: R,
    /// The time, as last read under the mutex or on the way to it. It is read again after each step
    /// that takes time: waiting for the mutex, a write, a poll, a sleep, and handing out many
    /// verdicts.
    pub(super) now: Timestamp,
    pub(super) driving: Driving,
    pub(super) batch: Batch,
    pub(super) helper: Helper,
    /// No helper is started any more.
    pub(super) is_closing: bool,
    pub(super) sleepers: Sleepers<R>,
    /// Kept for its memory.
    taken: Vec<Submitted<R>>,
}

/// The thread that drives for releases when no other does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Helper {
    Absent,
    /// Until then at most.
    Asleep(Timestamp),
    Awake,
}

impl<R: Reactor> State<R> {
    pub(super) fn new(reactor: R) -> State<R> {
        State {
            reactor,
            now: Timestamp::ORIGIN,
            driving: Driving::new(),
            batch: Batch::FIRST,
            helper: Helper::Absent,
            is_closing: false,
            sleepers: Sleepers::new(),
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
        while let Some(slot) = self.reactor.next_decided() {
            self.deliver(slot);
        }
        if self.driving.poll().is_some() {
            self.reactor.interrupt();
        }
        result
    }

    fn deliver(&mut self, slot: WaitSlot) {
        let Some(sleeper) = self.remove(slot) else {
            return;
        };
        // It does not come to drive.
        self.driving.forget_named(slot);
        let verdict = sleeper
            .takes_verdict
            .then(|| self.reactor.conclude(sleeper.ticket));
        sleeper.cell.wake(verdict);
    }

    /// A thread sleeps until its ticket is decided.
    pub(super) fn insert(&mut self, sleeper: Sleeper<R>) {
        self.reactor.assign(sleeper.ticket, Some(sleeper.cell.slot));
        self.sleepers.insert(sleeper);
    }

    /// A thread sleeps that was awake: its submission is part of no batch any more. Returns what it
    /// sleeps on.
    pub(super) fn sleep(
        &mut self,
        ticket: R::Ticket,
        takes_verdict: bool,
    ) -> Arc<WaitCell<R::Verdict>> {
        let cell = WaitCell::new();
        self.insert(Sleeper {
            cell: Arc::clone(&cell),
            ticket,
            takes_verdict,
            batch: 0,
            has_to_connect: false,
        });
        cell
    }

    /// The thread of this cell is awake, or to be woken. None if that was done before, because its
    /// ticket is decided, or if its submission was not begun.
    pub(super) fn remove(&mut self, slot: WaitSlot) -> Option<Sleeper<R>> {
        let sleeper = self.sleepers.remove(slot)?;
        self.batch.remove(sleeper.batch, self.now);
        Some(sleeper)
    }

    /// Begins what was submitted: as a part of the batch in flight if a driver holds the next one
    /// for it, otherwise as a batch of its own. `will_wait`: the thread drives or sleeps next, and
    /// ends the hold of the batch after it.
    pub(super) fn begin_submitted(&mut self, submissions: &Mutex<Submissions<R>>, will_wait: bool) {
        if will_wait && !(self.batch.is_held() && self.driving.poll().is_some()) {
            self.begin_batch();
        }
        self.begin_queued(submissions, true);
    }

    /// Begins what was submitted while the batch before it was in flight. If there is nothing, no
    /// thread leaves its submission to another one any more.
    pub(super) fn begin_next_batch(&mut self, submissions: &Mutex<Submissions<R>>) {
        self.begin_batch();
        self.begin_queued(submissions, false);
    }

    /// The next batch begins.
    pub(super) fn begin_batch(&mut self) {
        self.batch.begin_next(self.now, self.sleepers.is_alone());
    }

    /// Begins what is in the queue. It stays open while there is a hold. `keeps_hold`: also if it
    /// was empty.
    fn begin_queued(&mut self, submissions: &Mutex<Submissions<R>>, keeps_hold: bool) {
        let mut queue = lock(submissions);
        if queue.list.is_empty() && !keeps_hold {
            self.batch.end_hold();
        }
        queue.is_open = self.batch.is_held();
        std::mem::swap(&mut queue.list, &mut self.taken);
        drop(queue);
        if !self.taken.is_empty() {
            self.begin_taken();
        }
    }

    fn begin_taken(&mut self) {
        self.sleepers.on_other_thread();
        // Later than each submission: a node that was sent nothing since an attempt began has no
        // key of it.
        self.read_clock();
        let mut taken = std::mem::take(&mut self.taken);
        for submitted in taken.drain(..) {
            match submitted {
                Submitted::Posted(posting) => {
                    self.act(|reactor, now| reactor.begin_posted(posting, now))
                }
                Submitted::Awaited(submission, cell) => self.begin(&submission, cell),
            }
        }
        self.taken = taken;
    }

    fn begin(&mut self, submission: &R::Submission, cell: Arc<WaitCell<R::Verdict>>) {
        let (ticket, has_to_connect) = self.act(|reactor, now| reactor.begin(submission, now));
        let slot = cell.slot;
        let batch = self.batch.number;
        self.batch.insert();
        self.insert(Sleeper {
            cell,
            ticket,
            takes_verdict: true,
            batch,
            has_to_connect,
        });
        if self.reactor.is_decided(ticket) {
            self.deliver(slot);
        }
    }

    /// Sends what was begun.
    pub(super) fn flush(&mut self) {
        self.act(|reactor, _| reactor.flush());
    }

    /// Looks for replies without waiting, though another thread polls. That one is woken, as it
    /// does not see what was read here.
    pub(super) fn look(&mut self) {
        let mut watch = self.reactor.watch(false, self.now);
        R::poll(&mut watch, Duration::ZERO);
        self.act(|reactor, now| reactor.absorb(watch, now));
    }

    /// Counts how long the driver's own ticket has taken, alone or with others.
    pub(super) fn learn(&mut self, begun_at: Timestamp) {
        let time = self.now.since(begun_at);
        self.batch.record(time);
        self.sleepers.on_wait();
        if self.sleepers.is_alone() {
            self.reactor.record_solitary_wait(time);
        }
    }

    /// The thread leaves: sends what was begun, and calls another one to drive, if one has to and
    /// none does. That is the first one that waits in the queue, which then begins what was
    /// submitted until then, or one whose submission is in flight. Returns what it sleeps on, for
    /// the caller to wake it when the mutex is free.
    #[must_use]
    pub(super) fn hand_over(
        &mut self,
        submissions: &Mutex<Submissions<R>>,
    ) -> Option<Arc<WaitCell<R::Verdict>>> {
        let mut next = None;
        if self.batch.is_held() && self.driving.leaves_hold() {
            if self.driving.is_absent() {
                next = lock(submissions).first_awaited();
            }
            if next.is_none() {
                self.batch.end_hold();
                self.begin_queued(submissions, false);
            }
        }
        self.flush();
        let named = if self.driving.is_absent() {
            next.or_else(|| self.sleepers.next_driver())
        } else {
            None
        };
        if let Some(cell) = &named {
            self.driving.name(cell.slot);
        }
        // What threads wait for that poll without driving may be decided. Others that poll may
        // swallow that, so each thread that leaves does it again.
        if self.driving.has_deposed() {
            self.reactor.end_polls();
        }
        named
    }
}
