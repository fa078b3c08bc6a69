//! Redlock itself: attempts, tallies, leases, renewals, fences and quarantine. Knows neither Redis nor sockets.
//!
//! Nothing here touches a socket, a clock, a thread, entropy or a file. Each function that depends on time takes it as an
//! argument; a test or a simulator can therefore run all of it, on any clock. This module is public for tests, simulators and
//! fuzzers, and is not part of the stable interface.

pub mod acquire;
mod agenda;
pub mod backoff;
pub mod detail;
pub mod early_end;
pub mod fault;
pub mod fence;
pub mod health;
pub mod lease;
pub mod node;
pub mod pending_release;
pub mod protocol_error;
pub mod quarantine;
pub mod renewal;
pub mod run_id;
pub mod time;
pub mod vote;
pub mod wake_order;
