//! Calls of functions of the program, whose panics end here.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls a function. None: it panicked.
pub(crate) fn caught<R>(call: impl FnOnce() -> R) -> Option<R> {
    let result = catch_unwind(AssertUnwindSafe(call));
    let result = result.map_err(|panic| {
        if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            // The payload panics when it is dropped, and its own payload may do the same: it is
            // leaked.
            std::mem::forget(another);
        }
    });
    result.ok()
}
