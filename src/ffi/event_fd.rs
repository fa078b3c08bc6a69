//! What becomes readable when a lock is lost: a descriptor for event loops.
//!
//! It is one end of a pair of sockets. Both ends last as long as the guard's handle and the thread
//! that writes: so only a loss makes it readable, and no thread writes to a closed descriptor.

use super::code::Code;
use super::failure::{Failure, Result};
use crate::os::waker::Waker;
use std::ffi::c_int;

/// What becomes readable when a lock is lost.
pub(super) struct EventFd(Waker);

impl EventFd {
    #[cfg(unix)]
    pub(super) fn new() -> Result<EventFd> {
        let failure = |error: std::io::Error| {
            Failure::new(
                Code::Unavailable,
                format!("cannot open a descriptor: {error}"),
            )
        };
        Waker::new().map(EventFd).map_err(failure)
    }

    #[cfg(not(unix))]
    pub(super) fn new() -> Result<EventFd> {
        Err(Failure::plain(Code::Unsupported))
    }

    /// Makes it readable, for good.
    pub(super) fn signal(&self) {
        self.0.wake();
    }

    /// What to poll.
    #[cfg(unix)]
    pub(super) fn descriptor(&self) -> c_int {
        use rustix::fd::{AsFd, AsRawFd};
        self.0.source().as_fd().as_raw_fd()
    }

    #[cfg(not(unix))]
    pub(super) fn descriptor(&self) -> c_int {
        -1
    }
}
