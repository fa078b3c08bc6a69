//! Whether the process has been forked: the one file of unsafe code outside `ffi/`.
//!
//! A child made by `fork` has a copy of all that its parent has in memory, the same connections, and of the parent's
//! threads only the one that forked. Whoever must know notes the [`Generation`] when he is made, and asks later whether
//! it is past. That takes no system call: the C library calls a handler in each child, and the handler counts.
//!
//! What makes a child that shares memory or goes on to another program (`vfork`, `posix_spawn`, `Command`) calls no
//! handlers, and needs none. What clones a process behind the back of the C library (a bare `clone` or `_Fork`) calls
//! none either, and is not noticed.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many forks lie between this process and the one that first asked.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// A process, as told from its ancestors and descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(usize);

impl Generation {
    /// That of this process. From now on, forks are counted.
    ///
    /// # Errors
    /// The C library has no memory left to remember the handler.
    pub(crate) fn current() -> io::Result<Generation> {
        static IS_COUNTING: AtomicBool = AtomicBool::new(false);
        // Not a `Once`, which would stay locked in a child that was forked meanwhile. A second registration does no harm:
        // then each fork counts twice.
        if !IS_COUNTING.load(Ordering::Acquire) {
            count_forks()?;
            IS_COUNTING.store(true, Ordering::Release);
        }
        Ok(Generation(FORKS.load(Ordering::Relaxed)))
    }

    /// Whether this process was forked since, and has inherited what is of this generation.
    pub(crate) fn is_past(self) -> bool {
        // The handler runs in the child's only thread, before anything else there.
        self.0 != FORKS.load(Ordering::Relaxed)
    }

    /// As a number that no other generation has, and never zero.
    pub(crate) fn number(self) -> usize {
        self.0.wrapping_add(1)
    }

    /// One that is past.
    #[cfg(test)]
    pub(crate) fn of_a_parent() -> Generation {
        Generation(usize::MAX / 2)
    }
}

#[cfg(unix)]
#[expect(unsafe_code, reason = "nobody registers a handler without it")]
fn count_forks() -> io::Result<()> {
    extern "C" fn count() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: The handler does not unwind, and does nothing that is forbidden in the child of a process with many threads:
    // it adds to an atomic number, waits for nobody and allocates nothing. It is part of the program, or of a library that
    // takes its handlers with it when it is unloaded.
    match unsafe { libc::pthread_atfork(None, None, Some(count)) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
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
        let generation = Generation::current().unwrap();
        assert!(!generation.is_past() && generation.number() != 0);
        assert_eq!(Generation::current().unwrap(), generation);
        assert!(Generation::of_a_parent().is_past());
    }
}
