//! How a program without channels learns that a lock is lost: by a descriptor that becomes
//! readable, or by a call.
//!
//! The thread that reports the loss does either: the watchdog's, or the one whose extension found
//! it. No thread waits for it.

use super::boundary::calls;
use super::code::Code;
use super::failure::Failure;
use super::guard::{EventFd, GuardHandle};
use super::handle::{Borrowed, Output};
use super::userdata::{ReleaseFn, Userdata};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// `quorumlock_lost`.
type LostFn = extern "C" fn(*mut c_void);

/// The callback and its userdata.
struct LostCallback {
    lost: LostFn,
    userdata: Userdata,
}

impl LostCallback {
    fn run(self) {
        (self.lost)(self.userdata.pointer());
    }
}

calls! {
    fn quorumlock_guard_lost_fd(&guard: GuardHandle, descriptor: Output<c_int>; error) {
        let descriptor = descriptor.required("descriptor")?;
        let event_fd = guard.with(|held| {
            if let Some(event_fd) = guard.event_fd.get() {
                return Ok(Arc::clone(event_fd));
            }
            let event_fd = Arc::new(EventFd::new()?);
            let signalled = Arc::clone(&event_fd);
            held.on_lost(move || signalled.signal())?;
            Ok(Arc::clone(guard.event_fd.get_or_init(|| event_fd)))
        })?;
        descriptor.write(event_fd.descriptor());
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
        let callback = LostCallback {
            lost: lost.ok_or_else(|| Failure::null("lost"))?,
            userdata,
        };
        guard.with(|held| Ok(held.on_lost(move || callback.run())?))?;
        Ok(Code::Ok)
    }
}
