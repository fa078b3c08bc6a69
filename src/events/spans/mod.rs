//! Spans of the crate `tracing`: one of each call for a lock, one of each hold.
//!
//! ```text
//!   the caller's span
//!   ├── quorumlock.wait ── from the beginning of the call to its end
//!   └── quorumlock.hold ── from the acquisition to the release, the loss, or the detach
//!         follows from quorumlock.wait
//! ```
//!
//! Invariants:
//! 1. The subscriber is code of the program. It is called as an observer is: without a mutex of the
//!    library, with panics caught, and what it calls makes no spans.
//! 2. The outcome of a span is recorded once, right before the span closes.
//! 3. In a child made by `fork`, a span of the parent is neither changed nor closed.
//!
//! Without the feature `tracing` the types are empty, and so are their functions.

#[cfg(not(feature = "tracing"))]
mod absent;
mod outcome;
#[cfg(feature = "tracing")]
mod traced;

#[cfg(not(feature = "tracing"))]
pub(crate) use absent::{HoldSpan, SpanLink, WaitSpan};
pub(crate) use outcome::HoldOutcome;
#[cfg(feature = "tracing")]
pub(crate) use traced::{HoldSpan, SpanLink, WaitSpan};
