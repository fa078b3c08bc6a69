//! The library's wake-up: ends the poll of the model's driver.

use super::sync::lock;
use crate::wire::Wire;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

pub(crate) struct Waker(Arc<Wire>);

impl Waker {
    pub(crate) fn of(wire: &Arc<Wire>) -> Waker {
        Waker(Arc::clone(wire))
    }

    pub(crate) fn new() -> io::Result<Waker> {
        Ok(Waker(Arc::default()))
    }

    pub(crate) fn is_inherited(&self) -> bool {
        false
    }

    pub(crate) fn wake(&self) {
        lock(&self.0.state).woken = true;
        self.0.to_driver.notify_all();
    }

    pub(crate) fn drain(&self) {
        lock(&self.0.state).woken = false;
    }

    /// The models poll their wire, and no descriptor.
    pub(crate) fn source(&self) -> &BorrowedFd<'_> {
        unreachable!("a model polls no descriptor")
    }
}

impl std::fmt::Debug for Waker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waker")
    }
}
