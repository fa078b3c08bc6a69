//! Random numbers from a seed: the same ones on every machine.

/// SplitMix64: small, fast, and good enough to choose faults by.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        let mut random = Random(seed ^ 0x5851_f42d_4c95_7f2d);
        random.next();
        random
    }

    /// A generator of its own for one purpose, so that what is drawn there changes nothing
    /// elsewhere.
    pub(crate) fn fork(&mut self, purpose: u64) -> Random {
        Random::new(self.next() ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not zero.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number from `low` to `high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// A number from `low` to `high`, each power of two as likely as the next.
    pub(crate) fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let low = low.max(1);
        let octaves = u64::from((high.max(low) / low).ilog2());
        let floor = low << self.below(octaves + 1);
        self.between(floor, (floor * 2).min(high.max(floor)))
    }

    /// True once in `times`; never when that is zero.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        times != 0 && self.below(times) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, choice: &[T]) -> T {
        choice[self.index(choice.len())]
    }
}
