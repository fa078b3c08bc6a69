//! Ending waits from another thread.

use super::boundary::{call_or, calls, frees, parts};
use super::code::Code;
use super::handle::{Borrowed, new_handle};
use crate::CancelHandle;
use std::ffi::c_int;
use std::ptr::null;

/// `quorumlock_cancel_handle`.
pub(super) struct CancelObject(pub(super) CancelHandle);

#[unsafe(no_mangle)]
extern "C" fn quorumlock_cancel_handle_new() -> *const CancelObject {
    call_or(null(), || {
        Some(new_handle(CancelObject(CancelHandle::new())))
    })
}

frees! { quorumlock_cancel_handle_free(CancelObject); }

parts! { Borrowed<CancelObject>:
    quorumlock_cancel_handle_is_cancelled() -> c_int = |cancel| cancel.0.is_cancelled().into();
}

calls! {
    fn quorumlock_cancel_handle_cancel(cancel: Borrowed<CancelObject>) {
        cancel.required("cancel")?.0.cancel();
        Ok(Code::Ok)
    }
}
