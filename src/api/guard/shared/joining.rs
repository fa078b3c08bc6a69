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

use super::{Asked, MutexGuard, SharedGuard, State};
use crate::algorithm::lease::Ttl;
use crate::algorithm::time::{Readings, Timestamp};
use crate::api::watchdog::Watchdog;
use crate::engine::calls::{AttemptRequest, InTurn};
use crate::events::error::Result;
use crate::os::sync::lock;
use std::time::Duration;

/// For how long a lease is shared without asking again. A writer that waits gives new readers of other programs no more
/// than a round trip; this is some of them.
const WINDOW: Duration = Duration::from_millis(10);

impl SharedGuard {
    /// Whether a thread that has come then, and wants so long a time to live, may share the lease. `until`: the nodes
    /// are asked, if they were not a moment ago, for that long at most; none: the call does not wait.
    pub(crate) fn join(&self, ttl: Ttl, came_at: Timestamp, until: Option<Timestamp>) -> Result<bool> {
        self.guard.client.check_process()?;
        let (used, relied_on) = match (self.at_rest_until(until)?, until) {
            (Some(state), _) if self.guard.admits(&state, ttl, came_at) => return Ok(true),
            (Some(state), Some(_)) => {
                let relied_on = state.ttl;
                (self.enter_use(state), relied_on)
            }
            (None, _) | (_, None) => return Ok(false),
        };
        let ttl = self.longer(relied_on, ttl)?;
        let Some(asked) = used.ask_again(ttl, until.unwrap_or(Timestamp::NEVER)) else { return Ok(false) };
        let mut state = lock(&self.state);
        (state.asked, state.ttl) = (asked, ttl.duration());
        Ok(true)
    }

    /// Has the lock extended for a thread that shares it from now on. False when it is watched without being extended,
    /// or lost.
    pub(crate) fn is_extended_for(&self, watchdog: &Watchdog, ttl: Ttl) -> Result<bool> {
        let state = self.at_rest()?;
        Ok(self.guard.is_extended_for(watchdog, self.longer(state.ttl, ttl)?))
    }
}

impl MutexGuard {
    /// Whether a thread that has come then, and wants so long a time to live, may share the lease unasked.
    fn admits(&self, state: &State, ttl: Ttl, came_at: Timestamp) -> bool {
        let Asked { at, answered_at } = state.asked;
        let answer = if came_at <= at { answered_at.since(at) } else { Duration::ZERO };
        let window = answer + WINDOW.min(ttl.validity() / 4);
        let now = self.client.engine().readings();
        let is_recent = now.steady.since(at) <= window;
        is_recent && !self.is_lost() && self.lease().remaining(now.lease) + window >= ttl.validity()
    }

    /// Asks the nodes for a lock that is held, as for a new one, and gives when. None when they did not grant it by
    /// then, or the lease has ended.
    fn ask_again(&self, ttl: Ttl, until: Timestamp) -> Option<Asked> {
        let (engine, kind) = (self.client.engine(), self.claim.kind);
        if self.is_lost() || !self.lease().is_valid(engine.lease_now()) {
            return None;
        }
        // A node may grant it though its answer never comes.
        self.held.change(|held| held.longest = held.longest.max(ttl.longest()));
        let timeout = engine.node_timeout();
        let deadline = |t0: Timestamp, connects: bool| t0.after(timeout * (1 + u32::from(connects))).min(until);
        let (key, token) = (self.key().clone(), self.claim.token.clone());
        let in_turn = Some(InTurn::AS_A_NEWCOMER);
        let request = AttemptRequest { key, token, ttl_millis: ttl.millis(), kind, in_turn };
        let (record, result) = engine.acquire(request, None, deadline);
        self.held.change(|held| held.reached = held.reached.union(record.reached));
        let Readings { steady: answered_at, lease: now } = engine.readings();
        let is_won = result.is_won() && self.lease().is_valid(now) && ttl.lease_from(record.t0.lease).is_valid(now);
        (is_won && self.rely_on(record.t0.lease, ttl)).then_some(Asked { at: record.t0.steady, answered_at })
    }
}
