//! Storms: programs take and release locks while faults happen on real servers, and a judge reads
//! what they logged.
//!
//! A storm is a test. It starts its own binary again, with the same test, once for each [`Worker`]:
//! the test begins with a question whether this process is one. Meanwhile the test injects
//! [`faults`] into servers and workers. Each thread of a worker appends what it did to a [`log`],
//! line by line, so that what a killed process did is known. The [`judge`] reads these logs alone,
//! by the monotonic clock that all processes of the machine share.

pub(crate) mod faults;
pub(crate) mod judge;
pub(crate) mod log;
pub(crate) mod random;
pub(crate) mod worker;
pub(crate) mod workers;

pub(crate) use faults::{Storm, durable_and_short};
pub(crate) use log::{Log, Stay, Story, now};
pub(crate) use random::Random;
pub(crate) use worker::{Counter, Worker, got};

/// The number in this variable of the environment.
pub(crate) fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().expect(variable))
}

/// The seed in this variable of the environment. By default it differs from run to run.
pub(crate) fn seed(variable: &str) -> u64 {
    number(variable).unwrap_or_else(|| u64::from(std::process::id()))
}
