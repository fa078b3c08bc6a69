//! How `run` learns whether its command was started: by a pipe, into which the step writes when it
//! cannot become the command, or a signal ends it before. It is closed when the step becomes the
//! command. The exit code does not show that: a shell ends with 127 as well.

use rustix::io::{dup, ioctl_fionbio};
use std::io::{self, PipeReader, Read};
use std::os::fd::OwnedFd;

/// Makes the pipe: the end of `run`, and the one that the step inherits.
pub(super) fn pipe() -> io::Result<(PipeReader, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    // A copy is open in what is started. That may be a command that prints a password too, so the
    // end of the pipe may be late, and nothing waits for it.
    ioctl_fionbio(&reader, true)?;
    Ok((reader, dup(writer)?))
}

/// Whether the command was started, once that is known.
pub(super) fn was_started(mut pipe: &PipeReader) -> Option<bool> {
    pipe.read(&mut [0]).ok().map(|written| written == 0)
}
