//! The library's waker: what makes a simulated poll end.

use crate::kernel::{self, Reason};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug)]
pub(crate) struct Waker {
    is_woken: AtomicBool,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Waker> {
        Ok(Waker {
            is_woken: AtomicBool::new(false),
        })
    }

    pub(crate) fn is_inherited(&self) -> bool {
        false
    }

    pub(crate) fn wake(&self) {
        self.is_woken.store(true, Ordering::Relaxed);
        kernel::wake(&Reason::Waker(self.place()), usize::MAX);
    }

    pub(crate) fn drain(&self) {
        self.is_woken.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_woken(&self) -> bool {
        self.is_woken.load(Ordering::Relaxed)
    }

    pub(crate) fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}
