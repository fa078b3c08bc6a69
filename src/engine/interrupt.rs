//! Ends a wait in the driver from outside of it. The caller may hold any mutex but the driver's
//! own.

use crate::os::waker::Waker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Interrupts one waiting thread. An interrupt that is set before the thread waits ends its wait at
/// once.
#[derive(Debug)]
pub(crate) struct Interrupt {
    is_set: AtomicBool,
    waker: Arc<Waker>,
}

impl Interrupt {
    pub(crate) fn new(waker: &Arc<Waker>) -> Interrupt {
        Interrupt {
            is_set: AtomicBool::new(false),
            waker: Arc::clone(waker),
        }
    }

    /// Ends the wait, or the next one.
    pub(crate) fn set(&self) {
        // Stored before the driver is woken, which looks for it after that.
        if !self.is_set.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Clears it; true when it was set.
    pub(crate) fn take(&self) -> bool {
        self.is_set.swap(false, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const TURNS: usize = if cfg!(miri) { 4 } else { 200 };

    #[test]
    fn an_interrupt_is_seen_until_it_is_taken() {
        let interrupt = Interrupt::new(&Arc::new(Waker::new().unwrap()));
        assert!(!interrupt.is_set() && !interrupt.take());
        interrupt.set();
        assert!(interrupt.is_set() && interrupt.take());
        assert!(!interrupt.is_set() && !interrupt.take());
    }

    /// The one that finds it set already wakes no thread: what it did before must be seen all the
    /// same.
    #[test]
    fn what_is_done_before_an_interrupt_is_seen_behind_it() {
        let waker = Arc::new(Waker::new().unwrap());
        for _ in 0..TURNS {
            let interrupt = Interrupt::new(&waker);
            let done = [AtomicBool::new(false), AtomicBool::new(false)];
            let mut seen = false;
            let is_done = |done: &AtomicBool| done.load(Ordering::Relaxed);
            thread::scope(|scope| {
                for done in &done {
                    let interrupt = &interrupt;
                    scope.spawn(move || {
                        done.store(true, Ordering::Relaxed);
                        interrupt.set();
                    });
                }
                for _ in 0..3 {
                    if interrupt.take() {
                        seen = done.iter().all(is_done);
                    }
                    thread::yield_now();
                }
            });
            assert!(seen || interrupt.is_set());
        }
    }
}
