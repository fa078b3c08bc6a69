//! A program for a pod: it works under locks until it is told to end, finishes what it has begun,
//! and leaves no lock behind.
//!
//! ```text
//! QUORUMLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3 cargo run --example pod
//! kill PID
//! ```
//!
//! What it does is in [`workers`]. The exit code is 0 when the shutdown was complete, 1 when not,
//! and 2 when the program could not start. A test starts this program and sends it `SIGTERM`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod workers;

use quorumlock::Builder;
use std::process::ExitCode;
use std::time::Duration;

/// Less than `terminationGracePeriodSeconds`, without the time of the `preStop` hook.
const SHUTDOWN: Duration = Duration::from_secs(20);
const WORK: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    match Builder::from_env("QUORUMLOCK_").and_then(Builder::build) {
        Ok(redlock) => workers::run(&redlock, WORK, SHUTDOWN),
        Err(error) => {
            eprintln!("pod: {error}");
            ExitCode::from(2)
        }
    }
}
