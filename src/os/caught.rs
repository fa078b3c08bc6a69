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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What a panic is thrown with, and panics again.
    pub(crate) struct PanicsWhenDropped;

    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("it panics when it is dropped");
        }
    }

    #[test]
    fn no_payload_of_a_panic_passes() {
        assert_eq!(caught(|| 7), Some(7));
        assert_eq!(
            caught(|| std::panic::panic_any(PanicsWhenDropped)),
            None::<()>
        );
    }
}
