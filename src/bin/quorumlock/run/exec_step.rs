//! What this program is in the process of a child, until it becomes the command.
//!
//! `run` starts itself with [`EXEC_STEP`]. The step asks the kernel to end it when `run` ends, and
//! stops itself. `run` sees that, looks at its signals and its lease for the last time, and lets it
//! continue, or kills it. A process that waits at this gate has not become the command yet, so a
//! signal or a loss that is found there starts nothing.

use super::descriptor::take;
use super::signals;
use crate::exit::{self, Exit};
use crate::report;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The word that makes this program the step. No command has this name.
pub(crate) const EXEC_STEP: &str = "__exec-step";

/// Becomes the command: `parent`, the descriptor where it writes that it cannot, the program, its
/// arguments. Comes back only to end.
pub(crate) fn exec_step(mut words: impl Iterator<Item = OsString>) -> Exit {
    let mut number = || {
        words
            .next()
            .and_then(|word| word.to_str()?.parse::<i32>().ok())
    };
    let parent = number();
    // Without it the lock stays, as after a command that has run.
    let not_started = number().and_then(|descriptor| take(descriptor).ok());
    let Some(program) = words.next() else {
        return exit::USAGE;
    };
    if let Some(not_started) = &not_started {
        signals::write_at_end(not_started.as_raw_fd());
    }
    let exit = become_command(parent, &program, words);
    drop(not_started.map(|mut file| file.write_all(b"!")));
    exit
}

/// Executes the program, when the gate opens. Comes back only if it cannot.
fn become_command(
    parent: Option<i32>,
    program: &OsStr,
    arguments: impl Iterator<Item = OsString>,
) -> Exit {
    if let Err(error) = signals::unblock().and_then(|()| wait_at_gate(parent)) {
        report::complain(&format!("cannot tie the command to this program: {error}"));
        return exit::SYSTEM;
    }
    let error = Command::new(program).args(arguments).exec();
    report::complain(&format!(
        "cannot run {}: {error}",
        program.to_string_lossy()
    ));
    if error.kind() == io::ErrorKind::NotFound {
        exit::NOT_FOUND
    } else {
        exit::NOT_EXECUTABLE
    }
}

#[cfg(target_os = "linux")]
fn wait_at_gate(parent: Option<i32>) -> io::Result<()> {
    use nix::sys::prctl;
    use nix::sys::signal::{Signal, raise};
    use nix::unistd::getppid;

    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // A parent that ended before that sends nothing.
    if Some(getppid().as_raw()) != parent {
        return Err(io::Error::other("it has ended"));
    }
    Ok(raise(Signal::SIGSTOP)?)
}

#[cfg(not(target_os = "linux"))]
fn wait_at_gate(_: Option<i32>) -> io::Result<()> {
    Ok(())
}
