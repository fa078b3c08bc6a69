//! Ending waits from another thread.

use super::boundary::{call, call_or};
use super::code::Code;
use super::handle::{Borrowed, Returned, new_handle};
use crate::CancelHandle;
use std::ffi::c_int;
use std::ptr::null;

/// `quorumlock_cancel_handle`.
pub(super) struct CancelObject {
    pub(super) handle: CancelHandle,
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_cancel_handle_new() -> *const CancelObject {
    call_or(null(), || {
        Some(new_handle(CancelObject {
            handle: CancelHandle::new(),
        }))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_cancel_handle_free(cancel: Returned<CancelObject>) {
    call_or((), || cancel.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_cancel_handle_cancel(cancel: Borrowed<CancelObject>) -> Code {
    call(|| {
        cancel.required("cancel")?.handle.cancel();
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_cancel_handle_is_cancelled(cancel: Borrowed<CancelObject>) -> c_int {
    call_or(0, || Some(cancel.optional()?.handle.is_cancelled().into()))
}
