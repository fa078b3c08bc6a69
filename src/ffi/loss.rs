//! How a program without channels learns that a lock is lost: by a descriptor that becomes readable, or by a call.
//!
//! The thread that reports the loss does either: the watchdog's, or the one whose extension found it. No thread waits
//! for it.

use super::alarm::Alarm;
use super::boundary::enter;
use super::code::Code;
use super::failure::Failure;
use super::guard::Guard;
use super::handle::{Lent, Output};
use super::report::Report;
use super::userdata::{Release, Userdata};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// `quorumlock_lost`.
type Callback = extern "C" fn(*mut c_void);

/// The callback and its userdata.
struct Call {
    lost: Callback,
    userdata: Userdata,
}

impl Call {
    fn make(self) {
        (self.lost)(self.userdata.pointer());
    }
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_lost_fd(
    guard: Lent<Guard>,
    descriptor: Output<c_int>,
    error: Output<*const Report>,
) -> Code {
    enter(error, || {
        let guard = guard.content("guard")?;
        let descriptor = descriptor.required("descriptor")?;
        let alarm = guard.with(|held| {
            if let Some(alarm) = guard.alarm.get() {
                return Ok(Arc::clone(alarm));
            }
            let alarm = Arc::new(Alarm::new()?);
            let rung = Arc::clone(&alarm);
            held.on_lost(move || rung.ring())?;
            Ok(Arc::clone(guard.alarm.get_or_init(|| alarm)))
        })?;
        descriptor.write(alarm.descriptor());
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_guard_on_lost(
    guard: Lent<Guard>,
    lost: Option<Callback>,
    userdata: *mut c_void,
    release: Release,
    error: Output<*const Report>,
) -> Code {
    enter(error, || {
        // Ours from here on, also if this fails.
        let userdata = Userdata::new(userdata, release);
        let guard = guard.content("guard")?;
        let call = Call { lost: lost.ok_or_else(|| Failure::null("lost"))?, userdata };
        guard.with(|held| Ok(held.on_lost(move || call.make())?))?;
        Ok(Code::Ok)
    })
}
