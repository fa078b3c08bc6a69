//! The command line, in real processes against real servers.
//!
//! Each test starts the program `quorumlock` itself. [`deployment`] has the servers and the
//! program; the topics have names. Counts of repetitions are low by default;
//! `QUORUMLOCK_TEST_CLI_ROUNDS` multiplies them.

mod cost;
mod deployment;
mod doctor;
mod escapes;
mod exit_codes;
mod hazards;
mod inspection;
mod installation;
mod kinds;
mod limits;
mod loss;
mod manual;
mod other_libraries;
mod passwords;
mod protection;
mod queues;
mod readiness;
mod rights;
mod session;
mod settings;
mod signals;
mod stale_writers;
mod stalled;
mod stopped;
mod terminals;
#[cfg(feature = "tls")]
mod tls;
mod turns;
mod versions;

use crate::prelude::*;
use deployment::*;
