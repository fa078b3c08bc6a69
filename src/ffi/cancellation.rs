//! `pthread_cancel` of a thread that is in a call: it takes effect after the call.
//!
//! Cancellation unwinds the stack of the thread from wherever it waits. Through Rust that is
//! undefined, and ends the process: the C library aborts where its unwinding is stopped. So the
//! thread cannot be cancelled while it is in here. A request that comes meanwhile is kept, and
//! acted upon at the program's next cancellation point.
//!
//! This is so where cancellation is deferred, as it is by default. With PTHREAD_CANCEL_ASYNCHRONOUS
//! a thread may call nothing but three functions of POSIX.

#[cfg(target_os = "linux")]
use std::ffi::c_int;

#[cfg(target_os = "linux")]
unsafe extern "C" {
    /// Not in the `libc` crate for Linux.
    fn pthread_setcancelstate(state: c_int, previous: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE`, in glibc and in musl.
#[cfg(target_os = "linux")]
const DISABLE: c_int = 1;

/// While it is there, the thread is not cancelled. What was so before is so again afterwards.
pub(super) struct CancellationDisabled {
    /// Not another thread's.
    _thread: std::marker::PhantomData<*const ()>,
    #[cfg(target_os = "linux")]
    previous: c_int,
}

impl CancellationDisabled {
    #[cfg(target_os = "linux")]
    pub(super) fn new() -> CancellationDisabled {
        let mut previous = DISABLE;
        // SAFETY: It changes a flag of this thread, and writes the old one to a place that lasts as
        // long as the call. Both states are valid, so it does not fail.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut previous) };
        CancellationDisabled {
            _thread: std::marker::PhantomData,
            previous,
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn new() -> CancellationDisabled {
        CancellationDisabled {
            _thread: std::marker::PhantomData,
        }
    }
}

#[cfg(target_os = "linux")]
impl Drop for CancellationDisabled {
    fn drop(&mut self) {
        let mut disabled: c_int = 0;
        // SAFETY: As above; the C library returned this state. With deferred cancellation the call
        // itself does not act upon a request.
        unsafe { pthread_setcancelstate(self.previous, &raw mut disabled) };
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn state() -> c_int {
        CancellationDisabled::new().previous
    }

    #[test]
    fn what_was_so_before_is_so_again() {
        let before = state();
        assert_ne!(before, DISABLE);
        let outer = CancellationDisabled::new();
        {
            let _inner = CancellationDisabled::new();
            assert_eq!(state(), DISABLE);
        }
        assert_eq!(state(), DISABLE);
        drop(outer);
        assert_eq!(state(), before);
    }
}
