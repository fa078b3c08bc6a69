//! A lock that is held once, however many guards of it there are: those of an owner, or of the threads that read.
//!
//! ```text
//!             use
//!   free ◄──────────► in use
//!            leave
//! ```
//!
//! One thread at a time extends the lock, or registers something for its loss; others wait for it, also while it is in
//! a callback of the program. A callback that the extension calls on the same thread would wait for itself, and is
//! refused. What only looks at the lock waits for none of them.

mod joining;
mod losses;
pub(crate) mod own_losses;

use super::MutexGuard;
use crate::algorithm::lease::Ttl;
use crate::algorithm::time::Timestamp;
use crate::api::watchdog::Watchdog;
use crate::engine::local_queue::Unavailability;
use crate::engine::swept_table::SweptTable;
use crate::engine::watchdog_thread::CLOCK_CHECK_INTERVAL;
use crate::events::error::{Error, ErrorKind, Result};
use crate::events::extension::ExtendOutcome;
use crate::os::sync::{self, Condvar, lock};
use crate::os::thread_number::ThreadNumber;
use losses::LossTable;
use std::num::NonZeroU64;
use std::ops::Deref;
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// A lock that is held, once. Its guards share it.
pub(crate) struct SharedGuard {
    guard: MutexGuard,
    state: sync::Mutex<State>,
    left: Condvar,
    /// Of a lock whose guards have callbacks for its loss.
    losses: OnceLock<Arc<LossTable>>,
}

/// The leases to read that the threads of a client share, by their keys.
#[derive(Default)]
pub(crate) struct SharedGuards {
    table: sync::Mutex<SweptTable<Arc<str>, Weak<SharedGuard>>>,
}

impl SharedGuards {
    /// The lease for a key, if a thread has it.
    pub(crate) fn find(&self, key: &Arc<str>) -> Option<Arc<SharedGuard>> {
        lock(&self.table).get(key).and_then(Weak::upgrade)
    }

    /// Enters a lease, in place of an earlier one.
    pub(crate) fn insert(&self, key: &Arc<str>, guard: &Arc<SharedGuard>) {
        lock(&self.table).insert(Arc::clone(key), Arc::downgrade(guard));
    }
}

struct State {
    /// The thread that extends the lock, or watches it for its loss.
    in_use_by: Option<ThreadNumber>,
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

impl SharedGuard {
    /// A lock that was acquired.
    pub(crate) fn new(guard: MutexGuard) -> SharedGuard {
        let asked = Asked { at: guard.claim.t0.steady, answered_at: guard.client.engine().now() };
        let ttl = Duration::from_millis(guard.held.get().lasts.map_or(0, NonZeroU64::get));
        let state = sync::Mutex::new(State { in_use_by: None, ttl, asked });
        SharedGuard { guard, state, left: Condvar::new(), losses: OnceLock::new() }
    }

    /// Prepares another level, which is to last for so long, and to be extended so.
    pub(crate) fn enter(&self, ttl: Ttl, watchdog: Option<&Watchdog>) -> Result<()> {
        self.guard.client.check_process()?;
        let duration = ttl.duration();
        // The same function over and over sends nothing: a watchdog, too, leaves two thirds.
        let is_short = duration > self.at_rest()?.ttl || self.guard.ensure(duration * 2 / 3).is_err();
        if is_short {
            self.guard.ensure(Duration::ZERO)?;
            self.extend_to(duration)?;
            // The lease may have ended while an observer ran.
            self.guard.ensure(Duration::ZERO)?;
        }
        self.extend_automatically(watchdog, ttl)
    }

    /// Has the lock extended automatically, if there is a watchdog.
    fn extend_automatically(&self, watchdog: Option<&Watchdog>, ttl: Ttl) -> Result<()> {
        match watchdog {
            Some(watchdog) => {
                let state = self.at_rest()?;
                self.guard.extend_automatically(watchdog, self.longer(state.ttl, ttl)?)
            }
            None => Ok(()),
        }
    }

    /// Extends the lock, or says why that failed.
    fn extend_to(&self, ttl: Duration) -> Result<()> {
        match self.extend(ttl)? {
            ExtendOutcome::Extended => Ok(()),
            ExtendOutcome::Failed(causes) => {
                let found = Unavailability { causes, ..Unavailability::default() };
                Err(self.guard.client.unavailable("extend", self.guard.resource(), found))
            }
            ExtendOutcome::Lost => Err(Error::lease_lost(self.guard.resource())),
        }
    }

    /// This time to live, or the one that other threads rely on, if that is longer.
    fn longer(&self, relied_on: Duration, ttl: Ttl) -> Result<Ttl> {
        if relied_on > ttl.duration() { self.guard.client.checked_ttl(relied_on) } else { Ok(ttl) }
    }

    /// Makes the lock last for that long, unless it does already.
    pub(crate) fn extend(&self, ttl: Duration) -> Result<ExtendOutcome> {
        self.guard.client.check_process()?;
        let used = self.enter_use(self.at_rest()?);
        // Another guard may rely on the longer lease.
        if used.remaining() >= ttl {
            return Ok(ExtendOutcome::Extended);
        }
        let outcome = used.extend_one_at_a_time(ttl)?;
        if outcome == ExtendOutcome::Extended {
            lock(&self.state).ttl = ttl;
        }
        Ok(outcome)
    }

    /// The guard, while no other thread extends the lock.
    pub(crate) fn alone(&self) -> Result<InUse<'_>> {
        self.guard.client.check_process()?;
        Ok(self.enter_use(self.at_rest()?))
    }

    /// The guard, to look at: nothing that waits may be called.
    pub(crate) fn guard(&self) -> &MutexGuard {
        &self.guard
    }

    /// The guard, for the last of those that shared it.
    pub(crate) fn into_guard(self) -> MutexGuard {
        self.guard
    }

    /// Releases the lock, for the last of those that shared it, in a call that delivers queued events itself.
    pub(crate) fn post_release(self) {
        self.guard.post_release();
    }

    /// Whether this process is a child of the one that holds the lock.
    pub(crate) fn is_inherited(&self) -> bool {
        self.guard.client.is_inherited()
    }

    fn enter_use(&self, mut state: sync::MutexGuard<'_, State>) -> InUse<'_> {
        state.in_use_by = Some(ThreadNumber::current());
        InUse(self)
    }

    /// The state when no other thread uses the guard.
    fn at_rest(&self) -> Result<sync::MutexGuard<'_, State>> {
        self.at_rest_until(Some(Timestamp::NEVER))?.ok_or_else(in_callback)
    }

    /// The state when no other thread uses the guard, unless that lasts until then. Without `until`, the call does not
    /// wait.
    fn at_rest_until(&self, until: Option<Timestamp>) -> Result<Option<sync::MutexGuard<'_, State>>> {
        let mut state = lock(&self.state);
        while let Some(by) = &state.in_use_by {
            if *by == ThreadNumber::current() {
                return Err(in_callback());
            }
            let left = until.map_or(Duration::ZERO, |until| until.since(self.guard.client.engine().now()));
            if left.is_zero() {
                return Ok(None);
            }
            // A suspended machine does not count a sleep's time, so a sleep is short and the clock is read again.
            let time = left.min(CLOCK_CHECK_INTERVAL);
            state = self.left.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(Some(state))
    }
}

fn in_callback() -> Error {
    Error::new(ErrorKind::Config, "a lock is used by a callback of its own extension".to_owned())
}

/// The guard, for the time of a call in which no other thread extends the lock, however that ends.
pub(crate) struct InUse<'h>(&'h SharedGuard);

impl Deref for InUse<'_> {
    type Target = MutexGuard;

    fn deref(&self) -> &MutexGuard {
        &self.0.guard
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).in_use_by = None;
        self.0.left.notify_all();
    }
}
