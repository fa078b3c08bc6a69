//! What is counted of the locks of one class.

use super::histogram::Histogram;
use crate::algorithm::queue::AskedBecause;
use crate::algorithm::vote::{Outcome, Tally};
use crate::events::event::{GaveUpReason, LossReason};
use crate::events::release::ReleaseOutcome;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// How a call ended: `outcome` of the waits.
pub(crate) const ENDS: [&str; 7] = ["acquired", "cancelled", "failed", "held", "timed_out", "too_late", "unavailable"];
/// What became of an attempt: `result` of the attempts.
pub(crate) const ATTEMPTS: [&str; 4] = ["won", "held", "too_late", "unavailable"];
/// Why a call asked that waited for a lock it acquired: `because` of what it asked.
pub(crate) const REASONS: [&str; 3] = ["told", "unasked", "challenge"];
/// What became of an extension.
pub(crate) const EXTENSIONS: [&str; 3] = ["extended", "failed", "lost"];
/// Why a lock was lost.
pub(crate) const LOSSES: [&str; 2] = ["key_gone", "lease_ended"];
/// What became of a release.
pub(crate) const RELEASES: [&str; 3] = ["released", "expired", "unconfirmed"];

/// The result of an extension, as a place in [`EXTENSIONS`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExtensionResult {
    Extended,
    Failed,
    Lost,
}

/// A class of resources, and what is counted of it. By place in the tables above.
pub(crate) struct Class {
    name: Box<str>,
    pub(super) waits: [Histogram; ENDS.len()],
    pub(super) holds: Histogram,
    pub(crate) attempts: [AtomicU64; ATTEMPTS.len()],
    pub(crate) reasons: [AtomicU64; REASONS.len()],
    pub(crate) waiting: AtomicI64,
    pub(crate) held: AtomicI64,
    /// By hand, and automatic.
    pub(crate) extensions: [[AtomicU64; 2]; EXTENSIONS.len()],
    pub(crate) losses: [AtomicU64; LOSSES.len()],
    /// Of guards that were unlocked, and of those that were dropped.
    pub(crate) releases: [[AtomicU64; 2]; RELEASES.len()],
}

impl Class {
    pub(super) fn new(name: &str) -> Class {
        Class {
            name: name.into(),
            waits: Default::default(),
            holds: Histogram::default(),
            attempts: Default::default(),
            reasons: Default::default(),
            waiting: AtomicI64::new(0),
            held: AtomicI64::new(0),
            extensions: Default::default(),
            losses: Default::default(),
            releases: Default::default(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether any call has ended, or waits, or holds.
    pub(super) fn is_used(&self) -> bool {
        let in_use = [&self.waiting, &self.held].iter().any(|gauge| gauge.load(Ordering::Relaxed) != 0);
        in_use || self.waits.iter().any(|waits| waits.values().count() > 0)
    }

    pub(super) fn waits(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn acquired(&self, waited: Duration, because: AskedBecause, has_waited: bool) {
        self.call_ended(0, waited, has_waited);
        add(&self.attempts[0]);
        for (count, times) in self.reasons.iter().zip([because.told, because.unasked, because.challenges]) {
            // Most calls have not waited.
            if times > 0 {
                count.fetch_add(times.into(), Ordering::Relaxed);
            }
        }
        self.holds();
    }

    /// A call that has waited shares a lock that another thread has acquired.
    pub(super) fn joined(&self, waited: Duration) {
        self.call_ended(0, waited, true);
    }

    pub(super) fn gave_up(&self, reason: GaveUpReason, waited: Duration, has_waited: bool) {
        self.call_ended(end_of(reason), waited, has_waited);
    }

    fn call_ended(&self, end: usize, waited: Duration, has_waited: bool) {
        self.waits[end].observe(waited);
        if has_waited {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(super) fn attempt_lost(&self, tally: &Tally) {
        add(&self.attempts[match tally.acquisition() {
            Outcome::Won => 2,
            Outcome::Unavailable | Outcome::Pending => 3,
            Outcome::Held => 1,
        }]);
    }

    /// A guard is made.
    pub(super) fn holds(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    /// A guard is gone. After this time, if it released its lock.
    pub(super) fn lets_go(&self, held: Option<Duration>) {
        self.held.fetch_sub(1, Ordering::Relaxed);
        if let Some(held) = held {
            self.holds.observe(held);
        }
    }

    pub(super) fn extended(&self, result: ExtensionResult, automatic: bool) {
        add(&self.extensions[result as usize][usize::from(automatic)]);
    }

    pub(super) fn lost(&self, reason: LossReason) {
        add(&self.losses[match reason {
            LossReason::KeyGone => 0,
            LossReason::LeaseEnded => 1,
        }]);
    }

    pub(super) fn released(&self, outcome: Option<ReleaseOutcome>, dropped: bool) {
        let place = match outcome {
            Some(ReleaseOutcome::Released | ReleaseOutcome::StillHeld(_)) => 0,
            Some(ReleaseOutcome::Expired) => 1,
            None => 2,
        };
        add(&self.releases[place][usize::from(dropped)]);
    }
}

/// The place of a reason in [`ENDS`].
pub(crate) fn end_of(reason: GaveUpReason) -> usize {
    match reason {
        GaveUpReason::Cancelled => 1,
        GaveUpReason::Failed => 2,
        GaveUpReason::Held => 3,
        GaveUpReason::TimedOut => 4,
        GaveUpReason::TooLate => 5,
        GaveUpReason::Unavailable => 6,
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
