//! What is counted of the locks of one class, and the classes, which are found by name without a
//! lock.
//!
//! Classes are added and never removed, up to a limit. What exceeds it is counted together, as
//! `other`, so that names that a program makes up cannot fill the memory, nor the memory of a
//! metrics server.

use super::families::{HOLDS, NUMBERS, TIMES, WAITS, map_series};
use super::histogram::Histogram;
use crate::algorithm::queue::AskedBecause;
use crate::algorithm::vote::{Outcome, Tally};
use crate::events::event::LossReason;
use crate::events::release::ReleaseOutcome;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The families of [`NUMBERS`], by index.
#[derive(Clone, Copy)]
enum Number {
    Waiting,
    Held,
    Attempts,
    Asked,
    Lost,
    Extensions,
    Releases,
}

/// The result of an extension, as an index of its label's values.
#[derive(Clone, Copy)]
pub(crate) enum ExtensionResult {
    Extended,
    Failed,
    Lost,
}

/// A class of locks, and what is counted of it.
#[derive(Debug)]
pub(crate) struct Class {
    pub(super) name: Box<str>,
    /// By family of [`TIMES`], and then by series of the family.
    pub(super) times: [Box<[Histogram]>; TIMES.len()],
    /// By family of [`NUMBERS`], and then by series of the family. A gauge is less than zero for no
    /// longer than two threads take to count.
    pub(super) numbers: [Box<[AtomicU64]>; NUMBERS.len()],
}

impl Class {
    fn new(name: &str) -> Class {
        Class {
            name: name.into(),
            times: map_series(&TIMES, |_, _| Histogram::default()),
            numbers: map_series(&NUMBERS, |_, _| AtomicU64::new(0)),
        }
    }

    /// Whether any call has ended, or waits, or holds.
    fn is_used(&self) -> bool {
        let is_in_use = [Number::Waiting, Number::Held]
            .iter()
            .any(|&gauge| self.number(gauge, 0).load(Ordering::Relaxed) != 0);
        is_in_use || self.times[WAITS].iter().any(|waits| waits.count() > 0)
    }

    pub(crate) fn waits(&self) {
        self.add(Number::Waiting, 0, 1);
    }

    /// A call has ended: 0 if it acquired the lock, or the number of the reason why it did not.
    pub(crate) fn call_ended(&self, end: usize, waited: Duration, has_waited: bool) {
        self.times[WAITS][end].observe(waited);
        if has_waited {
            self.subtract_one(Number::Waiting);
        }
    }

    /// An attempt acquired the lock.
    pub(crate) fn acquired(&self, because: AskedBecause) {
        self.add(Number::Attempts, 0, 1);
        for (reason, times) in [because.told, because.unasked, because.challenges]
            .into_iter()
            .enumerate()
        {
            // Most calls have not waited.
            if times > 0 {
                self.add(Number::Asked, reason, times);
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
        self.add(Number::Attempts, result, 1);
    }

    /// A guard is made.
    pub(crate) fn holds(&self) {
        self.add(Number::Held, 0, 1);
    }

    /// A guard is gone. After this time, if it released its lock.
    pub(crate) fn lets_go(&self, held: Option<Duration>) {
        self.subtract_one(Number::Held);
        if let Some(held) = held {
            self.times[HOLDS][0].observe(held);
        }
    }

    pub(crate) fn extended(&self, result: ExtensionResult, is_automatic: bool) {
        self.add(
            Number::Extensions,
            2 * result as usize + usize::from(is_automatic),
            1,
        );
    }

    pub(crate) fn lost(&self, reason: LossReason) {
        self.add(Number::Lost, reason as usize, 1);
    }

    pub(crate) fn released(&self, outcome: Option<ReleaseOutcome>, is_dropped: bool) {
        let outcome = match outcome {
            Some(ReleaseOutcome::Released | ReleaseOutcome::StillHeld(_)) => 0,
            Some(ReleaseOutcome::Expired) => 1,
            None => 2,
        };
        self.add(Number::Releases, 2 * outcome + usize::from(is_dropped), 1);
    }

    fn add(&self, family: Number, series: usize, times: u32) {
        self.number(family, series)
            .fetch_add(times.into(), Ordering::Relaxed);
    }

    fn subtract_one(&self, gauge: Number) {
        self.number(gauge, 0).fetch_sub(1, Ordering::Relaxed);
    }

    fn number(&self, family: Number, series: usize) -> &AtomicU64 {
        &self.numbers[family as usize][series]
    }
}

/// Most classes, not counting `other`.
const MOST: usize = 256;
/// Longest name of a class, in bytes. A longer one is counted as `other`.
const LONGEST: usize = 128;
/// The name of the class of all that have no other one.
pub(super) const OTHER: &str = "other";

/// All classes. A class is at the index of its hash, or at the first free one behind it.
pub(super) struct Classes {
    known: Box<[OnceLock<Arc<Class>>]>,
    other: Arc<Class>,
}

impl Classes {
    pub(super) fn new() -> Classes {
        Classes {
            known: (0..MOST).map(|_| OnceLock::new()).collect(),
            other: Arc::new(Class::new(OTHER)),
        }
    }

    /// The class of this name, which is added if there is room.
    pub(super) fn find(&self, name: &str) -> &Arc<Class> {
        if name.len() > LONGEST || name == OTHER {
            return &self.other;
        }
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name) as usize;
        let mut classes = (0..MOST).map(|step| {
            let place = &self.known[hash.wrapping_add(step) % MOST];
            // Another thread may add a class there first.
            place.get_or_init(|| Arc::new(Class::new(name)))
        });
        let found = classes.find(|class| *class.name == *name);
        found.unwrap_or(&self.other)
    }

    /// All classes in which anything may have been counted, `other` last.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Class> {
        let other = Some(&self.other).filter(|other| other.is_used());
        let known = self.known.iter().filter_map(OnceLock::get);
        known.chain(other).map(Arc::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_class_and_what_does_not_fit_is_other() {
        let classes = Classes::new();
        for number in (0..MOST).chain(0..MOST) {
            let name = number.to_string();
            assert_eq!(*classes.find(&name).name, *name);
        }
        for name in ["one more", &"x".repeat(LONGEST + 1), OTHER] {
            assert_eq!(&*classes.find(name).name, OTHER);
        }
        assert_eq!(classes.iter().count(), MOST, "nothing was counted as other");
    }

    #[test]
    fn threads_that_add_the_same_names_agree() {
        let classes = Classes::new();
        let found: Vec<Vec<&Arc<Class>>> = std::thread::scope(|scope| {
            let find = || {
                (0..MOST)
                    .map(|number| classes.find(&format!("{number}")))
                    .collect()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(find)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        for (number, first) in found[0].iter().enumerate() {
            assert!(found.iter().all(|all| Arc::ptr_eq(all[number], first)));
        }
        assert_eq!(classes.iter().count(), MOST);
    }
}
