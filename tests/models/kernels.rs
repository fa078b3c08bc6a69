//! The code that relies on the order in which threads see atomic variables, for Miri: the library's
//! own files with their unit tests, in a program that is small enough to start with many seeds.
//!
//! `tests/miri` names the tests. The ordinary ones of the library include them, on a processor that
//! may be stronger than what the language permits.
//!
//! Faults that were planted in the library to see a test fail, and belong to it: `Relaxed` where
//! [`os::sync::ForkSafeSpinLock`] is taken or left, where the clock notes what it has gained or
//! looks for it, where an interrupt is set, and where a shutdown begins.

#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::unwrap_used,
    reason = "a test, and it uses a part of what it includes"
)]

use quorumlock::algorithm;

#[path = "../../src/api"]
mod api {
    pub(crate) mod shutdown {
        pub(crate) mod state;
    }
}

#[path = "../../src/engine"]
mod engine {
    pub(crate) mod interrupt;

    pub(crate) mod watchdog_thread {
        pub(crate) const CLOCK_CHECK_INTERVAL: std::time::Duration = std::time::Duration::MAX;
    }
}

#[path = "../../src/os"]
mod os {
    pub(crate) mod clock;
    pub(crate) mod fork;
    pub(crate) mod sync;

    /// Wakes no thread, and orders nothing: what an interrupt promises does not depend on it.
    pub(crate) mod waker {
        #[derive(Debug)]
        pub(crate) struct Waker;

        impl Waker {
            pub(crate) fn new() -> std::io::Result<Waker> {
                Ok(Waker)
            }

            pub(crate) fn wake(&self) {}
        }
    }
}
