//! A job that several machines start each night, and that one of them runs. Their crontab:
//!
//! ```text
//! QUORUMLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3
//! 0 2 * * *  /usr/local/bin/run_once_a_night $(date +\%F)
//! ```
//!
//! The exit code is 0 where the job is done, here or by another machine, and 1 where it was not
//! done, or may have been done twice.

#![allow(clippy::print_stdout)]

use quorumlock::{Builder, ReleaseOutcome, Watchdog};
use std::error::Error;
use std::time::Duration;
use std::{env, thread};

/// By how much the clocks of the machines may differ: a machine that is late by less finds the lock
/// held, however short the job is. Longer if the job takes longer.
const CLOCKS: Duration = Duration::from_secs(60);
/// More than the longest step of the job takes.
const STEP: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let night = env::args().nth(1).ok_or("usage: run_once_a_night NIGHT")?;
    let redlock = Builder::from_env("QUORUMLOCK_")?.build()?;
    // The night is part of the name: the lock of yesterday does not matter today.
    let mutex = redlock.mutex(format!("nightly-report/{night}"));
    let mutex = mutex.ttl(CLOCKS).min_hold(CLOCKS).watchdog(Watchdog::new());
    // One attempt: a machine that comes second has nothing to wait for.
    let Some(guard) = mutex.try_lock()? else {
        println!("{night}: another machine does it");
        return Ok(());
    };
    for part in 1..=3 {
        // Fails when the lock is lost: another machine may have begun.
        guard.ensure(STEP)?;
        write_report(&night, part);
    }
    // Before `CLOCKS` have passed, this does not free the lock: it sets its end.
    if guard.unlock()? != ReleaseOutcome::Released {
        return Err("the lock ended before the job did".into());
    }
    println!("{night}: done");
    Ok(())
}

fn write_report(night: &str, part: u32) {
    println!("{night}: part {part}");
    thread::sleep(Duration::from_millis(300));
}
