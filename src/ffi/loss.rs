//! How a program without channels learns that a lock is lost: by a descriptor that becomes
//! readable, or by a call.
//!
//! The thread that reports the loss does either: the watchdog's, or the one whose extension found
//! it. No thread waits for it.

use super::boundary::calls;
use super::code::Code;
use super::failure::{Failure, Result};
use super::guard::GuardHandle;
use super::handle::{Borrowed, Output};
use super::userdata::{ReleaseFn, Userdata};
use crate::os::waker::Waker;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// `quorumlock_lost`.
type LostFn = extern "C" fn(*mut c_void);

/// What a loss makes readable, for good.
fn new_waker() -> Result<Waker> {
    if cfg!(not(unix)) {
        return Err(Failure::plain(Code::Unsupported));
    }
    Waker::new().map_err(|error| {
        let message = format!("cannot open a descriptor: {error}");
        Failure::new(Code::Unavailable, message)
    })
}

/// What to poll.
#[cfg(unix)]
fn descriptor_of(lost: &Waker) -> c_int {
    use rustix::fd::{AsFd, AsRawFd};
    lost.source().as_fd().as_raw_fd()
}

#[cfg(not(unix))]
fn descriptor_of(_: &Waker) -> c_int {
    -1
}

calls! {
    fn quorumlock_guard_lost_fd(&guard: GuardHandle, descriptor: Output<c_int>; error) {
        let descriptor = descriptor.required("descriptor")?;
        let lost = guard.with(|held| {
            if let Some(lost) = guard.lost.get() {
                return Ok(Arc::clone(lost));
            }
            let lost = Arc::new(new_waker()?);
            let signalled = Arc::clone(&lost);
            held.on_lost(move || signalled.wake())?;
            Ok(Arc::clone(guard.lost.get_or_init(|| lost)))
        })?;
        descriptor.write(descriptor_of(&lost));
        Ok(Code::Ok)
    }

    fn quorumlock_guard_on_lost(
        guard: Borrowed<GuardHandle>,
        lost: Option<LostFn>,
        userdata: *mut c_void,
        release: ReleaseFn;
        error
    ) {
        // Owned from here on: it is released also if this fails.
        let userdata = Userdata::new(userdata, release);
        let guard = guard.required("guard")?;
        let lost = lost.ok_or_else(|| Failure::null("lost"))?;
        guard.with(|held| Ok(held.on_lost(move || lost(userdata.pointer()))?))?;
        Ok(Code::Ok)
    }
}
