//! Signals as values: blocked, and read from a descriptor by the one thread that acts on them.
//!
//! A signal that is blocked waits in the kernel, so none is missed between two looks, and when a
//! look finds none, none had arrived. Linux has a descriptor for that. Elsewhere a thread waits for
//! signals and writes them into a pipe; there, one that arrives at the moment of a look may be
//! found by the next look.

use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, Ordering};

pub(super) use source::Signals;

/// Those that end a wait for the lock, and go to the command afterwards.
const STOPPING: [Signal; 4] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
];
/// Those that go to the command, and mean nothing before it runs.
const PASSED_ON: [Signal; 2] = [Signal::SIGUSR1, Signal::SIGUSR2];
/// Those of job control, which stop this program and the command.
const SUSPENDING: [Signal; 3] = [Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU];

/// A signal that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    pub(super) signal: Signal,
    /// The terminal sent it, and so sent it to the command as well if that is in the same process
    /// group.
    pub(super) is_from_terminal: bool,
}

impl Received {
    /// Whether it ends a wait.
    pub(super) fn stops(self) -> bool {
        STOPPING.contains(&self.signal)
    }

    /// Whether it stops this program until it is continued.
    pub(super) fn suspends(self) -> bool {
        SUSPENDING.contains(&self.signal)
    }
}

/// Blocks the signals, in this thread and those that it starts. To be called before there are
/// others. A signal that was ignored when the program started, as `nohup` does with SIGHUP, stays
/// ignored; all but SIGCHLD: while that is ignored, the kernel reaps children unasked, and how they
/// ended is lost.
pub(super) fn block() -> io::Result<Signals> {
    // SAFETY: no function is installed.
    #[expect(unsafe_code, reason = "no safe function sets what is done on a signal")]
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }?;
    let set: SigSet = not_ignored(all()).collect();
    set.thread_block()?;
    Signals::new(set)
}

/// Lets all signals through that [`block`] blocks: the command must not inherit the mask.
pub(super) fn unblock() -> io::Result<()> {
    Ok(all().collect::<SigSet>().thread_unblock()?)
}

fn all() -> impl Iterator<Item = Signal> {
    STOPPING
        .into_iter()
        .chain(PASSED_ON)
        .chain(SUSPENDING)
        .chain([Signal::SIGCHLD])
}

/// Those that this process was not started to ignore: all where the system does not report them.
fn not_ignored(signals: impl Iterator<Item = Signal>) -> impl Iterator<Item = Signal> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = mask
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    signals.filter(move |&signal| ignored & (1 << (signal as u32 - 1)) == 0)
}

/// Where [`end`] writes.
static END: AtomicI32 = AtomicI32::new(-1);

/// Has a byte written to this descriptor if a signal ends this process before it executes another
/// program, which starts without a handler.
pub(super) fn write_at_end(descriptor: RawFd) {
    END.store(descriptor, Ordering::Relaxed);
    for ending in not_ignored(STOPPING.into_iter().chain(PASSED_ON)) {
        // SAFETY: the handler calls only what may be called in one.
        #[expect(unsafe_code, reason = "no safe function sets what is done on a signal")]
        let _ = unsafe { signal(ending, SigHandler::Handler(end)) };
    }
}

/// Ends this process, as a shell shows that the signal has ended it.
extern "C" fn end(signal: libc::c_int) {
    // SAFETY: both may be called in a handler of signals, and the byte is there.
    #[expect(unsafe_code, reason = "std has no functions for a handler of signals")]
    unsafe {
        libc::write(END.load(Ordering::Relaxed), b"!".as_ptr().cast(), 1);
        libc::_exit(128 + signal)
    }
}

#[cfg(target_os = "linux")]
mod source {
    use super::Received;
    use nix::sys::signal::{SigSet, Signal};
    use nix::sys::signalfd::{SfdFlags, SignalFd};
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd};

    /// The sender of a signal is the kernel: a key of the terminal, or its hang-up.
    const FROM_KERNEL: i32 = 0x80;

    /// The signals of this process.
    pub(in crate::run) struct Signals(SignalFd);

    impl Signals {
        pub(super) fn new(set: SigSet) -> io::Result<Signals> {
            Ok(Signals(SignalFd::with_flags(
                &set,
                SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
            )?))
        }

        /// The next signal that has arrived; none if none has.
        pub(in crate::run) fn take(&self) -> Option<Received> {
            let info = self.0.read_signal().ok().flatten()?;
            let signal = Signal::try_from(i32::try_from(info.ssi_signo).ok()?).ok()?;
            Some(Received {
                signal,
                is_from_terminal: info.ssi_code == FROM_KERNEL,
            })
        }
    }

    impl AsFd for Signals {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod source {
    use super::Received;
    use nix::sys::signal::{SigSet, Signal};
    use rustix::io::ioctl_fionbio;
    use std::io::{self, PipeReader, Read, Write};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::thread;

    /// The signals of this process.
    pub(in crate::run) struct Signals(PipeReader);

    impl Signals {
        pub(super) fn new(set: SigSet) -> io::Result<Signals> {
            let (reader, mut writer) = io::pipe()?;
            ioctl_fionbio(&reader, true)?;
            let pass_on = move || {
                while let Ok(signal) = set.wait() {
                    let number = u8::try_from(signal as i32).unwrap_or_default();
                    if writer.write_all(&[number]).is_err() {
                        return;
                    }
                }
            };
            thread::Builder::new()
                .name("signals".to_owned())
                .spawn(pass_on)?;
            Ok(Signals(reader))
        }

        /// The next signal that has arrived; none if none has.
        pub(in crate::run) fn take(&self) -> Option<Received> {
            let mut number = [0];
            (&self.0).read_exact(&mut number).ok()?;
            let signal = Signal::try_from(i32::from(number[0])).ok()?;
            Some(Received {
                signal,
                is_from_terminal: false,
            })
        }
    }

    impl AsFd for Signals {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }
}
