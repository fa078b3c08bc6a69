//! Which thread is which.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of a thread. The system reuses the identity of a thread that has ended for a new one;
/// this number is never given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadNumber(NonZeroU64);

impl ThreadNumber {
    /// The number of this thread. Allocates nothing.
    pub(crate) fn current() -> ThreadNumber {
        static LAST: AtomicU64 = AtomicU64::new(0);
        thread_local! {
            static NUMBER: ThreadNumber =
                ThreadNumber(NonZeroU64::MIN.saturating_add(LAST.fetch_add(1, Ordering::Relaxed)));
        }
        NUMBER.with(|number| *number)
    }

    /// Its last digits, for what has no room for more. Zero at times, and after four billion
    /// threads those of another one.
    pub(crate) fn short(self) -> u32 {
        self.0.get() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_number_stays_with_its_thread_and_is_not_given_again() {
        let mine = ThreadNumber::current();
        assert_eq!(mine, ThreadNumber::current());
        // One after the other, so that the system may give the same identity to both.
        let others = [(); 2].map(|()| thread::spawn(ThreadNumber::current).join().unwrap());
        assert!(others[0] != others[1] && !others.contains(&mine));
    }
}
