//! How waiting threads share one reactor: one of them drives it for all.
//!
//! The reactor (connections, rounds in flight) is under one mutex that is never held across a wait.
//! One thread at a time is the *driver*: it begins what was submitted, sends it, polls, lets the
//! reactor absorb what is ready, and stores each verdict where the thread sleeps that waits for it.
//! No other thread needs the mutex.
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
//! What is submitted while a batch is in flight waits until the batch is decided, or its
//! [hold](batch) is over, and then leaves together: in one write to each node. While nothing is
//! held, the queue is closed, and each thread sends its own submission at once. For a thread that
//! is alone with its client, nothing is held. A thread that is named to begin a batch yields the
//! processor once before it does: otherwise it may run before the one that has named it submits
//! again.
//!
//! Invariants, each of which a model test breaks on purpose to see it fail:
//! 1. While a thread sleeps undecided, there is a driver, a thread that was named the next one and
//!    is awake or is being woken, or one on its way to the mutex.
//! 2. A verdict is stored before its thread is woken, in the cell where the thread looks.
//! 3. A thread sleeps no longer than to its own deadline, whichever thread drives and however long.
//!    A submission that was not begun within [`PATIENCE`] is begun by its own thread. A thread that
//!    has slept for [`POLL_PATIENCE`], and again for twice as long each time, through one and the
//!    same poll of another thread, looks for replies itself. If that decides its ticket, the other
//!    thread has not come back from its poll, and drives no more.
//! 4. Submissions are begun in their order, and a thread that enters the mutex begins them before
//!    its own: no command overtakes the release before it.
//! 5. While the queue of submissions is open, a thread has the duty to begin what is in it: the
//!    driver, the thread named next, one on its way to the mutex, or if the driver polls for
//!    longer, one that sleeps until the hold is over. What was begun is sent before the mutex is
//!    left.
//! 6. While work is left that a thread could do and none waits for, there is a thread that does it:
//!    the last one that leaves starts it.

// Named, because model checks include this file from elsewhere.
mod batch;
mod driving;
mod helper;
mod reactor;
mod sleepers;
mod state;
mod submissions;
#[cfg(test)]
mod tests;
mod wait_cell;

use crate::algorithm::time::Timestamp;
use crate::os::sync::{Condvar, JoinHandle, Mutex, MutexGuard, lock, yield_now};
pub(crate) use reactor::Reactor;
use state::State;
use std::sync::{Arc, Weak};
use std::time::Duration;
use submissions::{Submissions, Submitted};
use wait_cell::WaitCell;
pub(crate) use wait_cell::WaitSlot;

/// How long a thread relies on another one that has the duty to begin its submission, or was named
/// to drive. That one has the mutex within microseconds, unless the processor runs other programs.
const PATIENCE: Duration = Duration::from_millis(5);
/// How long a thread relies on one poll of another thread before it looks for replies itself. The
/// thread that polls may not come back: it may be in a signal handler of the program, or get no
/// processor time. Long, because nothing is wrong where nodes take their time.
const POLL_PATIENCE: Duration = Duration::from_millis(20);

/// A reactor that threads drive in turn.
pub(crate) struct Driver<R: Reactor> {
    submissions: Mutex<Submissions<R>>,
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
    /// For how long to sleep before the next look for replies.
    patience: Duration,
}

impl<R: Reactor + Send + 'static> Driver<R> {
    pub(crate) fn new(reactor: R) -> Arc<Driver<R>> {
        Arc::new_cyclic(|this| Driver {
            submissions: Mutex::new(Submissions::NONE),
            state: Mutex::new(State::new(reactor)),
            helper_signal: Condvar::new(),
            helper_thread: Mutex::new(None),
            this: Weak::clone(this),
        })
    }

    /// Submits something at `now`, the present time, and waits for its verdict. `deadline` returns
    /// until when at most, given whether connections have to be made first. `queued` is called when
    /// it has its place: what is begun later goes behind it.
    pub(crate) fn submit(
        &self,
        submission: R::Submission,
        now: Timestamp,
        mut deadline: impl FnMut(bool) -> Timestamp,
        queued: impl FnOnce(),
    ) -> R::Verdict {
        let mut queue = lock(&self.submissions);
        if queue.is_open {
            let cell = WaitCell::new();
            queue
                .list
                .push(Submitted::Awaited(submission, Arc::clone(&cell)));
            drop(queue);
            queued();
            return self.await_verdict(&cell, now, deadline);
        }
        let mut state = match self.state.try_lock() {
            // Nothing is in a closed queue, and no time has passed.
            Ok(mut state) => {
                state.now = state.now.max(now);
                state.begin_batch();
                queue.is_open = state.batch.is_held();
                drop(queue);
                state
            }
            Err(_) => {
                queue.is_open = true;
                drop(queue);
                self.enter_state(true)
            }
        };
        let (ticket, has_to_connect) = state.act(|reactor, now| reactor.begin(&submission, now));
        queued();
        self.see_through(state, ticket, deadline(has_to_connect))
    }

    /// Submits something that no thread waits for.
    pub(crate) fn post(&self, posting: R::Posting) {
        let mut queue = lock(&self.submissions);
        if std::mem::replace(&mut queue.is_open, true) {
            return queue.list.push(Submitted::Posted(posting));
        }
        drop(queue);
        self.enter(|reactor, now| reactor.begin_posted(posting, now));
    }

    /// Does something in the reactor that does not wait.
    pub(crate) fn enter<T>(&self, act: impl FnOnce(&mut R, Timestamp) -> T) -> T {
        let mut state = self.enter_state(false);
        let result = state.act(act);
        self.leave(state);
        result
    }

    /// Does something in the reactor that concerns no driver and does not wait, unless another
    /// thread has the mutex.
    pub(crate) fn try_enter(&self, act: impl FnOnce(&mut R)) {
        if let Ok(mut state) = self.state.try_lock() {
            act(&mut state.reactor);
        }
    }

    /// Begins something in the reactor, waits until it is decided, and collects it. `begin` is
    /// given the time, and returns the ticket and the deadline of the wait.
    pub(crate) fn run<T>(
        &self,
        begin: impl FnOnce(&mut R, Timestamp) -> (R::Ticket, Timestamp),
        collect: impl FnOnce(&mut R, R::Ticket) -> T,
    ) -> T {
        let mut state = self.enter_state(false);
        let (ticket, deadline) = state.act(begin);
        // No verdict is stored for a thread that looks for itself.
        let waited = self.wait(state, ticket, deadline, false);
        let mut state = waited.unwrap_or_else(|_| lock(&self.state));
        let result = collect(&mut state.reactor, ticket);
        self.leave(state);
        result
    }

    /// Waits for the verdict on what another thread has the duty to begin.
    fn await_verdict(
        &self,
        cell: &WaitCell<R::Verdict>,
        now: Timestamp,
        mut deadline: impl FnMut(bool) -> Timestamp,
    ) -> R::Verdict {
        let patience = deadline(false).since(now).min(PATIENCE);
        loop {
            if let Some(verdict) = cell.wait(patience) {
                return verdict;
            }
            // Named the next driver, or the thread that has the duty is late.
            let mut state = self.let_others_submit(cell.slot);
            state.driving.forget_named(cell.slot);
            let sleeper = state.remove(cell.slot).or_else(|| {
                state.begin_submitted(&self.submissions, true);
                state.remove(cell.slot)
            });
            match sleeper {
                Some(begun) => {
                    return self.see_through(state, begun.ticket, deadline(begun.has_to_connect));
                }
                // It has its verdict.
                None => self.leave(state),
            }
        }
    }

    /// Takes the mutex. A thread that was named yields the processor before: those that were
    /// answered with the last batch may be about to submit for the next one.
    fn let_others_submit(&self, named: WaitSlot) -> Guard<'_, R> {
        let mut state = lock(&self.state);
        let before = state.read_clock();
        if state.driving.is_named(named) && state.batch.may_yield(before) {
            drop(state);
            yield_now();
            state = lock(&self.state);
            let now = state.read_clock();
            state.batch.on_yielded(now.since(before), now);
        }
        state
    }

    /// Waits for a submission that was begun.
    fn see_through(
        &self,
        state: Guard<'_, R>,
        ticket: R::Ticket,
        deadline: Timestamp,
    ) -> R::Verdict {
        match self.wait(state, ticket, deadline, true) {
            Err(verdict) => verdict,
            Ok(mut state) => {
                let verdict = state.reactor.conclude(ticket);
                self.leave(state);
                verdict
            }
        }
    }

    /// Waits until the ticket is decided, or the deadline has come: sends what was begun, then
    /// drives or sleeps. An error is the verdict, which another thread has collected. Only
    /// submissions show how long the nodes take: other waits may be for other programs.
    fn wait<'a>(
        &'a self,
        mut state: Guard<'a, R>,
        ticket: R::Ticket,
        deadline: Timestamp,
        takes_verdict: bool,
    ) -> Result<Guard<'a, R>, R::Verdict> {
        let mut wait = OwnWait {
            ticket,
            takes_verdict,
            patience: POLL_PATIENCE,
        };
        let own_batch = state.batch.number;
        state.reactor.assign(ticket, None);
        state.flush();
        let begun_at = state.read_clock();
        while !state.reactor.is_decided(ticket) {
            if state.now >= deadline {
                state.act(|reactor, now| reactor.expire(ticket, now));
                return Ok(state);
            }
            let mut until = deadline;
            if state.driving.leaves_hold() {
                if state.batch.is_hold_over(own_batch, state.now) {
                    state.begin_next_batch(&self.submissions);
                    state.flush();
                    state.read_clock();
                    // That may decide the ticket, if a connection turns out to be broken.
                    if state.reactor.is_decided(ticket) {
                        break;
                    }
                }
                until = until.min(state.batch.held_until);
            }
            if !state.driving.is_absent() {
                state = self.sleep(state, &mut wait, until)?;
                continue;
            }
            state = self.drive(state, until);
            if !state.reactor.is_decided(ticket) {
                state.read_clock();
                continue;
            }
            if takes_verdict {
                state.learn(begun_at);
                // The others of the batch are answered at almost the same time, and no thread has
                // to be woken for that.
                while state.driving.is_absent()
                    && state.batch.is_in_flight(state.now)
                    && state.now < deadline
                {
                    state.read_clock();
                    let until = deadline.min(state.batch.held_until);
                    state = self.drive(state, until);
                }
            }
            break;
        }
        Ok(state)
    }

    /// Drives once: polls until then at most, and lets the reactor absorb what is ready.
    fn drive<'a>(&'a self, mut state: Guard<'a, R>, until: Timestamp) -> Guard<'a, R> {
        let now = state.now;
        let is_alone = state.sleepers.is_alone();
        let is_held = state.batch.is_held();
        let mut watch = state.reactor.watch(is_alone, now);
        let poll = state.driving.begin_poll(is_held);
        drop(state);
        R::poll(&mut watch, until.since(now));
        let mut state = lock(&self.state);
        state.driving.end_poll(poll);
        state.read_clock();
        state.act(|reactor, now| reactor.absorb(watch, now));
        state
    }

    /// Sleeps until the ticket is decided, the thread is called to drive, or the time has come. An
    /// error is the verdict on a submission.
    fn sleep<'a>(
        &'a self,
        mut state: Guard<'a, R>,
        wait: &mut OwnWait<R::Ticket>,
        until: Timestamp,
    ) -> Result<Guard<'a, R>, R::Verdict> {
        let &mut OwnWait {
            ticket,
            takes_verdict,
            ..
        } = wait;
        state.sleepers.on_other_thread();
        let cell = state.sleep(ticket, takes_verdict);
        let poll = state.driving.poll();
        let patience = if poll.is_some() {
            wait.patience
        } else {
            PATIENCE
        };
        let asleep_since = state.now;
        drop(state);
        if let Some(verdict) = cell.wait(until.since(asleep_since).min(patience)) {
            return Err(verdict);
        }
        let mut state = lock(&self.state);
        let now = state.read_clock();
        if state.remove(cell.slot).is_none() {
            // The ticket is decided, perhaps after the time was up.
            return match cell.wait(Duration::ZERO) {
                Some(verdict) => {
                    self.leave(state);
                    Err(verdict)
                }
                None => Ok(state),
            };
        }
        state.driving.forget_named(cell.slot);
        if now.since(asleep_since) >= patience {
            wait.patience = wait.patience.saturating_mul(2);
            // The one that was named has not come in time.
            state.driving.forget_late();
            if poll.is_some() && state.driving.poll() == poll {
                state.look();
                if state.reactor.is_decided(ticket) {
                    state.driving.depose();
                }
                state.read_clock();
            }
        }
        Ok(state)
    }

    /// Takes the mutex, and begins what was submitted before. `will_wait`: the caller submits, and
    /// waits for that.
    fn enter_state(&self, will_wait: bool) -> Guard<'_, R> {
        let mut state = lock(&self.state);
        state.read_clock();
        state.begin_submitted(&self.submissions, will_wait);
        state
    }

    /// Leaves the mutex: nothing stays unsent, and a thread drives if one has to.
    fn leave(&self, mut state: Guard<'_, R>) {
        let named = state.hand_over(&self.submissions);
        let needs_helper = self.needs_helper(&mut state);
        drop(state);
        if let Some(cell) = named {
            cell.wake(None);
        }
        if needs_helper {
            self.start_helper();
        }
    }
}
