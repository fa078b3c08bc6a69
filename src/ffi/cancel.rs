//! Ending waits from another thread.

use super::boundary::{calls, frees, new_or_null, parts};
use super::code::Code;
use super::handle::Borrowed;
use crate::CancelHandle;
use std::ffi::c_int;

#[unsafe(no_mangle)]
extern "C" fn quorumlock_cancel_handle_new() -> *const CancelHandle {
    new_or_null(|| Some(CancelHandle::new()))
}

frees! { quorumlock_cancel_handle_free(CancelHandle); }

parts! { Borrowed<CancelHandle>:
    quorumlock_cancel_handle_is_cancelled() -> c_int = |cancel| cancel.is_cancelled().into();
}

calls! {
    fn quorumlock_cancel_handle_cancel(&cancel: CancelHandle) {
        cancel.cancel();
        Ok(Code::Ok)
    }
}
