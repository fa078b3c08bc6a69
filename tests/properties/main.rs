//! Properties that must hold for any input: random inputs that shrink when one of them fails.
//!
//! The unit tests beside the code are tables; a property of a few small inputs is checked there for
//! all of them.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test")]

mod renewal;
mod resp;
