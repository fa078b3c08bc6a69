//! Descriptors that a process has inherited, as files to be opened again: what is opened so is
//! closed when the process executes another program.

use std::fmt::Display;

/// The path of an open descriptor of this process.
pub(super) fn path_of(descriptor: impl Display) -> String {
    // On Linux the other one is a link to this, and may be missing.
    let folder = if cfg!(target_os = "linux") {
        "/proc/self/fd"
    } else {
        "/dev/fd"
    };
    format!("{folder}/{descriptor}")
}
