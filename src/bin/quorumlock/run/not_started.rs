//! How `run` learns that its command was not started: by a pipe, into which the step writes when it
//! cannot become the command. The exit code does not show that: a shell ends with 127 as well.

use super::descriptor::path_of;
use rustix::io::{dup, ioctl_fionbio};
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;

/// The end of `run`.
pub(super) struct NotStarted(PipeReader);

impl NotStarted {
    /// Makes the pipe. The step inherits its other end.
    pub(super) fn pipe() -> io::Result<(NotStarted, OwnedFd)> {
        let (reader, writer) = io::pipe()?;
        // A copy is open in what is started. That may be a command that prints a password too, so
        // nothing waits for the end of the pipe.
        ioctl_fionbio(&reader, true)?;
        Ok((NotStarted(reader), dup(writer)?))
    }

    /// Whether the step, which has ended, has written that.
    pub(super) fn is_written(&self) -> bool {
        matches!((&self.0).read(&mut [0]), Ok(1))
    }
}

/// The end of the step. The command does not inherit it.
pub(super) struct StepEnd(Option<File>);

impl StepEnd {
    /// Takes what the step has inherited.
    pub(super) fn of(descriptor: i32) -> StepEnd {
        // Opened again, it is closed when the step becomes the command. A reader that has ended is
        // not waited for. Without the file the lock stays, as after a command that has run.
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path_of(descriptor));
        let _ = nix::unistd::close(descriptor);
        StepEnd(file.ok())
    }

    pub(super) fn write(self) {
        drop(self.0.map(|mut file| file.write_all(b"!")));
    }
}
