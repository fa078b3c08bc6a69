//! Contenders measured in turns, and the comparison of their times.
//!
//! Other load on a machine changes within seconds. So the contenders take turns of a few dozen
//! operations; many turns are a round. Times are compared within a round only, where all contenders
//! ran under the same load, and of the ratios the median counts. Every other round goes through the
//! contenders backwards, so that none of them always follows the same one.

use std::time::{Duration, Instant};

/// How much is measured.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    /// Turns of each contender in a round.
    pub(crate) turns: usize,
    /// Operations in a turn.
    pub(crate) operations: usize,
}

/// One lock and its unlock.
pub(crate) struct Pair {
    pub(crate) lock: Duration,
    pub(crate) unlock: Duration,
}

/// Times the two halves of a pair.
pub(crate) fn timed<H>(lock: impl FnOnce() -> H, unlock: impl FnOnce(H)) -> Pair {
    let start = Instant::now();
    let held = lock();
    let between = Instant::now();
    unlock(held);
    let end = Instant::now();
    Pair {
        lock: between - start,
        unlock: end - between,
    }
}

/// What one contender did in one round.
#[derive(Default)]
pub(crate) struct Samples {
    pub(crate) lock: Times,
    pub(crate) unlock: Times,
    pub(crate) pair: Times,
}

impl Samples {
    fn push(&mut self, pair: &Pair) {
        self.lock.push(pair.lock);
        self.unlock.push(pair.unlock);
        self.pair.push(pair.lock + pair.unlock);
    }

    pub(crate) fn pair_p50(&self) -> f64 {
        self.pair.quantile(0.5)
    }

    pub(crate) fn pair_p99(&self) -> f64 {
        self.pair.quantile(0.99)
    }

    pub(crate) fn lock_p50(&self) -> f64 {
        self.lock.quantile(0.5)
    }

    pub(crate) fn lock_p99(&self) -> f64 {
        self.lock.quantile(0.99)
    }

    pub(crate) fn unlock_p50(&self) -> f64 {
        self.unlock.quantile(0.5)
    }

    pub(crate) fn unlock_p99(&self) -> f64 {
        self.unlock.quantile(0.99)
    }
}

impl Extend<Samples> for Samples {
    fn extend<I: IntoIterator<Item = Samples>>(&mut self, more: I) {
        for samples in more {
            self.lock.extend(samples.lock);
            self.unlock.extend(samples.unlock);
            self.pair.extend(samples.pair);
        }
    }
}

/// Durations in microseconds.
#[derive(Clone, Default)]
pub(crate) struct Times(Vec<f64>);

impl Times {
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time.as_secs_f64() * 1e6);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn extend(&mut self, other: Times) {
        self.0.extend(other.0);
    }

    /// The time that this part of all samples does not exceed: 0.5, 0.99, 1.0. Zero when there is
    /// none.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        sorted
            .get((sorted.len() as f64 * part) as usize)
            .or(sorted.get(last))
            .copied()
            .unwrap_or(0.0)
    }
}

/// Lets the contenders take turns. Returns the samples of each contender, by round.
pub(crate) fn interleave<const N: usize>(
    plan: Plan,
    contenders: &mut [&mut dyn FnMut() -> Pair; N],
) -> [Vec<Samples>; N] {
    each_of(interleave_all(plan, N, |index| contenders[index]()))
}

/// The same for any number of contenders. `pair` is told which of them has its turn.
pub(crate) fn interleave_all(
    plan: Plan,
    contenders: usize,
    mut pair: impl FnMut(usize) -> Pair,
) -> Vec<Vec<Samples>> {
    in_turns((plan.rounds, plan.turns), contenders, |index| {
        let mut samples = Samples::default();
        repeat(plan.operations, || samples.push(&pair(index)));
        samples
    })
}

/// Lets the contenders take turns in rounds of so many turns. Returns what each of them did in each
/// round, all turns of a round in one.
pub(crate) fn take_turns<T: Default + Extend<T>, const N: usize>(
    turns: (usize, usize),
    contenders: &mut [&mut dyn FnMut() -> T; N],
) -> [Vec<T>; N] {
    each_of(in_turns(turns, N, |index| contenders[index]()))
}

/// The same for any number of contenders. `run` is told which of them has its turn.
pub(crate) fn in_turns<T: Default + Extend<T>>(
    (rounds, turns): (usize, usize),
    contenders: usize,
    mut run: impl FnMut(usize) -> T,
) -> Vec<Vec<T>> {
    let mut all: Vec<Vec<T>> = (0..contenders).map(|_| Vec::new()).collect();
    // Connections are made, buffers grow, caches warm up.
    for index in 0..contenders {
        run(index);
    }
    for round in 0..rounds {
        all.iter_mut().for_each(|rounds| rounds.push(T::default()));
        for _ in 0..turns {
            for index in order(round, contenders) {
                all[index][round].extend([run(index)]);
            }
        }
    }
    all
}

pub(crate) fn each_of<T, const N: usize>(all: Vec<T>) -> [T; N] {
    let Ok(each) = all.try_into() else {
        unreachable!("there is one for each contender")
    };
    each
}

/// Does something so many times, and ignores what it returns.
pub(crate) fn repeat<R>(times: usize, mut operation: impl FnMut() -> R) {
    for _ in 0..times {
        operation();
    }
}

/// The order of turns in a round.
fn order(round: usize, contenders: usize) -> Vec<usize> {
    if round.is_multiple_of(2) {
        (0..contenders).collect()
    } else {
        (0..contenders).rev().collect()
    }
}

/// A figure over several rounds.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        let last = sorted.len().saturating_sub(1);
        Spread {
            median: f64::midpoint(at(last / 2), at(last.div_ceil(2))),
            least: at(0),
            most: at(last),
        }
    }

    /// A figure of one contender by the same figure of another, round by round.
    pub(crate) fn ratio<T>(rounds: &[T], others: &[T], figure: impl Fn(&T) -> f64) -> Spread {
        Spread::of(
            rounds
                .iter()
                .zip(others)
                .map(|(round, other)| figure(round) / figure(other)),
        )
    }

    /// A figure of one contender.
    pub(crate) fn over<T>(rounds: &[T], figure: impl Fn(&T) -> f64) -> Spread {
        Spread::of(rounds.iter().map(figure))
    }
}
