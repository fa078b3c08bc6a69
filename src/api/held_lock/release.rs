//! How a held lock ends here: it is released, by a call or by a drop, or detached.

use super::{HeldLock, HeldState};
use crate::algorithm::kind::Kind;
use crate::algorithm::lease::Validity;
use crate::algorithm::node::NodeSet;
use crate::algorithm::time::LeaseTime;
use crate::api::lease::DetachedLease;
use crate::engine::calls::{AttemptRecord, Release, ReleaseScope};
use crate::engine::watchdog_thread::Unregistered;
use crate::events::error::Result;
use crate::events::event::LossReason;
use crate::events::release::ReleaseOutcome;
use crate::events::spans::HoldOutcome;
use crate::os::sync::lock;
use std::num::NonZeroU64;
use std::time::{Duration, SystemTime};

impl HeldLock {
    /// Releases the lock, and waits for the outcome. `queued` is called when later requests go
    /// behind the release.
    pub(crate) fn unlock(self, queued: impl FnOnce()) -> Result<ReleaseOutcome> {
        self.client.check_process()?;
        let left = self.leave_watch();
        let client = &self.client;
        let now = client.engine.readings();
        let was_valid = left.lease.is_valid(now.lease);
        let release = self.release_at(now.lease, left.reached);
        let hold = self.hold_id();
        let count = client.engine.release(release, now.steady, || {
            lock(&self.state).lasts = 0;
            self.local.release(hold, now.steady);
            queued();
        });
        let outcome = ReleaseOutcome::of(count.tally.release(), was_valid);
        self.span.end(match outcome {
            Some(ReleaseOutcome::Released) => HoldOutcome::Released,
            Some(_) if left.loss_reported => HoldOutcome::Lost,
            Some(_) => HoldOutcome::Expired,
            None => HoldOutcome::Unconfirmed,
        });
        let key = self.key().title();
        let held = self.held_at(now);
        let report = &client.report;
        let context = report.hold_ended(key, was_valid, left.loss_reported, held);
        report.unlocked(context, &count.tally, &count.faults);
        outcome.ok_or_else(|| {
            self.client.unavailable(
                "confirm the release of",
                self.name(),
                self.client.unavailability(&count),
            )
        })
    }

    /// Ends the guard and keeps the lock. Asks no node.
    pub(crate) fn detach(self) -> Result<DetachedLease> {
        self.client.check_process()?;
        let client = self.client.clone();
        let lease = match self.watched.get() {
            Some(watched) => client.watchdog_thread.unregister_and_wait(watched),
            None => lock(&self.state).lease,
        };
        let wall = SystemTime::now();
        let now = client.engine.readings();
        // Threads of this client that wait for the lock ask the servers from now on: any client may
        // release it.
        self.local.release(self.hold_id(), now.steady);
        // The call's entry goes from the queue of the lock, which is held without it.
        if let Some(departure) = self.claim.departure {
            let key = &self.key().each()[usize::from(departure.key)];
            let reached = lock(&self.state).reached;
            client
                .engine
                .leave(key, self.claim.kind, Some(departure.entry), reached);
        }
        self.span.end(HoldOutcome::Detached);
        client.report.detached(self.key().title());
        let ttl_millis = std::mem::take(&mut lock(&self.state).lasts);
        Ok(DetachedLease::new(
            self.key().clone(),
            &self.claim,
            ttl_millis,
            lease,
            wall,
            now.lease,
        ))
    }

    /// Releases the lock without waiting. The caller delivers queued events.
    pub(crate) fn post_release(&self) {
        let left = self.leave_watch();
        let client = &self.client;
        let key = self.key();
        let now = client.engine.readings();
        let was_valid = left.lease.is_valid(now.lease);
        let is_loss_found = !was_valid && !left.loss_reported;
        let loss_reported = left.loss_reported || is_loss_found;
        let held = self.held_at(now);
        let context = client
            .report
            .hold_ended(key.title(), was_valid, loss_reported, held);
        client.engine.post_release(
            self.release_at(now.lease, left.reached),
            now.steady,
            context,
        );
        self.local.release(self.hold_id(), now.steady);
        self.span.end(match was_valid {
            true => HoldOutcome::Dropped,
            false if left.loss_reported => HoldOutcome::Lost,
            false => HoldOutcome::Expired,
        });
        if is_loss_found {
            client
                .report
                .without_queued()
                .lost(key.title(), LossReason::LeaseEnded, held);
        }
        lock(&self.state).lasts = 0;
    }

    /// Stops the watch, so that nothing more is sent for this lock, and returns what is held.
    pub(super) fn leave_watch(&self) -> Unregistered {
        let HeldState { lease, reached, .. } = *lock(&self.state);
        match self.watched.get() {
            Some(watched) => {
                let left = self.client.watchdog_thread.unregister(watched);
                Unregistered {
                    reached: reached.union(left.reached),
                    ..left
                }
            }
            None => Unregistered {
                lease,
                reached,
                loss_reported: lease == Validity::LOST,
            },
        }
    }

    /// The release of the lock at this time, which these nodes may have.
    fn release_at(&self, now: LeaseTime, reached: NodeSet) -> Release {
        let HeldState {
            kept_until,
            longest,
            ..
        } = *lock(&self.state);
        let left = kept_until.since(now);
        // A node counts whole milliseconds, from when it runs the command.
        let millis = left.as_nanos().div_ceil(1_000_000);
        let stands_for = u64::try_from(millis).ok().and_then(NonZeroU64::new);
        let attempt = AttemptRecord {
            reached,
            ..self.claim.clone()
        };
        let scope = ReleaseScope::Everywhere { stands_for };
        let key_lasts = Duration::from_millis(longest);
        Release {
            key: self.key().clone(),
            attempt,
            scope,
            key_lasts,
        }
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        if self.client.is_inherited() {
            // The lock is the parent's. The channel of the watch is not dropped: another thread was
            // perhaps waiting at it.
            return std::mem::forget(self.watched.take());
        }
        if lock(&self.state).lasts > 0 {
            self.post_release();
            self.client.report.deliver_queued();
        }
        self.client
            .shutdown
            .on_hold_ended(self.claim.kind == Kind::Read);
    }
}
