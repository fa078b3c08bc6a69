//! What the thread reports.

use super::WatchdogLoop;
use super::batch::Finding;
use crate::events::event::LossReason;

impl WatchdogLoop {
    /// Reports what batches have found, to the observer and to loss callbacks.
    pub(super) fn report_batch(&mut self) {
        // What their owners have let go meanwhile drops its callbacks.
        self.batch.extending.clear();
        for (watched, found) in self
            .batch
            .unreported
            .extract_if(.., |(watched, _)| watched.is_announced())
        {
            let report = &self.report;
            let key = watched.local.key().title();
            match found {
                Finding::Extended(ttl, repaired) => {
                    report.extended(key, ttl.duration(), true, repaired)
                }
                Finding::Failed(faults) => {
                    let remaining = || watched.lease().remaining(self.engine.lease_now());
                    report.extension_failed(key, true, remaining, |names| names.faults(&faults));
                }
                Finding::Lost(reason, is_unreported) => {
                    let held = self.engine.now().since(watched.held_since);
                    if reason == LossReason::KeyGone {
                        report.extension_lost(key, true);
                    }
                    watched.run_loss_callbacks();
                    if is_unreported {
                        report.lost(key, reason, held);
                    }
                }
            }
        }
        self.report.deliver_at_most(1);
    }
}
