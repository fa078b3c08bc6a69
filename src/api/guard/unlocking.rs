//! The release of a lock whose outcome is waited for.

use super::MutexGuard;
use crate::engine::watchdog_thread::Unregistered;
use crate::events::error::Result;
use crate::events::event_queue::ReleaseContext;
use crate::events::release::ReleaseOutcome;
use std::sync::Arc;

impl MutexGuard {
    /// [`unlock`](MutexGuard::unlock). `queued` is called when later requests go behind the release.
    pub(crate) fn unlock_and(self, queued: impl FnOnce()) -> Result<ReleaseOutcome> {
        self.client.check_process()?;
        let Unregistered { lease, reached, loss_reported } = self.leave_watch();
        let client = &self.client;
        let now = client.engine().readings();
        let was_valid = lease.is_valid(now.lease);
        let (release, hold) = (self.release_at(now.lease, reached), self.hold_id());
        let count = client.engine().release(release, now.steady, || {
            self.held.change(|held| held.lasts = None);
            self.local.release(hold, now.steady);
            queued();
        });
        let held = self.held_at(now);
        let (key, class) = (Arc::clone(self.key().title()), None);
        let context = ReleaseContext { key, was_valid, loss_reported, held, class, is_observed: true };
        self.client.report().unlocked(&context, &count.tally, &count.faults);
        ReleaseOutcome::of(count.tally.release(), was_valid).ok_or_else(|| {
            self.client.unavailable("confirm the release of", self.resource(), self.client.unavailability(&count))
        })
    }
}
