//! Jobs, of which at most three run at a time over all machines. Each line of the input is a job:
//!
//! ```text
//! export QUORUMLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3
//! ls *.png | cargo run --example limit_workers
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use quorumlock::kind::Slot;
use quorumlock::{Builder, Mutex, Result, Watchdog};
use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{io, thread};

/// The same in all programs that share the permits.
const PERMITS: usize = 3;
/// Threads of this program.
const THREADS: usize = 4;
/// After this time, a job is left out.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> Result<ExitCode> {
    let redlock = Builder::from_env("QUORUMLOCK_")?.build()?;
    // The watchdog keeps the permit while the job runs, however long that is.
    let permits = redlock
        .semaphore("thumbnails", PERMITS)
        .watchdog(Watchdog::new());
    let next = || io::stdin().lines().next();
    let failed = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                // Each thread takes the next line when it has done the one before.
                while let Some(Ok(job)) = next() {
                    if let Err(reason) = run(&permits, &job) {
                        eprintln!("{job}: {reason}");
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    Ok(ExitCode::from(u8::from(failed.into_inner() > 0)))
}

fn run(permits: &Mutex<Slot>, job: &str) -> std::result::Result<(), Box<dyn Error>> {
    let permit = permits.lock_timeout(PATIENCE)?.ok_or("no permit in time")?;
    println!("{job}: permit {}", permit.slot());
    thread::sleep(Duration::from_millis(400)); // the work
    // Where a fourth job must not run even after a loss: `permit.ensure(…)?` before each step.
    println!("{job}: done");
    Ok(())
}
