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

use super::boundary::{call_or, call_with_error};
use super::code::Code;
use super::error_object::ErrorObject;
use super::event_fd::EventFd;
use super::failure::{Failure, Result};
use super::fork_safe_mutex::ForkSafeMutex;
use super::handle::{Borrowed, Output, Returned};
use super::held::Held;
use super::lease::LeaseHandle;
use super::text::Str;
use crate::ExtendOutcome;
use crate::os::sync::{Condvar, MutexGuard};
use crate::os::thread_number::ThreadNumber;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

/// `quorumlock_guard`.
pub(super) struct GuardHandle {
    name: Arc<str>,
    /// Until a lock to write becomes one to read, and also when the lock is gone.
    fence: AtomicU64,
    /// Of a permit.
    pub(super) slot: u64,
    state: ForkSafeMutex<GuardState>,
    put_back: Condvar,
    /// The descriptor that becomes readable when the lock is lost, if the program has requested it.
    pub(super) event_fd: OnceLock<Arc<EventFd>>,
}

enum GuardState {
    InUse(ThreadNumber),
    Gone,
    Held(Held),
}

/// What holds the lock, for the time of a call. It is put back however that ends.
struct GuardInUse<'g> {
    guard: &'g GuardHandle,
    held: Option<Held>,
}

impl GuardHandle {
    pub(super) fn new(name: Arc<str>, held: Held) -> Result<GuardHandle> {
        let (fence, slot) = (held.fencing_token().map_or(0, u64::from), held.slot() as u64);
        let state = ForkSafeMutex::new(GuardState::Held(held))?;
        let fence = AtomicU64::new(fence);
        Ok(GuardHandle { name, fence, slot, state, put_back: Condvar::new(), event_fd: OnceLock::new() })
    }

    /// Does something with what holds the lock, while other threads wait for it.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut Held) -> Result<R>) -> Result<R> {
        let held = self.replace(GuardState::InUse(ThreadNumber::current()))?;
        let mut borrowed = GuardInUse { guard: self, held: Some(held) };
        borrowed.held.as_mut().map_or_else(|| Err(Failure::plain(Code::NotHeld)), act)
    }

    /// Takes out the lease. What has none to give stays.
    fn detach(&self) -> Result<crate::Lease> {
        let held = self.replace(GuardState::InUse(ThreadNumber::current()))?;
        let mut borrowed = GuardInUse { guard: self, held: None };
        held.detach().map_err(|refused| {
            let (held, reason) = *refused;
            borrowed.held = Some(held);
            Failure::new(Code::Config, reason)
        })
    }

    /// Makes a lock to write one to read. If it is lost, the guard holds none.
    fn downgrade(&self) -> Result<Code> {
        let held = self.replace(GuardState::InUse(ThreadNumber::current()))?;
        let mut borrowed = GuardInUse { guard: self, held: None };
        let Held::Write(guard) = held else {
            borrowed.held = Some(held);
            return Err(Failure::new(Code::Config, "the lock is not held to write"));
        };
        let guard = guard.downgrade()?;
        self.fence.store(0, Ordering::Relaxed);
        if let Some(event_fd) = self.event_fd.get() {
            let signalled = Arc::clone(event_fd);
            guard.on_lost(move || signalled.signal())?;
        }
        borrowed.held = Some(Held::Read(guard));
        Ok(Code::Ok)
    }

    /// Takes out what holds the lock, for good.
    fn take(&self) -> Result<Held> {
        self.replace(GuardState::Gone)
    }

    /// Takes out what holds the lock, and leaves something else.
    fn replace(&self, other: GuardState) -> Result<Held> {
        let mut state = self.at_rest()?;
        match std::mem::replace(&mut *state, other) {
            GuardState::Held(held) => Ok(held),
            former => {
                *state = former;
                Err(Failure::plain(Code::NotHeld))
            }
        }
    }

    fn remaining(&self) -> Result<Duration> {
        match &*self.at_rest()? {
            GuardState::Held(held) => Ok(held.remaining()),
            GuardState::InUse(_) | GuardState::Gone => Ok(Duration::ZERO),
        }
    }

    fn ensure(&self, at_least: Duration) -> Result<Code> {
        match &*self.at_rest()? {
            GuardState::Held(held) => Ok(held.ensure(at_least).map(|()| Code::Ok)?),
            GuardState::InUse(_) | GuardState::Gone => Ok(Code::NotHeld),
        }
    }

    /// The state, when no thread has borrowed what holds the lock.
    fn at_rest(&self) -> Result<MutexGuard<'_, GuardState>> {
        self.state.check_process()?;
        let mut state = self.state.lock()?;
        while let GuardState::InUse(by) = &*state {
            if *by == ThreadNumber::current() {
                return Err(Failure::plain(Code::Busy));
            }
            state = self.put_back.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(state)
    }
}

impl Drop for GuardInUse<'_> {
    fn drop(&mut self) {
        let Ok(mut state) = self.guard.state.lock() else { return };
        *state = self.held.take().map_or(GuardState::Gone, GuardState::Held);
        drop(state);
        self.guard.put_back.notify_all();
    }
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_free(guard: Returned<GuardHandle>) {
    call_or((), || guard.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_name(guard: Borrowed<GuardHandle>) -> Str {
    call_or(Str::EMPTY, || Some(Str::of(&guard.optional()?.name)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_remaining_ms(guard: Borrowed<GuardHandle>) -> u64 {
    call_or(0, || {
        let remaining = guard.optional()?.remaining().ok()?;
        u64::try_from(remaining.as_millis()).ok()
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_ensure(
    guard: Borrowed<GuardHandle>,
    at_least_ms: u64,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || guard.required("guard")?.ensure(Duration::from_millis(at_least_ms)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_fencing_token(guard: Borrowed<GuardHandle>) -> u64 {
    call_or(0, || Some(guard.optional()?.fence.load(Ordering::Relaxed)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_unlock(guard: Borrowed<GuardHandle>, error: Output<*const ErrorObject>) -> Code {
    call_with_error(error, || guard.required("guard")?.take()?.unlock())
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_extend(
    guard: Borrowed<GuardHandle>,
    ttl_ms: u64,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let extension = guard.required("guard")?.with(|held| Ok(held.extend(Duration::from_millis(ttl_ms))?))?;
        match extension {
            ExtendOutcome::Extended => Ok(Code::Ok),
            ExtendOutcome::Failed(causes) => Err(Failure { causes, ..Failure::plain(Code::ExtensionFailed) }),
            ExtendOutcome::Lost => Ok(Code::Lost),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_detach(
    guard: Borrowed<GuardHandle>,
    lease: Output<*const LeaseHandle>,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let guard = guard.required("guard")?;
        let lease = lease.required("lease")?;
        lease.write_handle(LeaseHandle::new(guard.detach()?)?);
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_downgrade(guard: Borrowed<GuardHandle>, error: Output<*const ErrorObject>) -> Code {
    call_with_error(error, || guard.required("guard")?.downgrade())
}
