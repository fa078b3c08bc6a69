//! The one way from C into the library and back: no panic passes, and no cancellation of the
//! thread.
//!
//! A panic that reached C would be undefined behaviour, or end the process. Every function does its
//! work in one of these; even what they do afterwards, writing an error, is done so. The macros
//! write what all functions of the header have in common.

use super::cancellation::CancellationDisabled;
use super::code::Code;
use super::failure::{Failure, Result};
use super::handle::{Output, new_handle};
use crate::os::caught::caught;
use std::ops::Deref;
use std::ptr::null;

/// Functions that return a [`Code`], and write an error object if `error` is their last parameter.
/// One with `new` writes the handle of what its block makes. `&handle: Content` is a handle and
/// `*text[length]` a text, of which none may be NULL.
macro_rules! calls {
    () => {};
    (
        fn $name:ident(
            $($parameter:ident: $type:ty),*; new $made:ident: $content:ty $(; $error:ident)?
        ) $body:block
        $($others:tt)*
    ) => {
        super::boundary::calls! {
            fn $name(
                $($parameter: $type,)* $made: super::handle::Output<*const $content>
                $(; $error)?
            ) {
                let made = $made.required(stringify!($made))?;
                made.write_handle($body);
                Ok(super::code::Code::Ok)
            }
            $($others)*
        }
    };
    (
        fn $name:ident($($parameter:ident: $type:ty),* $(; $error:ident)?) $body:block
        $($others:tt)*
    ) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            $($parameter: $type,)*
            $($error: super::handle::Output<*const super::failure::Failure>)?
        ) -> super::code::Code {
            super::boundary::call([$($error)?], || $body)
        }
        super::boundary::calls! { $($others)* }
    };
    (
        fn $name:ident(
            $(
                $(&$handle:ident: $content:ident)?
                $(*$text:ident[$length:ident])?
                $($parameter:ident: $type:ty)?
            ),*
            $(; $($results:tt)*)?
        ) $body:block
        $($others:tt)*
    ) => {
        super::boundary::calls! {
            fn $name(
                $(
                    $($handle: super::handle::Borrowed<$content>)?
                    $($text: super::text::Bytes, $length: usize)?
                    $($parameter: $type)?
                ),*
                $(; $($results)*)?
            ) {
                $(
                    $(let $handle = $handle.required(stringify!($handle))?;)?
                    $(let $text = $text.text($length, stringify!($text))?;)?
                )*
                $body
            }
            $($others)*
        }
    };
}

/// Functions that return a part of what their first argument leads to: zero or empty for NULL.
macro_rules! parts {
    ($pointer:ty: $(
        $name:ident($($parameter:ident: $type:ty),*) -> $part:ty = $read:expr;
    )*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(pointer: $pointer $(, $parameter: $type)*) -> $part {
            super::boundary::part(|| pointer.optional(), $read)
        }
    )*};
}

/// Functions that take a handle back.
macro_rules! frees {
    ($($name:ident($content:ty);)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(handle: super::handle::Returned<$content>) {
            super::boundary::call_or((), || handle.take().map(drop));
        }
    )*};
}

pub(super) use {calls, frees, parts};

/// Runs a function that can fail, and whose code is the reason. Writes an error object, if there
/// is a place for it.
pub(super) fn call<const N: usize>(
    errors: [Output<*const Failure>; N],
    body: impl FnOnce() -> Result<Code>,
) -> Code {
    let _uncancelled = CancellationDisabled::new();
    let failure = match run(body) {
        Ok(code) => return code,
        Err(failure) => failure,
    };
    let code = failure.code;
    if !code.is_answer() {
        let error = errors.into_iter().find_map(Output::optional);
        caught(|| error.map(|error| error.write_handle(failure)));
    }
    code
}

/// Runs a function that returns a value; `otherwise` if it has none or panics.
pub(super) fn call_or<R>(otherwise: R, body: impl FnOnce() -> Option<R>) -> R {
    let _uncancelled = CancellationDisabled::new();
    caught(body).flatten().unwrap_or(otherwise)
}

/// Runs a function that makes what a new handle leads to; NULL if it cannot.
pub(super) fn new_or_null<T: Send + Sync + 'static>(body: impl FnOnce() -> Option<T>) -> *const T {
    call_or(null(), || body().map(new_handle))
}

/// Reads a part of what a pointer leads to.
pub(super) fn part<P: Deref, R: Default>(
    pointer: impl FnOnce() -> Option<P>,
    read: impl FnOnce(&P::Target) -> R,
) -> R {
    call_or(R::default(), || pointer().map(|content| read(&content)))
}

fn run(body: impl FnOnce() -> Result<Code>) -> Result<Code> {
    caught(body).unwrap_or_else(|| Err(Failure::plain(Code::Panic)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::handle::Returned;
    use crate::os::caught::tests::PanicsWhenDropped;
    use std::ptr::null_mut;
    use std::sync::Arc;

    fn taken_back(error: *const Failure) -> Failure {
        Arc::into_inner(Returned::of(error).take().unwrap()).unwrap()
    }

    #[test]
    fn no_panic_passes() {
        for _ in 0..2 {
            assert_eq!(call([], || panic!("on purpose")), Code::Panic);
            assert_eq!(
                call([], || std::panic::panic_any(PanicsWhenDropped)),
                Code::Panic
            );
            assert_eq!(call_or(3, || panic!("on purpose")), 3);
            assert_eq!(
                call([Output::to(null_mut())], || panic!("on purpose")),
                Code::Panic
            );
        }
    }

    #[test]
    fn an_error_is_written_for_failures_and_not_for_answers() {
        for &code in Code::ALL {
            let mut error: *const Failure = null();
            assert_eq!(
                call([Output::to(&raw mut error)], || Err(Failure::plain(code))),
                code
            );
            assert_eq!(error.is_null(), code.is_answer(), "{code:?}");
            if !error.is_null() {
                assert_eq!(taken_back(error).code, code);
            }
            assert_eq!(call([Output::to(&raw mut error)], || Ok(code)), code);
        }
    }

    #[test]
    fn a_panic_has_its_error() {
        let mut error: *const Failure = null();
        assert_eq!(
            call([Output::to(&raw mut error)], || panic!("on purpose")),
            Code::Panic
        );
        assert_eq!(taken_back(error).message, "a bug in quorumlock");
    }
}
