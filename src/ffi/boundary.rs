//! The one way from C into the library and back: no panic passes, and no cancellation of the
//! thread.
//!
//! A panic that reached C would be undefined behaviour, or end the process. Every function does its
//! work in one of these; even what they do afterwards, writing an error, is done so.

use super::cancellation::CancellationDisabled;
use super::code::Code;
use super::error_object::ErrorObject;
use super::failure::{Failure, Result};
use super::handle::Output;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a function that can fail and writes an error object.
pub(super) fn call_with_error(
    error: Output<*const ErrorObject>,
    body: impl FnOnce() -> Result<Code>,
) -> Code {
    let _uncancelled = CancellationDisabled::new();
    let failure = match run(body) {
        Ok(code) => return code,
        Err(failure) => failure,
    };
    let code = failure.code;
    if !code.is_answer() {
        caught(|| {
            error
                .optional()
                .map(|error| error.write_handle(ErrorObject::new(failure)))
        });
    }
    code
}

/// Runs a function that can fail, and whose code is the reason.
pub(super) fn call(body: impl FnOnce() -> Result<Code>) -> Code {
    let _uncancelled = CancellationDisabled::new();
    run(body).unwrap_or_else(|failure| failure.code)
}

/// Runs a function that returns a value; `otherwise` if it has none or panics.
pub(super) fn call_or<R>(otherwise: R, body: impl FnOnce() -> Option<R>) -> R {
    let _uncancelled = CancellationDisabled::new();
    caught(body).flatten().unwrap_or(otherwise)
}

fn run(body: impl FnOnce() -> Result<Code>) -> Result<Code> {
    caught(body).unwrap_or_else(|| Err(Failure::plain(Code::Panic)))
}

/// None when it panicked.
fn caught<R>(body: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => Some(value),
        Err(panic) => {
            if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
                // What was thrown throws again when it goes. It stays.
                std::mem::forget(another);
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::{null, null_mut};

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("it panics when it is dropped");
        }
    }

    #[test]
    fn no_panic_passes() {
        for _ in 0..2 {
            assert_eq!(call(|| panic!("on purpose")), Code::Panic);
            assert_eq!(call(|| std::panic::panic_any(Bomb)), Code::Panic);
            assert_eq!(call_or(3, || panic!("on purpose")), 3);
            assert_eq!(
                call_with_error(Output::to(null_mut()), || panic!("on purpose")),
                Code::Panic
            );
        }
    }

    #[test]
    fn an_error_is_written_for_failures_and_not_for_answers() {
        for code in Code::ALL {
            let mut error: *const ErrorObject = null();
            assert_eq!(
                call_with_error(Output::to(&raw mut error), || Err(Failure::plain(code))),
                code
            );
            assert_eq!(error.is_null(), code.is_answer(), "{code:?}");
            if !error.is_null() {
                assert_eq!(ErrorObject::take_back(error).code, code);
            }
            assert_eq!(
                call_with_error(Output::to(&raw mut error), || Ok(code)),
                code
            );
        }
    }

    #[test]
    fn a_panic_has_its_error() {
        let mut error: *const ErrorObject = null();
        assert_eq!(
            call_with_error(Output::to(&raw mut error), || panic!("on purpose")),
            Code::Panic
        );
        assert_eq!(ErrorObject::take_back(error).message, "a bug in quorumlock");
    }
}
