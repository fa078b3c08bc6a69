//! The userdata of a callback, and its release.

use std::ffi::c_void;

/// `quorumlock_release`, which may be NULL.
pub(super) type ReleaseFn = Option<extern "C" fn(*mut c_void)>;

/// A pointer that is handed to a callback unchanged. It is released once, after its last use.
pub(super) struct Userdata {
    pointer: *mut c_void,
    release: ReleaseFn,
}

impl Userdata {
    pub(super) fn new(pointer: *mut c_void, release: ReleaseFn) -> Userdata {
        Userdata { pointer, release }
    }

    pub(super) fn pointer(&self) -> *mut c_void {
        self.pointer
    }
}

// SAFETY: The library does nothing with the pointer but hand it to functions of the program, and
// the header states that they are called on any thread.
unsafe impl Send for Userdata {}
// SAFETY: As above; and that observers are called on several threads at once.
unsafe impl Sync for Userdata {}

impl Drop for Userdata {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            release(self.pointer);
        }
    }
}
