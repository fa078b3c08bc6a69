//! A call to read that shares the lease of another thread of its client.

use super::{RwMutex, RwReadGuard};
use crate::algorithm::lease::Ttl;
use crate::algorithm::time::Timestamp;
use crate::api::guard::shared::SharedGuard;
use crate::api::mutex::attempts::Attempts;
use crate::api::mutex::call::LockCall;
use crate::events::error::{Error, Result};
use crate::events::report::WonCall;

impl RwMutex {
    /// Shares the lease of a thread of this client that reads, if there is one and no writer waits. `came_at`: when the
    /// call began. `until`: the nodes are asked, if they were not lately, for that long at most; none: the call does
    /// not wait.
    pub(super) fn join(&self, came_at: Timestamp, until: Option<Timestamp>) -> Result<Option<RwReadGuard>> {
        self.read.client.check_process()?;
        let ttl = self.read.prepare()?;
        let Some(lease) = self.reads.find(self.read.key().title()) else { return Ok(None) };
        let guard = RwReadGuard::of(lease);
        let is_joined = self.is_joined(guard.lease(), ttl, came_at, until);
        if let Ok(true) = is_joined {
            return Ok(Some(guard));
        }
        // The others may have gone meanwhile.
        guard.give_back();
        is_joined.map(|_| None)
    }

    fn is_joined(&self, lease: &SharedGuard, ttl: Ttl, came_at: Timestamp, until: Option<Timestamp>) -> Result<bool> {
        if !lease.join(ttl, came_at, until)? {
            return Ok(false);
        }
        // Where another thread watches the lease without a watchdog, one with a watchdog has a lease of its own.
        self.read.watchdog.as_ref().map_or(Ok(true), |watchdog| lease.is_extended_for(watchdog, ttl))
    }
}

impl Attempts<'_, '_> {
    /// When the call began, and until when the nodes may be asked whether the lease can be shared. A call without time
    /// to wait asks them once.
    pub(super) fn time_to_join(&self) -> (Timestamp, Timestamp) {
        let (came_at, until) = (self.call.called_at.steady, self.until());
        (came_at, if until > came_at { until } else { Timestamp::NEVER })
    }

    /// The nodes did not grant that the lease is shared: a limit that comes next is no reason to call the lock held.
    pub(super) fn not_joined(&mut self) {
        self.machine.was_unavailable();
    }

    /// Ends a call that shares the lease of another thread that reads.
    ///
    /// # Errors
    /// The lease has ended, because an observer ran for so long.
    pub(super) fn joined(&mut self, guard: RwReadGuard) -> Result<RwReadGuard> {
        let LockCall { client, called_at, ttl, .. } = self.call;
        let key = self.call.key();
        if self.account.has_waited() {
            let waited = client.engine().now().since(called_at.steady);
            client.report().acquired(key.title(), &WonCall { waited, has_waited: true, ..WonCall::default() });
            self.account.is_reported = true;
        }
        match guard.lease().guard().is_over() {
            true => {
                guard.give_back();
                Err(Error::ended_meanwhile(self.call.resource(), ttl.duration()))
            }
            false => Ok(guard),
        }
    }
}
