//! What is counted of the locks of one class.

use super::families::{COUNTERS, Family, HELD, WAIT, WAITING};
use super::histogram::Histogram;
use crate::algorithm::queue::AskedBecause;
use crate::algorithm::vote::{Outcome, Tally};
use crate::events::event::LossReason;
use crate::events::release::ReleaseOutcome;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// The families of [`COUNTERS`], by index.
#[derive(Clone, Copy, Debug)]
enum Counted {
    Attempts,
    Asked,
    Lost,
    Extensions,
    Releases,
}

/// The result of an extension, as an index of its label's values.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExtensionResult {
    Extended,
    Failed,
    Lost,
}

/// A class of locks, and what is counted of it.
pub(crate) struct Class {
    name: Box<str>,
    /// By series of [`WAIT`].
    pub(super) waits: Box<[Histogram]>,
    pub(super) holds: Histogram,
    waiting: AtomicI64,
    held: AtomicI64,
    /// By family of [`COUNTERS`], and then by series of the family.
    pub(super) counters: [Box<[AtomicU64]>; COUNTERS.len()],
}

/// Where a class has the number of a gauge.
type Number = fn(&Class) -> &AtomicI64;

/// The gauges of a class. One is negative for no longer than two threads take to count.
pub(super) const GAUGES: [(Family, Number); 2] = [
    (WAITING, |class| &class.waiting),
    (HELD, |class| &class.held),
];

impl Class {
    pub(super) fn new(name: &str) -> Class {
        Class {
            name: name.into(),
            waits: WAIT.series().iter().map(|_| Histogram::default()).collect(),
            holds: Histogram::default(),
            waiting: AtomicI64::new(0),
            held: AtomicI64::new(0),
            counters: COUNTERS
                .map(|family| family.series().iter().map(|_| AtomicU64::new(0)).collect()),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether any call has ended, or waits, or holds.
    pub(super) fn is_used(&self) -> bool {
        let in_use = [&self.waiting, &self.held]
            .iter()
            .any(|gauge| gauge.load(Ordering::Relaxed) != 0);
        in_use || self.waits.iter().any(|waits| waits.values().count() > 0)
    }

    pub(crate) fn waits(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// A call has ended: 0 if it acquired the lock, or the number of the reason why it did not.
    pub(crate) fn call_ended(&self, end: usize, waited: Duration, has_waited: bool) {
        self.waits[end].observe(waited);
        if has_waited {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// An attempt acquired the lock.
    pub(crate) fn acquired(&self, because: AskedBecause) {
        self.add(Counted::Attempts, 0, 1);
        for (reason, times) in [because.told, because.unasked, because.challenges]
            .into_iter()
            .enumerate()
        {
            // Most calls have not waited.
            if times > 0 {
                self.add(Counted::Asked, reason, times);
            }
        }
        self.holds();
    }

    pub(crate) fn attempt_lost(&self, tally: &Tally) {
        let result = match tally.acquisition() {
            Outcome::Held => 1,
            Outcome::Won => 2,
            Outcome::Unavailable | Outcome::Pending => 3,
        };
        self.add(Counted::Attempts, result, 1);
    }

    /// A guard is made.
    pub(crate) fn holds(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    /// A guard is gone. After this time, if it released its lock.
    pub(crate) fn lets_go(&self, held: Option<Duration>) {
        self.held.fetch_sub(1, Ordering::Relaxed);
        if let Some(held) = held {
            self.holds.observe(held);
        }
    }

    pub(crate) fn extended(&self, result: ExtensionResult, is_automatic: bool) {
        self.add(
            Counted::Extensions,
            2 * result as usize + usize::from(is_automatic),
            1,
        );
    }

    pub(crate) fn lost(&self, reason: LossReason) {
        self.add(Counted::Lost, reason as usize, 1);
    }

    pub(crate) fn released(&self, outcome: Option<ReleaseOutcome>, is_dropped: bool) {
        let outcome = match outcome {
            Some(ReleaseOutcome::Released | ReleaseOutcome::StillHeld(_)) => 0,
            Some(ReleaseOutcome::Expired) => 1,
            None => 2,
        };
        self.add(Counted::Releases, 2 * outcome + usize::from(is_dropped), 1);
    }

    fn add(&self, family: Counted, series: usize, times: u32) {
        self.counters[family as usize][series].fetch_add(times.into(), Ordering::Relaxed);
    }
}
