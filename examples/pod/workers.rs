//! Threads that work under locks until the program is told to end.
//!
//! 1. The handler of the signal only tells the main thread.
//! 2. The main thread shuts the client down. From then on no job begins: a call for a lock, also
//!    one that waits, fails with `ShutDown`, and its thread ends.
//! 3. A thread that has a lock finishes its job and drops the guard.
//! 4. When no lock is held and every node has run the releases, the program exits.

use quorumlock::{ErrorKind, Redlock, ShutdownOutcome, Watchdog};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const THREADS: usize = 3;
/// How long to wait after an error, for example when too few nodes are available.
const PAUSE: Duration = Duration::from_secs(1);

/// Works until `SIGTERM`, `SIGINT` or `SIGHUP`. `work`: how long a job takes; `timeout`: for how
/// long to wait for the end of those that have begun.
pub(crate) fn run(redlock: &Redlock, work: Duration, timeout: Duration) -> ExitCode {
    let (tell, told) = mpsc::channel();
    // It runs on a thread of its own, not in the context of the signal.
    if let Err(error) = ctrlc::set_handler(move || _ = tell.send(())) {
        eprintln!("pod: {error}");
        return ExitCode::from(2);
    }
    for number in 0..THREADS {
        let redlock = redlock.clone();
        thread::spawn(move || serve(&redlock, number, work));
    }
    println!("pod: ready");
    // Fails when the handler is gone, which ends the program as well.
    let _ = told.recv();
    println!("pod: told to end");
    match redlock.shutdown(timeout) {
        Ok(ShutdownOutcome::Complete) => {
            println!("pod: shutdown complete");
            ExitCode::SUCCESS
        }
        Ok(outcome) => {
            // The locks that are held last for their time to live, unless their threads end first.
            eprintln!("pod: {outcome}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("pod: {error}");
            ExitCode::FAILURE
        }
    }
}

/// One job after the other, each under its lock, which other pods want too.
fn serve(redlock: &Redlock, number: usize, work: Duration) {
    let report = redlock.mutex("reports/daily").watchdog(Watchdog::new());
    loop {
        match report.lock() {
            Ok(guard) => {
                println!("worker {number}: begins");
                thread::sleep(work);
                println!(
                    "worker {number}: done, lock valid: {}",
                    !guard.remaining().is_zero()
                );
            }
            Err(error) if error.kind() == ErrorKind::ShutDown => {
                println!("worker {number}: {error}");
                return;
            }
            Err(error) => {
                eprintln!("worker {number}: {error}");
                thread::sleep(PAUSE);
            }
        }
    }
}
