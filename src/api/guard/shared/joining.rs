//! Another thread that shares the lease of a reader.
//!
//! 1. For a moment after the nodes were asked, a thread that wants to read shares the lease, and sends nothing. If it
//!    came before they were asked, that is for a moment after they have answered, however long that took.
//! 2. After that, the nodes are asked again with the token that they know: as for a new reader, so that a writer that
//!    waits keeps this one out, too. The lease is then as long as that of a new reader; no entry is made.
//! 3. If they refuse, the lease is as before, for those that share it already.
//!
//! So a program has one entry, however many of its threads read, and its threads do not keep a writer out for longer
//! than those of many programs would.

use super::{Asked, Lock, MutexGuard, SharedGuard, State};
use crate::algorithm::lease::Ttl;
use crate::algorithm::time::{Readings, Timestamp};
use crate::api::watchdog::Watchdog;
use crate::events::error::Result;
use std::time::Duration;

/// For how long a lease is shared without asking again. A writer that waits gives new readers of other programs no more
/// than a round trip; this is some of them.
const WINDOW: Duration = Duration::from_millis(10);

impl SharedGuard {
    /// Whether a thread that has come then, and wants so long a time to live, may share the lease. `until`: the nodes
    /// are asked, if they were not a moment ago, for that long at most; none: the call does not wait.
    pub(crate) fn join(&self, ttl: Ttl, came_at: Timestamp, until: Option<Timestamp>) -> Result<bool> {
        self.client.check_process()?;
        let mut borrowed = match (self.at_rest_until(until)?, until) {
            (Some(state), _) if state.admits(ttl, came_at) => return Ok(true),
            (Some(state), Some(_)) => self.borrow(state),
            (None, _) | (_, None) => return Ok(false),
        };
        borrowed.with(|lock| {
            let ttl = lock.longer(ttl)?;
            let Some(asked) = lock.guard.ask_again(ttl, until.unwrap_or(Timestamp::NEVER)) else { return Ok(false) };
            (lock.asked, lock.ttl) = (asked, ttl.duration());
            Ok(true)
        })
    }

    /// Has the lock extended for a thread that shares it from now on. False when it is watched without being extended,
    /// or lost.
    pub(crate) fn is_extended_for(&self, watchdog: &Watchdog, ttl: Ttl) -> Result<bool> {
        self.read(|lock| Ok(lock.guard.is_extended_for(watchdog, lock.longer(ttl)?)))
    }
}

impl State {
    fn admits(&self, ttl: Ttl, came_at: Timestamp) -> bool {
        matches!(self, State::Held(lock) if lock.admits(ttl, came_at))
    }
}

impl Lock {
    fn admits(&self, ttl: Ttl, came_at: Timestamp) -> bool {
        let Asked { at, answered_at } = self.asked;
        let answer = if came_at <= at { answered_at.since(at) } else { Duration::ZERO };
        let window = answer + WINDOW.min(ttl.validity() / 4);
        let now = self.guard.client.engine().readings();
        let is_recent = now.steady.since(at) <= window;
        is_recent && !self.guard.is_lost() && self.guard.lease().remaining(now.lease) + window >= ttl.validity()
    }
}

impl MutexGuard {
    /// Asks the nodes for a lock that is held, as for a new one, and gives when. None when they did not grant it by
    /// then, or the lease has ended.
    fn ask_again(&mut self, ttl: Ttl, until: Timestamp) -> Option<Asked> {
        let (engine, kind) = (self.client.engine(), self.claim.kind);
        if self.is_lost() || !self.lease().is_valid(engine.lease_now()) {
            return None;
        }
        // A node may grant it though its answer never comes.
        self.longest = self.longest.max(ttl.longest());
        let timeout = engine.node_timeout();
        let deadline = |t0: Timestamp, connects: bool| t0.after(timeout * (1 + u32::from(connects))).min(until);
        let (record, result) =
            engine.acquire(&self.key, (self.claim.token.clone(), ttl.millis(), kind, None), None, deadline);
        self.claim.reached = self.claim.reached.union(record.reached);
        let Readings { steady: answered_at, lease: now } = engine.readings();
        let is_won = result.is_won() && self.lease().is_valid(now) && ttl.lease_from(record.t0.lease).is_valid(now);
        (is_won && self.rely_on(record.t0.lease, ttl)).then_some(Asked { at: record.t0.steady, answered_at })
    }

    /// Whether the loss of the lock was signalled.
    fn is_lost(&self) -> bool {
        self.watched.get().is_some_and(|watched| watched.is_over())
    }
}
