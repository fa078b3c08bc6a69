//! Pointers from C, as types that state whose they are. Nearly all of the unsafe code is here, and
//! why it is sound.
//!
//! ```text
//!   quorumlock_guard *guard, in a call     Borrowed<GuardHandle>          counted once more for the call
//!   quorumlock_guard *guard, in a _free    Returned<GuardHandle>          taken back
//!   quorumlock_guard **guard               Output<*const GuardHandle>     NonNullOutput, if not NULL; written once
//!   const quorumlock_event *event          View<EventObject>              lasts as the header states
//! ```
//!
//! Outside of this file only C makes such values, in calls of the functions with `no_mangle`. What
//! the header demands of C is what makes the unsafe code sound: a pointer is NULL, or what the
//! library handed out for its type and was not given back. Any thread may pass it: what can be
//! handed out is `Send` and `Sync`.

use super::failure::{Failure, Result};
use std::ptr::NonNull;
use std::sync::Arc;

/// A handle that C keeps, for the time of a call.
#[repr(transparent)]
pub(super) struct Borrowed<T>(*const T);

impl<T> Borrowed<T> {
    /// The content, for as long as the call needs it: if C frees the handle meanwhile, until then.
    pub(super) fn required(&self, argument: &str) -> Result<Arc<T>> {
        self.optional().ok_or_else(|| Failure::null(argument))
    }

    /// None for NULL.
    pub(super) fn optional(&self) -> Option<Arc<T>> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: It came from `Arc::into_raw` in `NonNullOutput::write_handle` or `new_handle`,
        // for the same type, as the header has one type of handle for one of content. It was not
        // given back, so C's own count keeps it alive now; a program that frees it while this runs
        // breaks convention 1.
        unsafe {
            Arc::increment_strong_count(self.0);
            Some(Arc::from_raw(self.0))
        }
    }
}

/// A handle that C hands back.
#[repr(transparent)]
pub(super) struct Returned<T>(*const T);

impl<T> Returned<T> {
    /// C's own count of it. None for NULL.
    pub(super) fn take(self) -> Option<Arc<T>> {
        // SAFETY: As in `Borrowed::optional`; and as C hands a handle back once, its count is taken
        // back once.
        (!self.0.is_null()).then(|| unsafe { Arc::from_raw(self.0) })
    }

    #[cfg(test)]
    pub(super) fn of(handle: *const T) -> Returned<T> {
        Returned(handle)
    }
}

/// Where C wants something written.
#[repr(transparent)]
pub(super) struct Output<T>(*mut T);

impl<T> Output<T> {
    pub(super) fn required(self, argument: &str) -> Result<NonNullOutput<T>> {
        self.optional().ok_or_else(|| Failure::null(argument))
    }

    /// None for NULL.
    pub(super) fn optional(self) -> Option<NonNullOutput<T>> {
        NonNull::new(self.0).map(NonNullOutput)
    }

    #[cfg(test)]
    pub(super) fn to(target: *mut T) -> Output<T> {
        Output(target)
    }
}

/// A place that is there, and is written once or not at all.
pub(super) struct NonNullOutput<T>(NonNull<T>);

impl<T> NonNullOutput<T> {
    pub(super) fn write(self, value: T) {
        // SAFETY: The header demands a place for a value of this type, which the caller of this
        // very call keeps. What is there may be uninitialised: it is neither read nor dropped.
        unsafe { self.0.write(value) }
    }
}

impl<T: Send + Sync + 'static> NonNullOutput<*const T> {
    /// Hands out a new handle.
    pub(super) fn write_handle(self, content: T) {
        self.write(new_handle(content));
    }
}

/// A new handle, C's to give back, on whatever thread.
pub(super) fn new_handle<T: Send + Sync + 'static>(content: T) -> *const T {
    Arc::into_raw(Arc::new(content))
}

/// Something of the library's that C is shown.
#[repr(transparent)]
pub(super) struct View<T>(*const T);

impl<T> Default for View<T> {
    fn default() -> View<T> {
        View(std::ptr::null())
    }
}

impl<T: Sync> View<T> {
    /// NULL for none.
    pub(super) fn of(content: Option<&T>) -> View<T> {
        content.map_or_else(View::default, |content| View(content))
    }

    /// None for NULL.
    pub(super) fn optional(&self) -> Option<&T> {
        // SAFETY: It was made from a reference, and what it leads to lasts as long as the header
        // states: until the callback returns, or the handle that it was asked of is given back. It
        // is not changed meanwhile.
        unsafe { self.0.as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::{null, null_mut};

    #[test]
    fn a_handle_lasts_until_its_last_call_has_ended() {
        let content = Arc::new(5);
        let handle = new_handle(Arc::clone(&content));
        let lent = Borrowed(handle).required("number").unwrap();
        assert_eq!(Arc::strong_count(&content), 2);
        drop(Returned(handle).take());
        assert_eq!((Arc::strong_count(&content), **lent), (2, 5));
        drop(lent);
        assert_eq!(Arc::strong_count(&content), 1);
    }

    #[test]
    fn null_is_noticed() {
        assert!(
            Borrowed::<u8>(null()).optional().is_none() && Returned::<u8>(null()).take().is_none()
        );
        assert_eq!(
            Borrowed::<u8>(null())
                .required("guard")
                .unwrap_err()
                .message,
            "guard is NULL"
        );
        assert_eq!(
            Output::<u8>(null_mut())
                .required("guard")
                .map(drop)
                .unwrap_err()
                .message,
            "guard is NULL"
        );
        assert!(View::<u8>(null()).optional().is_none());
        let mut number = 0;
        Output(&raw mut number).required("number").unwrap().write(7);
        assert_eq!((number, View(&raw const number).optional()), (7, Some(&7)));
    }
}
