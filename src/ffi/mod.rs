//! The C interface: `quorumlock.h`, which documents each function, and the functions behind it.
//!
//! ```text
//!   C ──► entry (client, mutex, guard, …) ──► boundary: no panic comes back ──► the public API
//!           handle, text: pointers            failure → code, error
//! ```
//!
//! How it is kept sound. The numbers of the header's conventions are in brackets.
//! 1. Pointers from C are types that state whose they are: a handle is
//!    [`Borrowed`](handle::Borrowed) for a call or [`Returned`](handle::Returned) for good, an
//!    output is a [`NonNullOutput`](handle::NonNullOutput) that is written once, a text is
//!    [`Bytes`](text::Bytes). Only C makes values of these types, and only their own few methods
//!    are unsafe. (1, 3, 5, 6)
//! 2. A handle is an `Arc`. Each call has one of its own meanwhile, so a handle may be freed in the
//!    middle of a call. (1)
//! 3. Every function does its work within [`boundary`]: a panic becomes a code, a failure an error.
//!    (2, 4)
//! 4. What changes in a handle is in a [`ForkSafeMutex`](fork_safe_mutex::ForkSafeMutex), whose
//!    mutex is never held during a callback, and on which no child of `fork` waits. (8, 10, 11)
//! 5. Numbers that C knows are written here once each, in [`code`], [`fault`], [`event`], [`nodes`]
//!    and [`mutex`], and are never given to anything else.
//!
//! It calls the public API, where each mutex and guard is of the kind [`Any`](crate::kind::Any): so
//! what only some kinds have is there for the crate. From `os` it uses only what has no state of a
//! lock: fork detection, mutexes, the waker, and what ends panics.

#![allow(
    unsafe_code,
    reason = "no_mangle is unsafe, and so are pointers from C"
)]

mod boundary;
mod cancel;
mod cancellation;
mod client;
mod code;
mod config;
mod counters;
mod error;
mod event;
mod failure;
mod fault;
mod fork_safe_mutex;
mod guard;
mod handle;
mod lease;
mod loss;
mod mutex;
mod no_unload;
mod nodes;
mod owner;
mod provider;
mod text;
mod times;
mod tls;
mod userdata;
mod version;

#[cfg(test)]
pub(crate) mod event_tests;
#[cfg(test)]
mod header_tests;
