//! How waiting threads share one reactor: one of them drives it for all.
//!
//! The reactor (connections, rounds in flight) stands under one mutex that is never held across a wait. One thread at
//! a time is the *driver*: it begins what was submitted, sends it, polls, lets the reactor absorb what is ready, and
//! stores each verdict where the thread sleeps that waits for it. No other thread needs the mutex.
//!
//! ```text
//!              no thread has the duty ──► begin, send ──► no driver: drive ──► decided ──► gone; name a driver
//!             ╱                                           a driver: sleep
//!   submit ──┤
//!             ╲
//!              a thread has the duty ──► leave it in the queue, sleep ──► verdict stored ──► gone, waits for no lock
//!                                                               └───────► named, or late ──► begin, send, drive
//! ```
//!
//! What comes while a batch is in flight waits until the batch is decided, or its [hold](batch) is over, and then
//! leaves together: in one write to each node. While nothing is held, each thread sends its own submission at once.
//!
//! Invariants, each of which a model test breaks on purpose to see it fail:
//! 1. While a thread sleeps undecided, there is a driver, or a thread that was named the next one and is awake.
//! 2. A verdict is stored before its thread is woken, in the cell where the thread looks.
//! 3. A thread sleeps no longer than to its own deadline, whichever thread drives and however long. A submission that
//!    was not begun within [`PATIENCE`] is begun by its own thread. A thread that has slept for [`POLL_PATIENCE`], and
//!    again for twice as long each time, through one and the same poll of another thread, looks for replies itself. If
//!    that decides its ticket, the other thread has not come back from its poll, and drives no more.
//! 4. Submissions are begun in their order, and a thread that enters the mutex begins them before its own: no command
//!    overtakes the release before it.
//! 5. While the queue of submissions is open, a thread has the duty to begin what is in it: the driver, the thread
//!    named next, or one on its way to the mutex. What was begun is sent before the mutex is left.
//! 6. While work is left that a thread could do and none waits for, there is a thread that does it: the last one that
//!    leaves starts it.

// Named, because model checks include this file from elsewhere.
mod batch;
mod helper;
mod reactor;
mod sleepers;
mod state;
mod submissions;
mod wait_cell;

use crate::algorithm::time::Timestamp;
use crate::os::sync::{Condvar, JoinHandle, Mutex, MutexGuard, lock};
pub(crate) use reactor::Reactor;
use state::{DriverState, State};
use std::sync::{Arc, Weak};
use std::time::Duration;
use submissions::Submissions;
use wait_cell::WaitCell;
pub(crate) use wait_cell::WaitSlot;

/// How long a thread relies on another one that has the duty to begin its submission, or was named to drive. That one
/// comes within microseconds, unless the processor runs other programs.
const PATIENCE: Duration = Duration::from_millis(5);
/// How long a thread relies on one poll of another thread before it looks for replies itself. The thread that polls
/// may not come back: it may be in a signal handler of the program, or get no processor time. Long, because nothing is
/// wrong where nodes take their time.
const POLL_PATIENCE: Duration = Duration::from_millis(20);

/// A reactor that threads drive in turn.
pub(crate) struct Driver<R: Reactor> {
    submissions: Submissions<R>,
    state: Mutex<State<R>>,
    /// What the helper sleeps on, and its thread.
    helper_signal: Condvar,
    helper_thread: Mutex<Option<JoinHandle<()>>>,
    /// For the helper to hold.
    this: Weak<Driver<R>>,
}

type Guard<'a, R> = MutexGuard<'a, State<R>>;

/// One thread's wait for its ticket.
struct OwnWait<T> {
    ticket: T,
    /// Whether its verdict can be stored where the thread sleeps.
    takes_verdict: bool,
    /// With which batch it was begun.
    batch: u64,
    /// For how long to sleep before the next look for replies.
    patience: Duration,
}

impl<R: Reactor + Send + 'static> Driver<R> {
    pub(crate) fn new(reactor: R) -> Arc<Driver<R>> {
        Arc::new_cyclic(|this| Driver {
            submissions: Submissions::new(),
            state: Mutex::new(State::new(reactor)),
            helper_signal: Condvar::new(),
            helper_thread: Mutex::new(None),
            this: Weak::clone(this),
        })
    }

    /// Submits something at `now`, and waits for its verdict. `deadline` says until when at most, given whether
    /// connections have to be made first. `queued` is called when it has its place: what is begun later goes behind it.
    pub(crate) fn submit(
        &self,
        submission: R::Submission,
        now: Timestamp,
        mut deadline: impl FnMut(bool) -> Timestamp,
        queued: impl FnOnce(),
    ) -> R::Verdict {
        if let Some(mut queue) = self.submissions.open() {
            let cell = queue.submit(submission);
            drop(queue);
            queued();
            return self.await_verdict(cell, now, deadline);
        }
        let mut state = self.enter_state(true);
        let (ticket, has_to_connect) = state.act(|reactor, now| reactor.begin(&submission, now));
        queued();
        self.see_through(state, ticket, deadline(has_to_connect))
    }

    /// Submits something that no thread waits for.
    pub(crate) fn post(&self, posting: R::Posting) {
        if let Some(mut queue) = self.submissions.open() {
            return queue.post(posting);
        }
        let mut state = self.enter_state(false);
        state.act(|reactor, now| reactor.begin_posted(posting, now));
        self.leave(state);
    }

    /// Does something in the reactor that does not wait.
    pub(crate) fn enter<T>(&self, act: impl FnOnce(&mut R, Timestamp) -> T) -> T {
        let mut state = self.enter_state(false);
        let result = state.act(act);
        self.leave(state);
        result
    }

    /// Does something in the reactor that concerns no driver and does not wait, unless another thread has the mutex.
    pub(crate) fn try_enter(&self, act: impl FnOnce(&mut R)) {
        if let Ok(mut state) = self.state.try_lock() {
            act(&mut state.reactor);
        }
    }

    /// Begins something in the reactor, waits until it is decided, and collects it. `begin` is given the time, and
    /// gives the ticket and the deadline of the wait.
    pub(crate) fn run<T>(
        &self,
        begin: impl FnOnce(&mut R, Timestamp) -> (R::Ticket, Timestamp),
        collect: impl FnOnce(&mut R, R::Ticket) -> T,
    ) -> T {
        let mut state = self.enter_state(false);
        let (ticket, deadline) = state.act(begin);
        // No verdict is stored for a thread that looks for itself.
        let waited = self.wait(state, (ticket, deadline), false);
        let mut state = waited.unwrap_or_else(|_| lock(&self.state));
        let result = collect(&mut state.reactor, ticket);
        self.leave(state);
        result
    }

    /// Waits for the verdict on what another thread has the duty to begin.
    fn await_verdict(
        &self,
        cell: Arc<WaitCell<R::Verdict>>,
        now: Timestamp,
        mut deadline: impl FnMut(bool) -> Timestamp,
    ) -> R::Verdict {
        let patience = deadline(false).since(now).min(PATIENCE);
        loop {
            if let Some(verdict) = cell.wait(patience) {
                self.submissions.put_cell(cell);
                return verdict;
            }
            // Named the next driver, or the thread that has the duty is late.
            let mut state = lock(&self.state);
            state.read_clock();
            state.forget_named(&cell);
            if cell.begun().is_none() {
                state.begin_submitted(&self.submissions, true);
            }
            if let Some(begun) = cell.begun()
                && let Some(ticket) = state.unregister(begun.waiter, &cell)
            {
                self.submissions.put_cell(cell);
                return self.see_through(state, ticket, deadline(begun.has_to_connect));
            }
            self.leave(state);
        }
    }

    /// Waits for a submission that was begun.
    fn see_through(&self, state: Guard<'_, R>, ticket: R::Ticket, deadline: Timestamp) -> R::Verdict {
        match self.wait(state, (ticket, deadline), true) {
            Err(verdict) => verdict,
            Ok(mut state) => {
                let verdict = state.reactor.conclude(ticket);
                self.leave(state);
                verdict
            }
        }
    }

    /// Waits until the ticket is decided, or the deadline has come: sends what was begun, then drives or sleeps. An
    /// error is the verdict, which another thread has collected. Only submissions show how long the nodes take: other
    /// waits may be for other programs.
    fn wait<'a>(
        &'a self,
        mut state: Guard<'a, R>,
        (ticket, deadline): (R::Ticket, Timestamp),
        takes_verdict: bool,
    ) -> Result<Guard<'a, R>, R::Verdict> {
        state.reactor.assign(ticket, None);
        state.flush();
        let (begun_at, batch) = (state.read_clock(), state.batch.number);
        let mut wait = OwnWait { ticket, takes_verdict, batch, patience: POLL_PATIENCE };
        let mut has_driven = false;
        while !state.reactor.is_decided(ticket) {
            let now = state.now;
            if now >= deadline {
                state.act(|reactor, now| reactor.expire(ticket, now));
                return Ok(state);
            }
            let time = deadline.since(now);
            if state.driver.is_absent() {
                has_driven = true;
                state = self.drive(state, &wait, time);
            } else {
                has_driven = false;
                if state.hold_to_end(now).is_zero() {
                    // That may decide the ticket, when a connection turns out to be broken.
                    state.begin_next_batch(&self.submissions);
                    state.flush();
                } else {
                    let time = time.min(state.hold_to_end(now));
                    state = self.sleep(state, &mut wait, time)?;
                }
            }
            if !state.reactor.is_decided(ticket) {
                state.read_clock();
            }
        }
        if has_driven && takes_verdict {
            state.learn(begun_at);
            // The others of the batch are answered at almost the same time, and no thread has to be woken for that.
            while state.driver.is_absent() && state.is_batch_in_flight(state.now) && state.now < deadline {
                let time = deadline.since(state.now);
                state = self.drive(state, &wait, time);
            }
        }
        Ok(state)
    }

    /// Drives once: polls, and lets the reactor absorb what is ready.
    fn drive<'a>(&'a self, mut state: Guard<'a, R>, wait: &OwnWait<R::Ticket>, timeout: Duration) -> Guard<'a, R> {
        let now = state.now;
        let was_decided = state.reactor.is_decided(wait.ticket);
        let hold = self.hold(&mut state, wait, now);
        if state.reactor.is_decided(wait.ticket) != was_decided {
            // By a connection that turned out to be broken.
            return state;
        }
        state.driver_ends_hold = state.is_open;
        let alone = state.is_alone();
        let mut watch = state.reactor.watch(alone, now);
        let number = state.begin_poll();
        drop(state);
        R::poll(&mut watch, timeout.min(hold));
        let mut state = lock(&self.state);
        state.end_poll(number);
        state.read_clock();
        state.act(|reactor, now| reactor.absorb(watch, now));
        state
    }

    /// Begins and sends the next batch, if that may not wait any more. Gives how long the one after it may.
    fn hold(&self, state: &mut Guard<'_, R>, wait: &OwnWait<R::Ticket>, now: Timestamp) -> Duration {
        let is_own_due = wait.batch == state.batch.number && !state.reactor.is_decided(wait.ticket);
        let is_answered = !is_own_due && state.batch.is_decided();
        if state.is_open && is_answered || state.hold_left(now).is_zero() {
            state.begin_next_batch(&self.submissions);
            state.flush();
        }
        state.hold_left(now)
    }

    /// Sleeps until the ticket is decided, the thread is called to drive, or the time is up. An error is the verdict on
    /// a submission.
    fn sleep<'a>(
        &'a self,
        mut state: Guard<'a, R>,
        wait: &mut OwnWait<R::Ticket>,
        time: Duration,
    ) -> Result<Guard<'a, R>, R::Verdict> {
        let cell = self.submissions.take_cell();
        let waiter = state.register(&cell, wait.ticket, wait.takes_verdict);
        let patience = if state.driver.is_polling() { wait.patience } else { PATIENCE };
        let (asleep_since, polls) = (state.now, state.polls);
        drop(state);
        let verdict = cell.wait(time.min(patience));
        if let Some(verdict) = verdict {
            self.submissions.put_cell(cell);
            return Err(verdict);
        }
        let mut state = lock(&self.state);
        let is_undecided = state.unregister(waiter, &cell).is_some();
        // This thread was named, or the one that was has not come in time.
        let now = state.read_clock();
        let is_late = is_undecided && now.since(asleep_since) >= patience;
        if state.driver.is_named(&cell) || is_late && !state.driver.is_polling() {
            state.driver = DriverState::Absent;
        } else if is_late && state.polls == polls {
            state.look();
            if state.reactor.is_decided(wait.ticket) {
                state.depose();
            }
        }
        if is_late {
            wait.patience = wait.patience.saturating_mul(2);
        }
        let verdict = cell.take();
        self.submissions.put_cell(cell);
        match verdict {
            Some(verdict) => {
                self.leave(state);
                Err(verdict)
            }
            None => Ok(state),
        }
    }

    /// Takes the mutex, and begins what was submitted before. `will_wait`: the caller submits, and waits for that.
    fn enter_state(&self, will_wait: bool) -> Guard<'_, R> {
        let mut state = lock(&self.state);
        state.read_clock();
        state.begin_submitted(&self.submissions, will_wait);
        state
    }

    /// Leaves the mutex: nothing stays unsent, and a thread drives if one has to.
    fn leave(&self, mut state: Guard<'_, R>) {
        state.close_unknown_hold(&self.submissions);
        state.flush();
        state.name_next_driver(&self.submissions);
        state.wake_deposed();
        if self.needs_helper(&mut state) {
            drop(state);
            self.start_helper();
        }
    }
}
