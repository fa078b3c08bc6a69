//! The command's process and its group: started behind a gate, signalled, reaped.
//!
//! Invariants:
//! 1. No process id is signalled after it was reaped. One thread does both, and a group is
//!    signalled only while a child of this process is in it that has not been reaped: then its
//!    number belongs to no other group. Otherwise its processes are, one by one.
//! 2. On Linux, what the command leaves behind when it ends becomes a child of this process
//!    (`PR_SET_CHILD_SUBREAPER`), but for processes whose own parents live. So it is known whether
//!    the group is empty, without a look at other processes unless children are left that have
//!    made groups of their own: [`strays`](super::strays).

use super::exec_step::EXEC_STEP;
use super::options::Options;
use crate::exit::{self, Exit, Failure};
use crate::restart::this_program;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid};
use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// How long a command has to act on a signal of job control before it is stopped by SIGSTOP.
const STOP_TIME: Duration = Duration::from_millis(200);
/// How often it is looked at meanwhile.
const STOP_PAUSE: Duration = Duration::from_millis(5);

/// The command and what it has started.
pub(super) struct Group {
    child: Child,
    pid: Pid,
    /// Otherwise it is in the process group of this program, and gets what a terminal sends.
    pub(super) has_own_group: bool,
    status: Option<ExitStatus>,
}

impl Group {
    /// Starts the process, which waits at the gate, with these variables: in a process group of its
    /// own, unless it is to stay in this one or reads from a terminal. `not_started` is where the
    /// step writes that it cannot become the command. That does not inherit it.
    pub(super) fn start(
        options: &Options,
        variables: Vec<(&'static str, String)>,
        not_started: BorrowedFd<'_>,
    ) -> Result<Group, Failure> {
        adopt_orphans().map_err(Failure::system("adopt what the command leaves behind"))?;
        let mut step = this_program().map_err(Failure::system("find this program"))?;
        step.arg(EXEC_STEP)
            .arg(std::process::id().to_string())
            .arg(not_started.as_raw_fd().to_string())
            .args(options.words());
        // Those of a run around this one do not describe it.
        step.env_remove("QUORUMLOCK_FENCE");
        if !options.keep_nodes {
            step.env_remove("QUORUMLOCK_NODES");
        }
        step.envs(variables);
        let has_own_group = !(options.foreground || io::stdin().is_terminal());
        if has_own_group {
            step.process_group(0);
        }
        let child = step.spawn().map_err(Failure::system("start a process"))?;
        let pid = i32::try_from(child.id()).map_err(Failure::system("start a process"))?;
        let group = Group {
            child,
            pid: Pid::from_raw(pid),
            has_own_group,
            status: None,
        };
        group.wait_for_gate();
        Ok(group)
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Lets the process become the command.
    pub(super) fn open_gate(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Ends a process that waits at the gate: it never becomes the command.
    pub(super) fn abandon(mut self) {
        self.signal(Signal::SIGKILL);
        drop(self.child.wait());
    }

    /// Signals the command and its group, if it was given one; nothing if none of it is left.
    pub(super) fn signal(&self, signal: Signal) {
        let is_there = self.status.is_none();
        // What has ended a moment ago gets nothing.
        if is_there && !(self.has_own_group && getpgid(Some(self.pid)) == Ok(self.pid)) {
            // A command can leave its group.
            let _ = kill(self.pid, signal);
        }
        if self.has_own_group && (is_there || has_children_in(self.pid)) {
            let _ = killpg(self.pid, signal);
        } else if self.has_own_group {
            signal_strays(self.pid(), signal as i32);
        }
    }

    /// Stops the command, which may act on the signal before: restore a terminal, for example.
    pub(super) fn stop(&self, signal: Signal, has_it: bool) {
        if !has_it {
            self.signal(signal);
        }
        let end = Instant::now() + STOP_TIME;
        while !is_stopped(self.pid) && Instant::now() < end {
            thread::sleep(STOP_PAUSE);
        }
        self.signal(Signal::SIGSTOP);
    }

    /// Takes note of what has ended.
    pub(super) fn reap(&mut self) {
        let ended = reap_ended(self.pid);
        if self.status.is_none() {
            self.status = ended.or_else(|| match self.child.try_wait() {
                // It is no child any more: it has ended, and its status is lost.
                Err(error) if error.raw_os_error() == Some(Errno::ECHILD as i32) => {
                    Some(ExitStatus::from_raw(i32::from(exit::SYSTEM) << 8))
                }
                other => other.ok().flatten(),
            });
        }
    }

    /// How the command has ended, if it has.
    pub(super) fn exit(&self) -> Option<Exit> {
        let status = self.status?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Some(code.unwrap_or_else(|| exit::signal(status.signal().unwrap_or_default())))
    }

    /// Whether the command has ended, and nothing of its group is left.
    pub(super) fn is_gone(&self) -> bool {
        let has_others = || has_children_in(self.pid) || has_strays(self.pid());
        self.status.is_some() && !(self.has_own_group && has_others())
    }
}

#[cfg(target_os = "linux")]
mod system {
    pub(super) use super::super::strays::{has_strays, signal_strays};
    use nix::sys::prctl;
    use nix::unistd::Pid;
    use rustix::process::{WaitId, WaitIdOptions, WaitOptions, wait, waitid};
    use std::iter;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    /// The same number as rustix has it.
    fn raw(pid: Pid) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(pid.as_raw())
    }

    pub(super) fn adopt_orphans() -> nix::Result<()> {
        prctl::set_child_subreaper(true)
    }

    impl super::Group {
        /// Waits until the process has stopped itself at the gate, or has ended.
        pub(super) fn wait_for_gate(&self) {
            let look = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            if let Some(pid) = raw(self.pid) {
                let _ = waitid(WaitId::Pid(pid), look);
            }
        }
    }

    /// Whether this child is stopped.
    pub(super) fn is_stopped(child: Pid) -> bool {
        let look = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        raw(child).is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), look), Ok(Some(_))))
    }

    /// Whether a child of this process is in the group, ended or not.
    pub(super) fn has_children_in(group: Pid) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pgid(raw(group)), look).is_ok()
    }

    /// Reaps all that has ended, and returns how the command has, if it is among them. Any signal
    /// may have ended them: nix knows no real-time signals, and takes these for errors.
    pub(super) fn reap_ended(command: Pid) -> Option<ExitStatus> {
        let ended = iter::from_fn(|| wait(WaitOptions::NOHANG).ok().flatten());
        ended
            .filter(|(pid, _)| Some(*pid) == raw(command))
            .last()
            .map(|(_, status)| ExitStatus::from_raw(status.as_raw()))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use nix::unistd::Pid;

    pub(super) fn adopt_orphans() -> nix::Result<()> {
        Ok(())
    }

    impl super::Group {
        pub(super) fn wait_for_gate(&self) {}
    }

    pub(super) fn is_stopped(_: Pid) -> bool {
        false
    }

    /// What the command leaves behind is not a child of this process here.
    pub(super) fn has_children_in(_: Pid) -> bool {
        false
    }

    pub(super) fn has_strays(_: i32) -> bool {
        false
    }

    pub(super) fn signal_strays(_: i32, _: i32) {}

    pub(super) fn reap_ended(_: Pid) -> Option<std::process::ExitStatus> {
        None
    }
}

use system::{adopt_orphans, has_children_in, has_strays, is_stopped, reap_ended, signal_strays};

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::wait::waitpid;
    use std::process::Command;

    #[test]
    fn a_child_that_is_no_child_any_more_has_ended() {
        let child = Command::new("true").spawn().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        let mut group = Group {
            child,
            pid,
            has_own_group: false,
            status: None,
        };
        waitpid(pid, None).unwrap();
        group.reap();
        assert!(group.is_gone());
        assert_eq!(group.exit(), Some(exit::SYSTEM));
    }
}
