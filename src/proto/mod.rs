//! The core: everything that has to be thought about, and nothing that has to be waited for.
//!
//! No socket, clock, thread, entropy or file is touched here. Every function that cares takes `now`; a test or a
//! simulator can therefore run all of it, on any clock, as often as it likes. This module is public for tests,
//! simulators and fuzzers, and is not part of the stable interface.
//!
//! # Vocabulary
//! *node*: one independent Redis or Valkey master. *quorum*: `N / 2 + 1` of them. *attempt*: one try to take the lock on
//! all nodes. *round*: one command sent to all nodes, and its tally. *owner token*: the random value that signs one
//! attempt. *lease*: the time during which a won attempt may be relied on.
//!
//! # The path of one attempt
//! ```text
//!   acquire::Acquire ── Attempt ──► one session::Session per node ──► bytes (command, resp)
//!        ▲                                                               │
//!        └──── vote::Tally ◄── vote::Vote ◄── fault::Fault? ◄── replies ─┘
//!        └──► lease::Lease
//! ```
//!
//! # How to drive it
//! 1. Make an [`acquire::Acquire`] and follow the numbered steps in its module.
//! 2. For each connection make a [`session::Session`] and follow the steps in its module; its events are votes.
//! 3. Count votes in a [`vote::Tally`]; when it is decided, hand it to the `Acquire`.
//! 4. Between rounds, ask each node's [`health::Health`] whether it may be asked, and in a round its [`quarantine::Quarantine`]
//!    whether its yes counts.
//! 5. For leases that are to be extended in time, keep a [`renewal::Renewals`] and follow the steps in its module.

pub mod acquire;
mod agenda;
pub mod backoff;
mod buffer;
pub mod command;
pub mod detail;
pub mod dialect;
pub mod early_end;
pub mod extension;
pub mod fault;
pub mod fence;
pub mod fenced;
pub mod greeting;
pub mod health;
pub mod hint;
pub mod identity;
pub mod lease;
pub mod node;
pub mod owed;
pub mod quarantine;
pub mod renewal;
mod request;
pub mod resp;
pub mod script;
mod script_error;
pub mod session;
pub mod subscription;
pub mod time;
pub mod turn;
mod voice;
pub mod vote;
