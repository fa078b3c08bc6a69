//! Another thread that shares the lease of a reader.
//!
//! 1. For a moment after the nodes were asked, a thread that wants to read shares the lease, and
//!    sends nothing. If it came before they were asked, that is for a moment after they have
//!    answered, however long that took.
//! 2. After that, the nodes are asked again with the token that they know: as for a new reader, so
//!    that a writer that waits keeps this one out, too. The lease is then as long as a new
//!    reader's; no entry is made.
//! 3. If they refuse, the lease is as before, for those that share it already.
//!
//! So a program has one entry, however many of its threads read, and its threads do not keep a
//! writer out for longer than those of many programs would.

use super::{Asked, SharedLock};
use crate::algorithm::lease::Ttl;
use crate::algorithm::time::Timestamp;
use crate::api::held_lock::in_callback;
use crate::api::watchdog::Watchdog;
use crate::events::error::Result;
use crate::os::sync::lock;
use std::time::Duration;

/// For how long a lease is shared without asking again. A writer that waits leaves new readers of
/// other programs no more than a round trip; this is some of them.
const WINDOW: Duration = Duration::from_millis(10);

impl SharedLock {
    /// Whether a thread that has come then, and wants so long a time to live, may share the lease.
    /// `until`: the nodes are asked, if they were not a moment ago, for that long at most; none:
    /// the call does not wait.
    pub(crate) fn join(
        &self,
        ttl: Ttl,
        came_at: Timestamp,
        until: Option<Timestamp>,
    ) -> Result<bool> {
        let client = &self.held.client;
        client.check_process()?;
        let Some(free) = self
            .held
            .occupancy
            .free_within(|| until.map_or(Duration::ZERO, |until| until.since(client.engine.now())))
            .map_err(in_callback)?
        else {
            return Ok(false);
        };
        if self.admits(ttl, came_at) {
            return Ok(true);
        }
        let Some(until) = until else { return Ok(false) };
        let _in_use = free.enter();
        let ttl = self.longer(ttl)?;
        let Some((at, answered_at)) = self.held.ask_again(ttl, until) else {
            return Ok(false);
        };
        *lock(&self.asked) = Asked { at, answered_at };
        Ok(true)
    }

    /// Has the lock extended for a thread that shares it from now on. False when it is watched
    /// without being extended, or lost.
    pub(crate) fn is_extended_for(&self, watchdog: &Watchdog, ttl: Ttl) -> Result<bool> {
        let _free = self.held.at_rest()?;
        Ok(self.held.is_extended_for(watchdog, self.longer(ttl)?))
    }

    /// Whether a thread that has come then, and wants so long a time to live, may share the lease
    /// unasked.
    fn admits(&self, ttl: Ttl, came_at: Timestamp) -> bool {
        let Asked { at, answered_at } = *lock(&self.asked);
        let answer = if came_at <= at {
            answered_at.since(at)
        } else {
            Duration::ZERO
        };
        let window = answer + WINDOW.min(ttl.validity() / 4);
        let now = self.held.client.engine.readings();
        let is_recent = now.steady.since(at) <= window;
        is_recent
            && !self.held.is_lost()
            && self.held.lease().remaining(now.lease) + window >= ttl.validity()
    }
}
