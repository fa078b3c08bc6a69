//! The watch of a held lock: its loss is signalled, and it may be extended automatically.

use super::HeldLock;
use crate::algorithm::lease::Ttl;
use crate::api::watchdog::Watchdog;
use crate::engine::watchdog_thread::watched::LossCallback;
use crate::engine::watchdog_thread::{AutomaticExtension, WatchedLock};
use crate::events::error::{Error, Result, config_error};
use crate::os::sync::lock;
use crossbeam_channel::Receiver;
use std::sync::Arc;
use std::time::Duration;

impl HeldLock {
    /// A channel that receives one message when the lock is lost.
    pub(crate) fn lost(&self) -> Result<Receiver<()>> {
        Ok(self.watch()?.lost())
    }

    /// Calls `callback` once when the lock is lost.
    pub(crate) fn on_lost(&self, callback: LossCallback) -> Result<()> {
        self.watch()?.on_lost(callback);
        Ok(())
    }

    /// Watches the lock, so that its loss is signalled.
    fn watch(&self) -> Result<&Arc<WatchedLock>> {
        self.client.check_process()?;
        if let Some(watched) = self.watched.get() {
            return Ok(watched);
        }
        self.client.start_watchdog_thread()?;
        // An extension that another thread has begun ends first: it has the lease.
        let _in_use = self.enter()?;
        Ok(self.watch_for(None))
    }

    fn watch_for(&self, extension: Option<AutomaticExtension>) -> &Arc<WatchedLock> {
        let watch = || {
            let lease = lock(&self.state).lease;
            self.client
                .watchdog_thread
                .watch(&self.local, &self.claim, lease, extension, true)
        };
        let watched = self.watched.get_or_init(watch);
        self.end_span_on_loss();
        watched
    }

    /// The acquisition has been reported to observers.
    pub(crate) fn announce(&self) {
        if let Some(watched) = self.watched.get() {
            self.client.watchdog_thread.announce(watched);
        }
    }

    /// Has the lock extended automatically as long as this watchdog allows, counted from now, or
    /// longer. The thread of the watchdog runs.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) when the lock is watched without being extended: its receivers
    /// would miss a loss. [`LeaseLost`](ErrorKind::LeaseLost).
    pub(crate) fn extend_automatically(&self, watchdog: &Watchdog, ttl: Ttl) -> Result<()> {
        if self.is_extended_for(watchdog, ttl) {
            return Ok(());
        }
        self.ensure(Duration::ZERO)?;
        // The margin before its end has begun: it is about to be reported lost.
        if self
            .watched
            .get()
            .is_some_and(|watched| watched.is_extended())
        {
            return Err(Error::lease_lost(self.name()));
        }
        let message = format!(
            "the lock of {:?} has no watchdog, and its loss is watched already: set the watchdog on the mutex that \
             takes it first",
            self.name()
        );
        Err(config_error(message))
    }

    /// Has the lock extended automatically for a thread that shares it from now on: for as long as
    /// its watchdog allows, counted from now, or longer. False when it is watched without being
    /// extended, or lost.
    pub(crate) fn is_extended_for(&self, watchdog: &Watchdog, ttl: Ttl) -> bool {
        let now = self.client.engine.lease_now();
        let extension = watchdog.extension_of(ttl, now, self.hold_id());
        let watched = self
            .watched
            .get()
            .unwrap_or_else(|| self.watch_for(Some(extension)));
        watched.is_extended() && self.client.watchdog_thread.allow(watched, extension)
    }

    /// To be called once, when the lock is watched.
    pub(super) fn end_span_on_loss(&self) {
        self.span.end_on_loss(|callback| {
            if let Some(watched) = self.watched.get() {
                watched.on_lost(callback);
            }
        });
    }
}
