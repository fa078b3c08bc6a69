//! One of several programs leads: it alone does what must not be done by two, for as long as it
//! holds the lock. When it ends or loses the lock, the next one takes over.
//!
//! ```text
//! export QUORUMLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3
//! cargo run --example leader
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use quorumlock::crossbeam_channel::RecvTimeoutError;
use quorumlock::{Builder, MutexGuard, Result, Watchdog, host_label};
use std::thread;
use std::time::Duration;

/// After a crash of the leader, no program leads for this long.
const TTL: Duration = Duration::from_secs(3);
/// More than the longest step of the leader's work takes.
const STEP: Duration = Duration::from_secs(1);
/// Between two steps, and after an error.
const PAUSE: Duration = Duration::from_millis(500);

fn main() -> Result<()> {
    let redlock = Builder::from_env("QUORUMLOCK_")?
        .label(host_label())
        .build()?;
    let leadership = redlock
        .mutex("scheduler/leader")
        .ttl(TTL)
        .watchdog(Watchdog::new());
    loop {
        match leadership.lock().and_then(|guard| lead(&guard)) {
            Ok(()) => println!("no longer leader"),
            // Such as a wrong password: trying again changes nothing.
            Err(error) if error.is_permanent() => return Err(error),
            Err(error) => {
                eprintln!("{error}");
                thread::sleep(PAUSE);
            }
        }
    }
}

/// Returns when the lock is lost.
fn lead(guard: &MutexGuard) -> Result<()> {
    println!("leader");
    let lost = guard.lost()?;
    // The message comes while the lease still lasts, so that a step can be ended in time.
    while lost.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
        guard.ensure(STEP)?;
        schedule();
    }
    Ok(())
}

fn schedule() {
    println!("scheduled");
}
