//! The integration tests: the library against real servers, fake ones and a disturbed wire.
//!
//! One test binary, so that it is linked once. [`support`] is the base of the tests, [`harness`]
//! shows that it holds, [`fuzz_bodies`] runs what the fuzzer runs, and [`tidy`] reads the source
//! tree and checks the house rules.

// Clippy allows these in test functions; here every function is part of a test.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod addresses;
mod backlog;
mod budget;
mod cancelling;
mod capi;
#[cfg(feature = "cli")]
mod cli;
mod client_exit;
mod clients;
mod clusters;
mod connecting;
mod credentials;
mod descriptors;
mod embedded_vs_real;
mod examples;
#[cfg(all(feature = "log", feature = "metrics"))]
mod export;
mod extension;
mod fair;
mod faults;
mod fenced_guard;
mod fences_ahead;
mod fences_under_faults;
mod fencing;
mod forking;
mod forms;
mod fuzz_bodies;
mod guards;
mod handing_over;
mod harness;
mod hostile_servers;
mod hung_nodes;
mod incarnations;
mod keys;
mod labels;
mod late_replies;
mod late_sets;
mod leases;
mod local_queue;
mod lock;
mod loss_callbacks;
mod losses;
mod messages;
mod metrics;
mod mismatches;
mod nemesis;
mod node_figures;
mod observe;
mod observing;
mod pending_releases;
mod permanent_errors;
mod poll_failures;
mod prelude;
#[cfg(feature = "cli")]
mod procedures;
mod queue;
mod quorum;
mod read_write;
mod readme;
mod reconnect;
mod recovery;
mod reentrant;
mod rejecting_nodes;
mod repeated_run_id;
mod restarts;
mod script_errors;
mod semaphore;
mod sets;
mod shutdown;
mod slow_callbacks;
#[cfg(feature = "tracing")]
mod spans;
mod standing;
mod storm;
mod support;
mod threads;
mod tidy;
#[cfg(feature = "tls")]
mod tls;
mod unix_sockets;
mod unlocking;
mod versions;
mod waiting;
mod waking;
mod watchdog;
