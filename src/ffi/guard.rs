//! A held lock, which many threads and callbacks of a program may use at once.
//!
//! ```text
//!             use                            take
//!   free ◄──────────► in use       free ──────────────► gone
//!            leave                 unlock, detach, free
//! ```
//!
//! To extend a lock or to watch it, one thread uses what holds it; others wait for that, also while
//! it is in a callback of the program, unless they only look at the lock. A callback of the same
//! thread would wait for itself: it gets `BUSY`. No mutex is held while anything is sent or a
//! callback runs. Every call has its own count of the handle: so a guard that is freed meanwhile
//! lets go of the lock at the end of the call, and in a child, where calls of other threads never
//! end, not at all.

use super::boundary::{calls, frees, parts};
use super::code::Code;
use super::failure::{Failure, Result};
use super::fault::FaultObject;
use super::fork_safe_mutex::ForkSafeMutex;
use super::handle::Borrowed;
use super::lease::LeaseHandle;
use super::text::Str;
use super::times::millis;
use crate::kind::Any;
use crate::os::occupancy::{Free, Occupancy};
use crate::os::waker::Waker;
use crate::{ErrorKind, ExtendOutcome, MutexGuard as LockGuard, ReleaseOutcome};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What holds the lock, of any kind.
type Held = LockGuard<Any>;

/// `quorumlock_guard`.
pub(super) struct GuardHandle {
    name: Arc<str>,
    /// Until a lock to write becomes one to read, and also when the lock is gone.
    fence: AtomicU64,
    /// The slot of a permit.
    slot: u64,
    /// None when it is gone, and while another one is made of it. Only the thread that uses it has
    /// another handle on it.
    held: ForkSafeMutex<Option<Arc<Held>>>,
    /// The thread that extends the lock, watches it, or makes another one of it.
    occupancy: Occupancy,
    /// What becomes readable when the lock is lost, if the program has requested it: a descriptor
    /// for event loops.
    ///
    /// It is one end of a pair of sockets. Both ends last as long as the guard's handle and the
    /// thread that writes: so only a loss makes it readable, and no thread writes to a closed
    /// descriptor.
    pub(super) lost: OnceLock<Arc<Waker>>,
}

impl GuardHandle {
    pub(super) fn new(held: Held) -> Result<GuardHandle> {
        Ok(GuardHandle {
            name: held.name().into(),
            fence: AtomicU64::new(held.fence().map_or(0, u64::from)),
            slot: held.slot_number() as u64,
            held: ForkSafeMutex::new(Some(Arc::new(held)))?,
            occupancy: Occupancy::default(),
            lost: OnceLock::new(),
        })
    }

    /// Does something with what holds the lock, while no other thread does.
    pub(super) fn with<R>(&self, act: impl FnOnce(&Held) -> Result<R>) -> Result<R> {
        let _in_use = self.at_rest()?.enter();
        // Dropped before that: the next thread that uses it may take it out.
        let held = self.held.lock()?.clone().ok_or_else(not_held)?;
        act(&held)
    }

    /// Makes a lock to write one to read. If it is lost, the guard holds none.
    fn downgrade(&self) -> Result<Code> {
        let _in_use = self.at_rest()?.enter();
        if let Some(held) = &*self.held.lock()?
            && !held.is_writer()
        {
            return Err(Failure::new(Code::Config, "the lock is not held to write"));
        }
        let writer = self.take_held()?;
        let lost = self.lost.get().cloned();
        let reader = writer.into_reader().inspect_err(|error| {
            // Nothing watches it any more. A child of `fork` leaves the parent's alone.
            if let (ErrorKind::LeaseLost, Some(lost)) = (error.kind(), &lost) {
                lost.wake();
            }
        })?;
        self.fence.store(0, Ordering::Relaxed);
        if let Some(lost) = lost {
            reader.on_lost(move || lost.wake())?;
        }
        *self.held.lock()? = Some(Arc::new(reader));
        Ok(Code::Ok)
    }

    /// Takes out what holds the lock, for good.
    fn take(&self) -> Result<Held> {
        let _free = self.at_rest()?;
        self.take_held()
    }

    fn take_held(&self) -> Result<Held> {
        let held = self.held.lock()?.take().and_then(Arc::into_inner);
        held.ok_or_else(not_held)
    }

    fn remaining(&self) -> Result<Duration> {
        self.held.check_process()?;
        let held = self.held.lock()?;
        Ok(held
            .as_ref()
            .map_or(Duration::ZERO, |held| held.remaining()))
    }

    fn ensure(&self, at_least: Duration) -> Result<Code> {
        self.held.check_process()?;
        match &*self.held.lock()? {
            Some(held) => Ok(held.ensure(at_least).map(|()| Code::Ok)?),
            None => Ok(Code::NotHeld),
        }
    }

    /// Waits until no thread uses what holds the lock.
    fn at_rest(&self) -> Result<Free<'_>> {
        self.held.check_process()?;
        self.occupancy
            .free()
            .map_err(|_| Failure::plain(Code::Busy))
    }
}

fn not_held() -> Failure {
    Failure::plain(Code::NotHeld)
}

frees! { quorumlock_guard_free(GuardHandle); }

parts! { Borrowed<GuardHandle>:
    quorumlock_guard_name() -> Str = |guard| Str::of(&guard.name);
    quorumlock_guard_slot() -> u64 = |guard| guard.slot;
    quorumlock_guard_remaining_ms() -> u64 = |guard| guard.remaining().map_or(0, millis);
    quorumlock_guard_fencing_token() -> u64 = |guard| guard.fence.load(Ordering::Relaxed);
}

calls! {
    fn quorumlock_guard_ensure(&guard: GuardHandle, at_least_ms: u64; error) {
        guard.ensure(Duration::from_millis(at_least_ms))
    }

    fn quorumlock_guard_unlock(&guard: GuardHandle; error) {
        Ok(match guard.take()?.unlock()? {
            ReleaseOutcome::Expired => Code::Expired,
            ReleaseOutcome::Released => Code::Ok,
            ReleaseOutcome::StillHeld(_) => Code::StillHeld,
        })
    }

    fn quorumlock_guard_extend(&guard: GuardHandle, ttl_ms: u64; error) {
        let ttl = Duration::from_millis(ttl_ms);
        match guard.with(|held| Ok(held.extend(ttl)?))? {
            ExtendOutcome::Extended => Ok(Code::Ok),
            ExtendOutcome::Failed(causes) => Err(Failure {
                faults: FaultObject::list(&causes),
                ..Failure::plain(Code::ExtensionFailed)
            }),
            ExtendOutcome::Lost => Ok(Code::Lost),
        }
    }

    fn quorumlock_guard_detach(&guard: GuardHandle; new lease: LeaseHandle; error) {
        LeaseHandle::new(guard.take()?.detach()?)?
    }

    fn quorumlock_guard_downgrade(&guard: GuardHandle; error) {
        guard.downgrade()
    }
}
