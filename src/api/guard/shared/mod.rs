//! A lock that is held once, however many guards of it there are: those of an owner, or of the threads that read.
//!
//! ```text
//!            borrow
//!   Held ◄──────────► InUse
//!           put back
//! ```
//!
//! To extend the lock, a thread borrows the guard; others wait until it is put back, which takes a node timeout at
//! most. A callback that the extension calls on the same thread would wait for itself, and is refused.

mod joining;
mod losses;
pub(crate) mod own_losses;
mod table;

pub(crate) use table::WeakTable;

use super::MutexGuard;
use crate::algorithm::fence::FencingToken;
use crate::algorithm::lease::Ttl;
use crate::algorithm::time::Timestamp;
use crate::api::client::Client;
use crate::api::watchdog::Watchdog;
use crate::engine::local_queue::Unavailability;
use crate::engine::watchdog_thread::CLOCK_CHECK_INTERVAL;
use crate::events::error::{Error, ErrorKind, Result};
use crate::events::extension::ExtendOutcome;
use crate::os::sync::{self, Condvar, lock};
use crate::os::thread_number::ThreadNumber;
use losses::LossTable;
use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

/// A lock that is held, once. Its guards share it.
pub(crate) struct SharedGuard {
    client: Client,
    fence: Option<FencingToken>,
    state: sync::Mutex<State>,
    put_back: Condvar,
    /// Of a lock whose guards have callbacks for its loss.
    losses: OnceLock<Arc<LossTable>>,
}

/// The leases to read that the threads of a client share, by their keys.
#[derive(Default)]
pub(crate) struct SharedGuards {
    table: sync::Mutex<WeakTable<Arc<str>, SharedGuard>>,
}

impl SharedGuards {
    /// The lease for a key, if a thread has it.
    pub(crate) fn find(&self, key: &Arc<str>) -> Option<Arc<SharedGuard>> {
        lock(&self.table).find(key)
    }

    /// Enters a lease, in place of an earlier one.
    pub(crate) fn insert(&self, key: &Arc<str>, guard: &Arc<SharedGuard>) {
        lock(&self.table).insert(Arc::clone(key), guard);
    }
}

/// Held for nearly all of the time: a box would save nothing.
#[allow(clippy::large_enum_variant, reason = "it is not moved, and a box would be an allocation for each lock")]
enum State {
    Held(Lock),
    InUse(ThreadNumber),
}

struct Lock {
    guard: MutexGuard,
    /// The time to live that the lease was last set to by a call.
    ttl: Duration,
    asked: Asked,
}

/// When the nodes were last asked for a lock as for a new one.
#[derive(Clone, Copy)]
struct Asked {
    at: Timestamp,
    answered_at: Timestamp,
}

impl Lock {
    /// This time to live, or the one that other threads rely on, if that is longer.
    fn longer(&self, ttl: Ttl) -> Result<Ttl> {
        if self.ttl > ttl.duration() { self.guard.client.checked_ttl(self.ttl) } else { Ok(ttl) }
    }
}

impl SharedGuard {
    /// A lock that was acquired.
    pub(crate) fn new(guard: MutexGuard) -> SharedGuard {
        let (client, fence, at) = (guard.client.clone(), guard.fencing_token(), guard.claim.t0.steady);
        let asked = Asked { at, answered_at: client.engine().now() };
        let ttl = Duration::from_millis(guard.held_for.map_or(0, NonZeroU64::get));
        let state = sync::Mutex::new(State::Held(Lock { guard, ttl, asked }));
        SharedGuard { client, fence, state, put_back: Condvar::new(), losses: OnceLock::new() }
    }

    /// Prepares another level, which is to last for so long, and to be extended so.
    pub(crate) fn enter(&self, ttl: Ttl, watchdog: Option<&Watchdog>) -> Result<()> {
        self.client.check_process()?;
        let duration = ttl.duration();
        let is_short = self.read(|lock| {
            // The same function over and over sends nothing: a watchdog, too, leaves two thirds.
            let is_short = duration > lock.ttl || lock.guard.ensure(duration * 2 / 3).is_err();
            // The clock is read once where the lease is long enough.
            if is_short { lock.guard.ensure(Duration::ZERO).map(|()| true) } else { Ok(false) }
        })?;
        if is_short {
            self.extend_to(duration)?;
        }
        self.extend_automatically(watchdog, ttl)
    }

    /// Has the lock extended automatically, if there is a watchdog.
    fn extend_automatically(&self, watchdog: Option<&Watchdog>, ttl: Ttl) -> Result<()> {
        match watchdog {
            Some(watchdog) => self.read(|lock| lock.guard.extend_automatically(watchdog, lock.longer(ttl)?)),
            None => Ok(()),
        }
    }

    /// Extends the lock, or says why that failed.
    fn extend_to(&self, ttl: Duration) -> Result<()> {
        match self.extend(ttl)? {
            ExtendOutcome::Extended => Ok(()),
            ExtendOutcome::Failed(causes) => self.read(|lock| {
                let found = Unavailability { causes, ..Unavailability::default() };
                Err(self.client.unavailable("extend", lock.guard.resource(), found))
            }),
            ExtendOutcome::Lost => self.read(|lock| Err(Error::lease_lost(lock.guard.resource(), None))),
        }
    }

    /// Makes the lock last for that long, unless it does already.
    pub(crate) fn extend(&self, ttl: Duration) -> Result<ExtendOutcome> {
        self.client.check_process()?;
        self.with(|lock| {
            // Another guard may rely on the longer lease.
            if lock.guard.remaining() >= ttl {
                return Ok(ExtendOutcome::Extended);
            }
            let outcome = lock.guard.extend(ttl)?;
            if outcome == ExtendOutcome::Extended {
                lock.ttl = ttl;
            }
            Ok(outcome)
        })
    }

    /// Calls with the guard, which may call back into the program.
    pub(crate) fn with_guard<R>(&self, act: impl FnOnce(&MutexGuard) -> Result<R>) -> Result<R> {
        self.client.check_process()?;
        self.with(|lock| act(&lock.guard))
    }

    /// What the guard says. `read` must not call back into the program.
    pub(crate) fn read_guard<R>(&self, read: impl FnOnce(&MutexGuard) -> Result<R>) -> Result<R> {
        self.client.check_process()?;
        self.read(|lock| read(&lock.guard))
    }

    /// The guard, for the last of those that shared it. In a child, another thread was perhaps at it.
    pub(crate) fn into_guard(mut self) -> Result<MutexGuard> {
        self.client.check_process()?;
        self.take().ok_or_else(in_callback)
    }

    /// The guard, unless it is in use.
    pub(crate) fn take(&mut self) -> Option<MutexGuard> {
        self.client.check_process().ok()?;
        let mut state = lock(&self.state);
        match std::mem::replace(&mut *state, State::InUse(ThreadNumber::current())) {
            State::Held(lock) => Some(lock.guard),
            in_use @ State::InUse(_) => {
                *state = in_use;
                None
            }
        }
    }

    /// The number of the acquisition.
    pub(crate) fn fence(&self) -> Option<FencingToken> {
        self.fence
    }

    fn read<R>(&self, read: impl FnOnce(&Lock) -> Result<R>) -> Result<R> {
        match &*self.at_rest()? {
            State::Held(lock) => read(lock),
            State::InUse(_) => Err(in_callback()),
        }
    }

    fn with<R>(&self, act: impl FnOnce(&mut Lock) -> Result<R>) -> Result<R> {
        self.borrow(self.at_rest()?).with(act)
    }

    fn borrow(&self, mut state: sync::MutexGuard<'_, State>) -> Borrowed<'_> {
        let state = std::mem::replace(&mut *state, State::InUse(ThreadNumber::current()));
        Borrowed { hold: self, state: Some(state) }
    }

    /// The state when no other thread has borrowed the guard.
    fn at_rest(&self) -> Result<sync::MutexGuard<'_, State>> {
        self.at_rest_until(Some(Timestamp::NEVER))?.ok_or_else(in_callback)
    }

    /// The state when no other thread has borrowed the guard, unless that lasts until then. Without `until`, the call
    /// does not wait.
    fn at_rest_until(&self, until: Option<Timestamp>) -> Result<Option<sync::MutexGuard<'_, State>>> {
        let mut state = lock(&self.state);
        while let State::InUse(by) = &*state {
            if *by == ThreadNumber::current() {
                return Err(in_callback());
            }
            let left = until.map_or(Duration::ZERO, |until| until.since(self.client.engine().now()));
            if left.is_zero() {
                return Ok(None);
            }
            // A suspended machine does not count a sleep's time, so a sleep is short and the clock is read again.
            let time = left.min(CLOCK_CHECK_INTERVAL);
            state = self.put_back.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(Some(state))
    }
}

fn in_callback() -> Error {
    Error::new(ErrorKind::Config, "a lock is used by a callback of its own extension".to_owned())
}

/// The guard, for the time of a call. It is put back however that ends.
struct Borrowed<'h> {
    hold: &'h SharedGuard,
    state: Option<State>,
}

impl Borrowed<'_> {
    fn with<R>(&mut self, act: impl FnOnce(&mut Lock) -> Result<R>) -> Result<R> {
        match &mut self.state {
            Some(State::Held(lock)) => act(lock),
            Some(State::InUse(_)) | None => Err(in_callback()),
        }
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            *lock(&self.hold.state) = state;
            self.hold.put_back.notify_all();
        }
    }
}
