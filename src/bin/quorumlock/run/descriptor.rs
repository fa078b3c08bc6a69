//! Descriptors that this process has inherited, by their numbers.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

/// The first of the descriptors that no program expects to be open.
const AFTER_STANDARD: i32 = 3;

/// Takes over an inherited descriptor that is open for writing: no program that this one executes
/// inherits it, unless it is a standard one. A copy has the position and the settings of what is
/// open, which others may write to as well. To be called before this process has opened anything.
pub(super) fn take(descriptor: i32) -> io::Result<File> {
    if descriptor < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: no other thread is there that could close it, and the number of one that is not open
    // is an error of the system.
    #[expect(unsafe_code, reason = "no safe function duplicates a number")]
    let inherited = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let copy = File::from(inherited.try_clone_to_owned()?);
    // Nothing is written, and what is open for reading alone refuses that.
    rustix::io::write(&copy, &[])?;
    if descriptor >= AFTER_STANDARD {
        nix::unistd::close(descriptor)?;
    }
    Ok(copy)
}
