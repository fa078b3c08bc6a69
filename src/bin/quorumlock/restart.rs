//! This program started once more: how, and as the shell of a command.

use crate::exit::{self, Exit};
use crate::report;
use nix::sys::signal::SigSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// This program, to be started once more. The link leads to the file that was started, also after
/// an update of the package.
pub(crate) fn this_program() -> io::Result<Command> {
    let mut program = if cfg!(target_os = "linux") {
        Command::new("/proc/self/exe")
    } else {
        Command::new(std::env::current_exe()?)
    };
    program.arg0("quorumlock");
    Ok(program)
}

/// The word that makes this program the shell of a command, with all signals unblocked: a thread of
/// the library's, on which the command is started, blocks them. No command has this name.
pub(crate) const SHELL_STEP: &str = "__shell-step";

/// Becomes the shell that runs this command. Comes back only to end.
pub(crate) fn shell_step(command: Option<OsString>) -> Exit {
    if SigSet::all().thread_unblock().is_ok() {
        let error = Command::new("/bin/sh").arg("-c").args(command).exec();
        report::complain(&format!("cannot run /bin/sh: {error}"));
    }
    exit::SYSTEM
}
