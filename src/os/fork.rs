//! Whether the process has been forked, and a socket option that no safe crate has: the one file of
//! unsafe code in the library outside `ffi/`.
//!
//! A child made by `fork` has a copy of all that its parent has in memory, the same connections,
//! and of the parent's threads only the one that forked. An object that must know keeps the
//! [`ForkEpoch`] that it was made in, and asks later whether it is past. That takes no system call:
//! the C library calls a handler in each child, and the handler counts.
//!
//! What makes a child that shares memory or goes on to another program (`vfork`, `posix_spawn`,
//! `Command`) calls no handlers, and needs none. What clones a process behind the back of the C
//! library (a bare `clone` or `_Fork`) calls none either, and is not noticed.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
#[cfg(any(target_os = "android", target_os = "linux"))]
use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    time::Duration,
};

/// How many forks lie between this process and the one that first asked.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// A process, as distinct from its ancestors and descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForkEpoch(usize);

impl ForkEpoch {
    /// The epoch of this process. From now on, forks are counted.
    ///
    /// # Errors
    /// The C library has no memory left to remember the handler.
    pub(crate) fn current() -> io::Result<ForkEpoch> {
        static IS_COUNTING: AtomicBool = AtomicBool::new(false);
        // Not a `Once`, which would stay locked in a child that was forked meanwhile. A second
        // registration does no harm: then each fork counts twice.
        if !IS_COUNTING.load(Ordering::Acquire) {
            count_forks()?;
            IS_COUNTING.store(true, Ordering::Release);
        }
        Ok(ForkEpoch(FORKS.load(Ordering::Relaxed)))
    }

    /// The epoch of this process. If the C library has no memory left, forks are not counted yet.
    pub(crate) fn known() -> ForkEpoch {
        let _ = ForkEpoch::current();
        ForkEpoch(FORKS.load(Ordering::Relaxed))
    }

    /// Whether this process was forked since, and has inherited what was made in this epoch.
    pub(crate) fn is_forked(self) -> bool {
        // The handler runs in the child's only thread, before anything else there.
        self.0 != FORKS.load(Ordering::Relaxed)
    }

    /// As a number that no other epoch has, and never zero.
    pub(crate) fn number(self) -> usize {
        self.0.wrapping_add(1)
    }

    /// One that is past.
    #[cfg(test)]
    pub(crate) fn of_a_parent() -> ForkEpoch {
        ForkEpoch(usize::MAX / 2)
    }
}

#[cfg(unix)]
#[expect(unsafe_code, reason = "no safe crate registers a handler")]
fn count_forks() -> io::Result<()> {
    extern "C" fn count() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: The handler does not unwind, and does nothing that is forbidden in the child of a
    // process with many threads: it adds to an atomic number, waits for nothing and allocates
    // nothing. It is part of the program, or of a library that takes its handlers with it when it
    // is unloaded.
    match unsafe { libc::pthread_atfork(None, None, Some(count)) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Lets the kernel wait no longer than this between two retransmissions of what the peer does not
/// acknowledge. Without a limit the time doubles up to two minutes, so that a connection stays
/// silent for as long again as the network was away.
///
/// # Errors
/// The kernel does not have the option (Linux before 6.15), or not for this socket.
#[cfg(any(target_os = "android", target_os = "linux"))]
pub(crate) fn limit_retransmission_delay(socket: impl AsFd, limit: Duration) -> io::Result<()> {
    let millis = libc::c_int::try_from(limit.as_millis()).unwrap_or(libc::c_int::MAX);
    set_tcp_option(socket.as_fd(), TCP_RTO_MAX_MS, millis)
}

/// `TCP_RTO_MAX_MS` of the kernel's `linux/tcp.h`: 1000 to 120000 milliseconds.
#[cfg(any(target_os = "android", target_os = "linux"))]
const TCP_RTO_MAX_MS: libc::c_int = 44;

#[cfg(any(target_os = "android", target_os = "linux"))]
#[expect(
    unsafe_code,
    reason = "no safe crate sets an option that it does not know"
)]
fn set_tcp_option(
    socket: BorrowedFd<'_>,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let size = size_of_val(&value) as libc::socklen_t;
    // SAFETY: The descriptor is open for as long as it is borrowed. The kernel reads `size` bytes
    // of `value` during the call and keeps no pointer.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            (&raw const value).cast(),
            size,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// What [`limit_retransmission_delay`] has set.
#[cfg(all(test, target_os = "linux"))]
#[expect(
    unsafe_code,
    reason = "no safe crate reads an option that it does not know"
)]
pub(crate) fn retransmission_delay_limit(socket: impl AsFd) -> io::Result<Duration> {
    let mut millis = 0 as libc::c_int;
    let mut size = size_of::<libc::c_int>() as libc::socklen_t;
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: The descriptor is open for as long as it is borrowed, and `millis` has the `size`
    // bytes that are written.
    let result = unsafe {
        let value = (&raw mut millis).cast();
        libc::getsockopt(
            descriptor,
            libc::IPPROTO_TCP,
            TCP_RTO_MAX_MS,
            value,
            &raw mut size,
        )
    };
    if result == 0 {
        Ok(Duration::from_millis(millis.unsigned_abs().into()))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Where there is no `fork`, there is one generation.
#[cfg(not(unix))]
fn count_forks() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_fork_nothing_is_past() {
        let generation = ForkEpoch::current().unwrap();
        assert!(!generation.is_forked() && generation.number() != 0);
        assert_eq!(ForkEpoch::current().unwrap(), generation);
        assert!(ForkEpoch::of_a_parent().is_forked());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_delay_between_retransmissions_is_limited_where_the_kernel_can() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let limit = Duration::from_secs(1);
        match (
            retransmission_delay_limit(&stream),
            limit_retransmission_delay(&stream, limit),
        ) {
            (Ok(before), Ok(())) => {
                assert!(before > limit && retransmission_delay_limit(&stream).unwrap() == limit)
            }
            (before, set) => {
                let numbers =
                    [before.map(drop), set].map(|result| result.unwrap_err().raw_os_error());
                assert_eq!(numbers, [Some(libc::ENOPROTOOPT); 2]);
            }
        }
        let unknown = set_tcp_option(stream.as_fd(), 9999, 1).unwrap_err();
        assert_eq!(unknown.raw_os_error(), Some(libc::ENOPROTOOPT));
    }
}
