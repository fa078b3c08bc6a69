//! A program for a pod: it works under locks until `SIGTERM`, finishes what it has begun, and
//! leaves no lock behind, so that the next pod need not wait for the end of a lease.
//!
//! ```text
//! export QUORUMLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3
//! cargo run --example graceful_shutdown
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use quorumlock::{Builder, ErrorKind, Redlock, ShutdownOutcome, Watchdog};
use std::error::Error;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// More than a job takes, and less than `terminationGracePeriodSeconds`.
const GRACE: Duration = Duration::from_secs(5);
/// How long to wait after an error, for example when too few nodes are available.
const PAUSE: Duration = Duration::from_secs(1);

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let redlock = Builder::from_env("QUORUMLOCK_")?.build()?;
    let (tell, told) = mpsc::channel();
    // The handler only tells this thread. It runs on a thread of its own.
    ctrlc::set_handler(move || _ = tell.send(()))?;
    for worker in 1..=3 {
        let redlock = redlock.clone();
        thread::spawn(move || serve(&redlock, worker));
    }
    told.recv()?;
    println!("told to end");
    // From here on no job begins: calls for a lock fail, also those that wait. Returns when threads
    // that have a lock have dropped their guards, and every node has run the releases.
    let outcome = redlock.shutdown(GRACE)?;
    println!("{outcome}");
    let is_incomplete = outcome != ShutdownOutcome::Complete;
    Ok(ExitCode::from(u8::from(is_incomplete)))
}

/// One job after the other, each under a lock that other pods want too.
fn serve(redlock: &Redlock, worker: u32) {
    let mutex = redlock.mutex("reports/daily").watchdog(Watchdog::new());
    loop {
        match mutex.lock() {
            Ok(guard) => {
                println!("worker {worker}: begins");
                thread::sleep(Duration::from_secs(1)); // the job
                println!("worker {worker}: done, {:?} left", guard.remaining());
            }
            Err(error) if error.kind() == ErrorKind::ShutDown => return println!("{error}"),
            Err(error) => {
                eprintln!("worker {worker}: {error}");
                thread::sleep(PAUSE);
            }
        }
    }
}
