//! Ending waits from another thread.

use super::boundary::{tell, value};
use super::code::Code;
use super::handle::{Lent, Returned, hand_out};
use crate::CancelHandle;
use std::ffi::c_int;
use std::ptr::null;

/// `quorumlock_cancel_handle`.
pub(super) struct Cancel {
    pub(super) handle: CancelHandle,
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_cancel_handle_new() -> *const Cancel {
    value(null(), || Some(hand_out(Cancel { handle: CancelHandle::new() })))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_cancel_handle_free(cancel: Returned<Cancel>) {
    value((), || cancel.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_cancel_handle_cancel(cancel: Lent<Cancel>) -> Code {
    tell(|| {
        cancel.content("cancel")?.handle.cancel();
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_cancel_handle_is_cancelled(cancel: Lent<Cancel>) -> c_int {
    value(0, || Some(cancel.optional()?.handle.is_cancelled().into()))
}
