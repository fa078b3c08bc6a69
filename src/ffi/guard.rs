//! A held lock, which many threads and callbacks of a program may use at once.
//!
//! ```text
//!            borrow                          take
//!   Held ◄──────────► Borrowed     Held ──────────────► Gone
//!          put back                unlock, detach, free
//! ```
//!
//! To extend a lock or to watch it, one thread borrows what holds it; others wait until it is put back, which takes a
//! node timeout at most. A callback of the same thread would wait for itself: it gets `BUSY`. No mutex is held while
//! anything is sent or a callback runs. Every call has its own count of the handle: so a guard that is freed meanwhile
//! lets go of the lock at the end of the call, and in a child, where calls of other threads never end, not at all.

use super::alarm::Alarm;
use super::boundary::{enter, value};
use super::code::Code;
use super::failure::{Failure, Result};
use super::handle::{Lent, Output, Returned};
use super::lease::Lease;
use super::report::Report;
use super::slot::Slot;
use super::text::Str;
use crate::os::sync::{Condvar, MutexGuard};
use crate::{ExtendOutcome, ReleaseOutcome};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

/// `quorumlock_guard`.
pub(super) struct Guard {
    name: Arc<str>,
    fence: u64,
    state: Slot<State>,
    put_back: Condvar,
    /// What becomes readable when the lock is lost, if a program has asked for that.
    pub(super) alarm: OnceLock<Arc<Alarm>>,
}

enum State {
    Borrowed(Here),
    Gone,
    Held(crate::MutexGuard),
}

/// The identity of a running thread. Not by `thread::current`, which allocates a record of every thread that calls it,
/// and never frees that of the main thread.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Here(usize);

impl Here {
    fn now() -> Here {
        thread_local! {
            static ADDRESS: u8 = const { 0 };
        }
        ADDRESS.with(|address| Here(std::ptr::from_ref(address).addr()))
    }
}

/// What holds the lock, for the time of a call. It is put back however that ends.
struct Borrowed<'g> {
    guard: &'g Guard,
    held: Option<crate::MutexGuard>,
}

impl Guard {
    pub(super) fn new(name: Arc<str>, held: crate::MutexGuard) -> Result<Guard> {
        let fence = held.fencing_token().map_or(0, u64::from);
        let state = Slot::new(State::Held(held))?;
        Ok(Guard { name, fence, state, put_back: Condvar::new(), alarm: OnceLock::new() })
    }

    /// Does something with what holds the lock, while other threads wait for it.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut crate::MutexGuard) -> Result<R>) -> Result<R> {
        let held = self.replace(State::Borrowed(Here::now()))?;
        let mut borrowed = Borrowed { guard: self, held: Some(held) };
        borrowed.held.as_mut().map_or_else(|| Err(Failure::plain(Code::NotHeld)), act)
    }

    /// Takes out what holds the lock, for good.
    fn take(&self) -> Result<crate::MutexGuard> {
        self.replace(State::Gone)
    }

    /// Takes out what holds the lock, and leaves something else.
    fn replace(&self, other: State) -> Result<crate::MutexGuard> {
        let mut state = self.at_rest()?;
        match std::mem::replace(&mut *state, other) {
            State::Held(held) => Ok(held),
            former => {
                *state = former;
                Err(Failure::plain(Code::NotHeld))
            }
        }
    }

    fn remaining(&self) -> Result<Duration> {
        match &*self.at_rest()? {
            State::Held(held) => Ok(held.remaining()),
            State::Borrowed(_) | State::Gone => Ok(Duration::ZERO),
        }
    }

    fn ensure(&self, at_least: Duration) -> Result<Code> {
        match &*self.at_rest()? {
            State::Held(held) => Ok(held.ensure(at_least).map(|()| Code::Ok)?),
            State::Borrowed(_) | State::Gone => Ok(Code::NotHeld),
        }
    }

    /// The state, when no thread has borrowed what holds the lock.
    fn at_rest(&self) -> Result<MutexGuard<'_, State>> {
        self.state.check_process()?;
        let mut state = self.state.lock()?;
        while let State::Borrowed(by) = &*state {
            if *by == Here::now() {
                return Err(Failure::plain(Code::Busy));
            }
            state = self.put_back.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(state)
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        let Ok(mut state) = self.guard.state.lock() else { return };
        *state = self.held.take().map_or(State::Gone, State::Held);
        drop(state);
        self.guard.put_back.notify_all();
    }
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_free(guard: Returned<Guard>) {
    value((), || guard.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_name(guard: Lent<Guard>) -> Str {
    value(Str::EMPTY, || Some(Str::of(&guard.optional()?.name)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_remaining_ms(guard: Lent<Guard>) -> u64 {
    value(0, || {
        let remaining = guard.optional()?.remaining().ok()?;
        u64::try_from(remaining.as_millis()).ok()
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_ensure(guard: Lent<Guard>, at_least_ms: u64, error: Output<*const Report>) -> Code {
    enter(error, || guard.content("guard")?.ensure(Duration::from_millis(at_least_ms)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_fencing_token(guard: Lent<Guard>) -> u64 {
    value(0, || Some(guard.optional()?.fence))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_unlock(guard: Lent<Guard>, error: Output<*const Report>) -> Code {
    enter(error, || {
        let held = guard.content("guard")?.take()?;
        Ok(match held.unlock()? {
            ReleaseOutcome::Expired => Code::Expired,
            ReleaseOutcome::Released => Code::Ok,
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_extend(guard: Lent<Guard>, ttl_ms: u64, error: Output<*const Report>) -> Code {
    enter(error, || {
        let extension = guard.content("guard")?.with(|held| Ok(held.extend(Duration::from_millis(ttl_ms))?))?;
        match extension {
            ExtendOutcome::Extended => Ok(Code::Ok),
            ExtendOutcome::Failed(causes) => Err(Failure { causes, ..Failure::plain(Code::ExtensionFailed) }),
            ExtendOutcome::Lost => Ok(Code::Lost),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_detach(
    guard: Lent<Guard>,
    lease: Output<*const Lease>,
    error: Output<*const Report>,
) -> Code {
    enter(error, || {
        let guard = guard.content("guard")?;
        let lease = lease.required("lease")?;
        lease.give(Lease::new(guard.take()?.detach())?);
        Ok(Code::Ok)
    })
}
