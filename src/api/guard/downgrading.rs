//! A writer that becomes a reader.

use super::MutexGuard;
use crate::algorithm::kind::Kind;
use crate::algorithm::lease::{Ttl, Validity};
use crate::api::watchdog::Watchdog;
use crate::engine::local_queue::HoldId;
use crate::engine::watchdog_thread::Unregistered;
use crate::events::error::{Error, Result};
use crate::events::extension::ExtendOutcome;
use std::sync::OnceLock;
use std::time::Duration;

impl MutexGuard {
    /// Makes the lock of a writer one of a reader, and extends it as such. It counts as a reader's from the first byte
    /// that is sent for that, whichever nodes answer.
    pub(crate) fn downgrade(mut self, ttl: Ttl, watchdog: Option<&Watchdog>) -> Result<MutexGuard> {
        self.client.check_process()?;
        // No extension of the writer is sent from here on, and a node refuses one that is on its way.
        let Unregistered { lease, reached, loss_reported } = self.leave_watch();
        self.watched = OnceLock::new();
        let lease = if loss_reported { Validity::LOST } else { lease };
        self.held.change(|held| (held.lease, held.reached) = (lease, reached));
        if loss_reported {
            return Err(Error::lease_lost(self.resource()));
        }
        self.claim.kind = Kind::Read;
        // A lease that was extended for longer is not cut short.
        let longest = Duration::from_millis(self.held.get().longest.get());
        let duration = if self.remaining() > ttl.validity() { longest } else { ttl.duration() };
        let outcome = self.extend(duration)?;
        // Behind the extension, on each connection: the writer's entry goes, if it has one, and readers are told.
        let (entry, reached) = (self.claim.departure.take().map(|departure| departure.entry), self.held.get().reached);
        for entry in entry.map(Some).into_iter().chain([None]) {
            self.client.engine().leave(self.key().each()[0].as_bytes(), self.claim.kind, entry, reached);
        }
        if outcome == ExtendOutcome::Lost {
            return Err(Error::lease_lost(self.resource()));
        }
        if let Some(watchdog) = watchdog {
            self.extend_automatically(watchdog, ttl)?;
        }
        // The lease may have ended while an observer ran.
        self.ensure(Duration::ZERO)?;
        Ok(self)
    }

    /// What names the lock in the local queue.
    pub(crate) fn hold_id(&self) -> HoldId {
        HoldId::of(&self.claim.token)
    }
}
