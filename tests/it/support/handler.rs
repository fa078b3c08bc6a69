//! A signal handler that takes its time: a thread of this process that is in a system call does not
//! come back from it.

use crate::prelude::*;
use nix::sys::pthread::{Pthread, pthread_kill};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, sigaction};

/// For how long the handler runs.
static MILLIS: AtomicU64 = AtomicU64::new(0);

/// Lets this thread run the handler for so long, from now on. The process is of the calling test
/// [`alone`](super::process::alone).
#[allow(unsafe_code)]
pub(crate) fn hang(thread: Pthread, time: Duration) {
    MILLIS.store(time.as_millis() as u64, Ordering::SeqCst);
    let action = SigAction::new(
        SigHandler::Handler(sleep),
        SaFlags::empty(),
        SigSet::empty(),
    );
    // SAFETY: The handler sleeps, which is safe in a signal handler, and touches nothing else but
    // an atomic number.
    unsafe { sigaction(Signal::SIGUSR1, &action) }.expect("a handler");
    pthread_kill(thread, Signal::SIGUSR1).expect("a thread");
}

extern "C" fn sleep(_signal: i32) {
    thread::sleep(Duration::from_millis(MILLIS.load(Ordering::SeqCst)));
}
