//! The thread that drives when releases are left and no other thread does.
//!
//! ```text
//!   Absent ── a thread leaves, releases are left ──► Awake ── nothing is left, or closed ──► Absent
//!                                                    │  ▲
//!              nothing to do before a back-off ends ─┘  └── that time, or a release left unsent
//!                                                  Asleep
//! ```
//!
//! A dropped guard waits for nothing. What the socket did not take, or a node could not run, would stay here until the next
//! call of the client. So the last thread that leaves starts one that goes on: it drives like any other thread while bytes
//! are to be sent, and sleeps apart from the others while it only waits for a back-off to end, so that it does not stand
//! between them and the sockets. There is never more than one, and none once nothing is left.

use super::{Driver, Helper, Reactor, State};
use crate::os::sync::{MutexGuard, is_current, lock, spawn};
use std::sync::PoisonError;
use std::time::Duration;

/// How long it drives before it looks whether it is still needed.
const LOOK: Duration = Duration::from_millis(100);
/// Longest sleep. A machine that was suspended wakes up without the time having passed for a thread that sleeps.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

impl<W: Reactor + Send + 'static> Driver<W> {
    /// Whether a thread that leaves is to start the helper. Other threads that are here, or on their way, look when they
    /// leave.
    pub(super) fn needs_helper(&self, state: &mut State<W>) -> bool {
        let is_last = !state.is_driven() && state.slept_on.is_empty() && !self.is_promised(state);
        if !is_last || state.is_closing || !state.world.has_releases_left() {
            return false;
        }
        match state.helper {
            Helper::Absent => state.helper = Helper::Awake,
            Helper::Asleep => {
                let now = state.world.now();
                if state.world.releases_due(now).is_some_and(|due| due <= now) {
                    self.helper_bell.notify_one();
                }
                return false;
            }
            Helper::Awake => return false,
        }
        true
    }

    pub(super) fn start_helper(&self) {
        let Some(relay) = self.this.upgrade() else { return };
        // Held until the new thread is noted: it may end at once, and the one after it must not be noted first, be taken for
        // the previous one here, and be waited for.
        let mut noted = lock(&self.helper_thread);
        let previous = match spawn("quorumlock release", move || relay.help()) {
            Ok(thread) => noted.replace(thread),
            Err(_) => {
                // The next thread that leaves tries again.
                lock(&self.state).helper = Helper::Absent;
                None
            }
        };
        drop(noted);
        // It has nothing left to do, and may be the caller.
        if let Some(previous) = previous.filter(|thread| !is_current(thread)) {
            let _ = previous.join();
        }
    }

    fn help(&self) {
        let mut state = self.arrive();
        loop {
            self.flush_unless_promised(&mut state);
            if !state.ringing.is_empty() {
                state = self.gather(state);
                continue;
            }
            let now = state.world.now();
            let due = if state.is_closing { None } else { state.world.releases_due(now) };
            match due {
                None => {
                    state.helper = Helper::Absent;
                    let one = state.appoint();
                    return self.leave(state, one);
                }
                Some(due) if now < due => state = self.sleep_apart(state, due.since(now)),
                Some(_) => {
                    drop(state);
                    self.run(
                        |world, now, bells| (world.await_releases(now, bells), now.after(LOOK)),
                        |world, ticket| world.leave_releases(ticket),
                    );
                    state = self.arrive();
                }
            }
        }
    }

    fn sleep_apart<'a>(&'a self, mut state: MutexGuard<'a, State<W>>, time: Duration) -> MutexGuard<'a, State<W>> {
        state.helper = Helper::Asleep;
        let slept = self.helper_bell.wait_timeout(state, time.min(LONGEST_SLEEP));
        let (mut state, _) = slept.unwrap_or_else(PoisonError::into_inner);
        state.helper = Helper::Awake;
        state
    }

    /// Ends the helper, and starts none any more.
    pub(crate) fn close(&self) {
        let mut state = self.arrive();
        state.is_closing = true;
        state.act(|world, bells| world.interrupt_releases(bells));
        self.helper_bell.notify_one();
        self.leave(state, None);
        let thread = lock(&self.helper_thread).take();
        if let Some(thread) = thread.filter(|thread| !is_current(thread)) {
            let _ = thread.join();
        }
    }
}
