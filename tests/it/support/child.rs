//! A child of this process, made by `fork`: what it does, what it writes, and that it ends.
//!
//! A test that forks does so [`alone`](super::process::alone) in a process, so that no thread of
//! another test is in the middle of something. A child never returns into the test: it ends when
//! its body has been done, and it is ended when it hangs, at the latest by its own alarm.

use super::process::eventually;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, alarm, fork};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// When a child ends whose parent was killed before it could wait for it.
const LIFETIME_SECONDS: u32 = 60;
/// What a child ends with whose body panicked.
const PANICKED: i32 = 101;

/// How a child ends when its body has been done. Neither runs the destructors of what the parent
/// has on its stack.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// By `exit`, with what was registered by `atexit`.
    Exit,
    /// By `_exit`, at once.
    Vanish,
}

/// A child that runs.
pub(crate) struct Child {
    pid: Pid,
    output: PipeReader,
    input: PipeWriter,
    has_ended: bool,
}

/// The parent, as its child knows it.
pub(crate) struct Parent {
    output: PipeWriter,
    input: PipeReader,
}

impl Child {
    /// Forks. The child does the body, and ends.
    #[allow(unsafe_code)]
    pub(crate) fn fork(end: End, body: impl FnOnce(&mut Parent)) -> Child {
        let (output, parent_output) = pipe().expect("a pipe");
        let (parent_input, input) = pipe().expect("a pipe");
        // SAFETY: The child does more than POSIX promises to a child of many threads: it allocates,
        // for one, as the library does and its users do. The C libraries of the systems that run
        // this test see to that.
        match unsafe { fork() }.expect("a child") {
            ForkResult::Parent { child } => Child {
                pid: child,
                output,
                input,
                has_ended: false,
            },
            ForkResult::Child => {
                alarm::set(LIFETIME_SECONDS);
                drop((output, input));
                let mut parent = Parent {
                    output: parent_output,
                    input: parent_input,
                };
                let code =
                    catch_unwind(AssertUnwindSafe(|| body(&mut parent))).map_or(PANICKED, |()| 0);
                match end {
                    End::Exit => std::process::exit(code),
                    // SAFETY: It ends the process and does nothing else.
                    End::Vanish => unsafe { libc::_exit(code) },
                }
            }
        }
    }

    /// Waits for the next character from the child.
    pub(crate) fn receive(&mut self) -> char {
        let mut byte = [0];
        self.output
            .read_exact(&mut byte)
            .expect("output of the child");
        byte[0].into()
    }

    /// Lets the child continue that waits for this.
    pub(crate) fn let_continue(&mut self) {
        self.input.write_all(b".").expect("a child that reads");
    }

    /// Stops it where it is, by SIGSTOP.
    pub(crate) fn stop(&self) {
        kill(self.pid, Signal::SIGSTOP).expect("it is a child of ours");
        let stopped =
            waitpid(self.pid, Some(WaitPidFlag::WUNTRACED)).expect("it is a child of ours");
        assert!(matches!(stopped, WaitStatus::Stopped(..)), "{stopped:?}");
    }

    /// Lets it run again after a [`stop`](Child::stop).
    pub(crate) fn go_on(&self) {
        kill(self.pid, Signal::SIGCONT).expect("it is a child of ours");
    }

    /// Ends it by SIGKILL, whatever it is at.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// Waits until it has ended, and returns its output that was not received yet. Fails when it
    /// hangs or ends badly.
    #[track_caller]
    pub(crate) fn end(mut self, limit: Duration) -> String {
        let mut status = WaitStatus::StillAlive;
        eventually(limit, || {
            status = waitpid(self.pid, Some(WaitPidFlag::WNOHANG)).expect("it is a child of ours");
            status != WaitStatus::StillAlive
        });
        assert!(status != WaitStatus::StillAlive, "the child hangs");
        self.has_ended = true;
        assert!(
            matches!(status, WaitStatus::Exited(_, 0)),
            "the child ended with {status:?}"
        );
        let mut text = String::new();
        self.output.read_to_string(&mut text).expect("text");
        text
    }
}

impl Parent {
    pub(crate) fn send(&mut self, text: &str) {
        self.output
            .write_all(text.as_bytes())
            .expect("a parent that reads");
    }

    /// Whether the parent lets the child continue, or has ended.
    pub(crate) fn may_continue(&self) -> bool {
        poll(
            &mut [PollFd::new(&self.input, PollFlags::IN)],
            Some(&Timespec::default()),
        )
        .is_ok_and(|ready| ready > 0)
    }

    /// Waits until the parent lets the child continue, or ends.
    pub(crate) fn wait(&mut self) {
        let _ = self.input.read(&mut [0]);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.has_ended {
            let _ = kill(self.pid, Signal::SIGKILL);
            let _ = waitpid(self.pid, None);
        }
    }
}
