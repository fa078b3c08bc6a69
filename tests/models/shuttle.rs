//! Stands for the scheduler of this name where Miri runs a model: threads, locks and atomic
//! variables are the standard library's. Miri chooses the order of steps, and which of the values
//! that are allowed a load returns. A scene runs once, and again with each seed of Miri's.

pub(crate) use std::{sync, thread};

/// Runs the scene once.
pub(crate) fn check_random(scene: impl Fn(), _schedules: usize) {
    scene();
}

/// As [`check_random`]: Miri draws in one way.
pub(crate) fn check_pct(scene: impl Fn(), schedules: usize, _depth: usize) {
    check_random(scene, schedules);
}

pub(crate) mod rand {
    use std::hash::{BuildHasher, RandomState};
    use std::ops::Range;

    pub(crate) struct ThreadRng;

    pub(crate) fn thread_rng() -> ThreadRng {
        ThreadRng
    }

    pub(crate) trait Rng {
        fn gen_range(&mut self, range: Range<usize>) -> usize;
        fn gen_bool(&mut self, probability: f64) -> bool;
    }

    impl Rng for ThreadRng {
        /// From Miri's seed.
        fn gen_range(&mut self, range: Range<usize>) -> usize {
            let number = RandomState::new().hash_one(()) as usize;
            range.start + number % range.len()
        }

        fn gen_bool(&mut self, probability: f64) -> bool {
            let number = self.gen_range(0..1000);
            (number as f64) < probability * 1000.0
        }
    }
}
