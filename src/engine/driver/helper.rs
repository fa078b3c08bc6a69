//! The thread that drives when work is left that no thread waits for: releases, or the judging of
//! nodes.
//!
//! ```text
//!   Absent ── a thread leaves, work is left ───────► Awake ── nothing is left, or closed ──► Absent
//!                                                    │  ▲
//!                          nothing to do for a while ─┘  └── that time, or work that is due before
//!                                                  Asleep
//! ```
//!
//! A dropped guard waits for nothing. What the socket did not take, or a node could not run, would
//! stay here until the next call of the client; and that a connection has ended which releases were
//! written to would not be noticed. So the last thread that leaves starts one that goes on: it
//! drives like any other thread while bytes are to be sent, and while no other thread has looked
//! for answers that are missing. It sleeps apart from the others until a back-off ends, or answers
//! may be missing, so that it does not keep them from the sockets. There is never more than one,
//! and none once each release is answered or its key has ended. Nodes are judged within a few node
//! timeouts: a call that has its quorum does not wait for it.

use super::Driver;
use super::reactor::Reactor;
use super::state::{Helper, State};
use crate::os::sync::{JoinHandle, is_current, lock, spawn};
use std::sync::PoisonError;
use std::time::Duration;

/// Longest sleep, and longest poll, before it checks whether it is still needed, and which nodes
/// are silent. The time that a machine is suspended does not count for a sleeping thread.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

impl<R: Reactor + Send + 'static> Driver<R> {
    /// Whether a thread that leaves is to start the helper. Other threads that are here, or
    /// entering, check that when they leave.
    pub(super) fn needs_helper(&self, state: &mut State<R>) -> bool {
        let is_last = state.driving.is_absent() && state.sleepers.is_empty();
        if !is_last
            || state.is_closing
            || state.helper == Helper::Awake
            || !state.reactor.has_work_left()
        {
            return false;
        }
        let Some(due) = state.reactor.work_due(state.now) else {
            return false;
        };
        if let Helper::Asleep(until) = state.helper {
            if due < until || due <= state.now {
                self.helper_signal.notify_one();
            }
            return false;
        }
        state.helper = Helper::Awake;
        true
    }

    pub(super) fn start_helper(&self) {
        let Some(driver) = self.this.upgrade() else {
            return;
        };
        // Held until the new thread is noted: it may end at once, and the one after it must not be
        // noted first, be taken for the previous one here, and be waited for.
        let mut noted = lock(&self.helper_thread);
        let previous = match spawn("quorumlock release", move || driver.help()) {
            Ok(thread) => noted.replace(thread),
            Err(_) => {
                // The next thread that leaves tries again.
                lock(&self.state).helper = Helper::Absent;
                None
            }
        };
        drop(noted);
        // It has nothing left to do.
        join(previous);
    }

    fn help(&self) {
        let mut state = self.enter_state(false);
        loop {
            state.flush();
            let now = state.read_clock();
            let due = if state.is_closing {
                None
            } else {
                state.reactor.work_due(now)
            };
            match due {
                None => {
                    state.helper = Helper::Absent;
                    return self.leave(state);
                }
                Some(due) if now < due => {
                    if let Some(cell) = state.hand_over(&self.submissions) {
                        cell.wake(None);
                    }
                    let until = due.min(now.after(LONGEST_SLEEP));
                    state.helper = Helper::Asleep(until);
                    let slept = self.helper_signal.wait_timeout(state, until.since(now));
                    (state, _) = slept.unwrap_or_else(PoisonError::into_inner);
                    state.helper = Helper::Awake;
                }
                Some(_) => {
                    drop(state);
                    self.run(
                        |reactor, now| (reactor.await_work(now), now.after(LONGEST_SLEEP)),
                        |reactor, ticket| reactor.leave_work(ticket),
                    );
                    state = self.enter_state(false);
                }
            }
        }
    }

    /// Ends the helper, and starts none any more.
    pub(crate) fn close(&self) {
        let mut state = self.enter_state(false);
        state.is_closing = true;
        state.act(|reactor, _| reactor.interrupt_work());
        self.helper_signal.notify_one();
        self.leave(state);
        let thread = lock(&self.helper_thread).take();
        join(thread);
    }
}

/// Waits for a thread to end, unless it is the caller.
fn join(thread: Option<JoinHandle<()>>) {
    if let Some(thread) = thread.filter(|thread| !is_current(thread)) {
        let _ = thread.join();
    }
}
