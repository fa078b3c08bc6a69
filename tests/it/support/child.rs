//! A child of this process, made by `fork`: what it does, what it says, and that it ends.
//!
//! The only unsafe code of the tests. A test that forks does so [`alone`](super::process::alone) in a process, so that no
//! thread of another test is in the middle of something. A child never returns into the test: it ends when its body has
//! been done, and it is ended when it hangs, at the latest by its own alarm.

use super::process::eventually;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, alarm, fork};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// When a child ends that nobody waits for, because its parent was killed.
const LIFETIME_SECONDS: u32 = 60;
/// What a child ends with whose body panicked.
const PANICKED: i32 = 101;

/// How a child ends when its body has been done. Neither runs the destructors of what the parent has on its stack.
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
    words: PipeReader,
    ear: PipeWriter,
    has_ended: bool,
}

/// The parent, as its child knows it.
pub(crate) struct Parent {
    ear: PipeWriter,
    words: PipeReader,
}

impl Child {
    /// Forks. The child does the body, and ends.
    #[allow(unsafe_code)]
    pub(crate) fn fork(end: End, body: impl FnOnce(&mut Parent)) -> Child {
        let ((words, parent_ear), (parent_words, ear)) = (pipe().expect("a pipe"), pipe().expect("a pipe"));
        // SAFETY: The child does more than POSIX promises to a child of many threads: it allocates, for one, as the
        // library does and its users do. The C libraries of the systems that run this test see to that.
        match unsafe { fork() }.expect("a child") {
            ForkResult::Parent { child } => Child { pid: child, words, ear, has_ended: false },
            ForkResult::Child => {
                alarm::set(LIFETIME_SECONDS);
                drop((words, ear));
                let mut parent = Parent { ear: parent_ear, words: parent_words };
                let code = catch_unwind(AssertUnwindSafe(|| body(&mut parent))).map_or(PANICKED, |()| 0);
                match end {
                    End::Exit => std::process::exit(code),
                    // SAFETY: It ends the process and does nothing else.
                    End::Vanish => unsafe { libc::_exit(code) },
                }
            }
        }
    }

    /// Waits until it has said the next thing.
    pub(crate) fn hear(&mut self) -> char {
        let mut byte = [0];
        self.words.read_exact(&mut byte).expect("a word from the child");
        byte[0].into()
    }

    /// Lets it go on that waits to be told.
    pub(crate) fn tell(&mut self) {
        self.ear.write_all(b".").expect("a child that listens");
    }

    /// Ends it by SIGKILL, whatever it is at.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// Waits until it has ended, and gives all that it has said and nobody has heard. Fails when it hangs or ends badly.
    #[track_caller]
    pub(crate) fn end(mut self, limit: Duration) -> String {
        let mut status = WaitStatus::StillAlive;
        eventually(limit, || {
            status = waitpid(self.pid, Some(WaitPidFlag::WNOHANG)).expect("it is a child of ours");
            status != WaitStatus::StillAlive
        });
        assert!(status != WaitStatus::StillAlive, "the child hangs");
        self.has_ended = true;
        assert!(matches!(status, WaitStatus::Exited(_, 0)), "the child ended with {status:?}");
        let mut text = String::new();
        self.words.read_to_string(&mut text).expect("text");
        text
    }
}

impl Parent {
    pub(crate) fn say(&mut self, text: &str) {
        self.ear.write_all(text.as_bytes()).expect("a parent that listens");
    }

    /// Whether it was told to go on, or the parent has ended.
    pub(crate) fn is_told(&self) -> bool {
        poll(&mut [PollFd::new(&self.words, PollFlags::IN)], Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Waits to be told to go on, or for the parent's end.
    pub(crate) fn listen(&mut self) {
        let _ = self.words.read(&mut [0]);
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
