//! Keeps the library in memory when a program closes it.
//!
//! `dlclose` unmaps code that may still run. When all handles are freed, at most one kind of thread
//! of the library is left: a look-up of a host name cannot be ended, and takes as long as the
//! system's resolver. Threads of the program have destructors of thread-local values to run. And
//! each time that it is loaded, Rust's library takes one of the thousand keys that a process has
//! for such values, and does not give it back. So the library stays loaded. Only code is left:
//! threads, descriptors and memory are freed with the handles.

/// Prevents, once, that this library is unloaded. Where it is part of the program, there is nothing
/// to do.
pub(super) fn no_unload() {
    #[cfg(any(target_os = "linux", target_os = "macos", target_os = "freebsd"))]
    {
        use std::sync::atomic::{AtomicBool, Ordering};
        static IS_PINNED: AtomicBool = AtomicBool::new(false);
        if !IS_PINNED.swap(true, Ordering::Relaxed) {
            mark_no_delete();
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "freebsd"))]
fn mark_no_delete() {
    use std::mem::MaybeUninit;
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: The address belongs to a function of this library, and `found` is a place for the
    // answer.
    if unsafe { libc::dladdr(no_unload as fn() as *const libc::c_void, found.as_mut_ptr()) } == 0 {
        return;
    }
    // SAFETY: `dladdr` has written it, and the name lasts as long as the library. A library that is
    // loaded already is not loaded again: no initialiser runs. Closing what was opened leaves the
    // flag.
    unsafe {
        let library = libc::dlopen(
            found.assume_init().dli_fname,
            libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE,
        );
        if !library.is_null() {
            libc::dlclose(library);
        }
    }
}
