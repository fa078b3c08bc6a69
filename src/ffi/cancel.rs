//! Ending waits from another thread.

use super::boundary::{calls, frees, new_or_null, parts};
use super::code::Code;
use super::handle::Borrowed;
use crate::CancelHandle;
use std::ffi::c_int;

/// `quorumlock_cancel_handle`.
pub(super) struct CancelObject(pub(super) CancelHandle);

#[unsafe(no_mangle)]
extern "C" fn quorumlock_cancel_handle_new() -> *const CancelObject {
    new_or_null(|| Some(CancelObject(CancelHandle::new())))
}

frees! { quorumlock_cancel_handle_free(CancelObject); }

parts! { Borrowed<CancelObject>:
    quorumlock_cancel_handle_is_cancelled() -> c_int = |cancel| cancel.0.is_cancelled().into();
}

calls! {
    fn quorumlock_cancel_handle_cancel(&cancel: CancelObject) {
        cancel.0.cancel();
        Ok(Code::Ok)
    }
}
