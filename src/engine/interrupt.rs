//! Ends a wait in the relay from outside of it: by whoever may hold any mutex but the relay's own.

use crate::os::waker::Waker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rings one waiting thread, which looks then what it is about. What is rung before the thread waits ends its wait at once.
#[derive(Debug)]
pub(crate) struct Interrupt {
    is_rung: AtomicBool,
    waker: Arc<Waker>,
}

impl Interrupt {
    pub(crate) fn new(waker: &Arc<Waker>) -> Interrupt {
        Interrupt { is_rung: AtomicBool::new(false), waker: Arc::clone(waker) }
    }

    /// Ends the wait, or the next one.
    pub(crate) fn ring(&self) {
        // Stored before the driver is woken, who looks for it after that.
        if !self.is_rung.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    pub(crate) fn is_rung(&self) -> bool {
        self.is_rung.load(Ordering::Acquire)
    }

    /// Forgets that it was rung; true when it was.
    pub(crate) fn take(&self) -> bool {
        self.is_rung.swap(false, Ordering::AcqRel)
    }
}
