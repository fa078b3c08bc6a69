//! The manual.
//!
//! * [`rules`]: what the library does, rule by rule, with the tests that show each.
//! * [`testing`]: what was tested, how, and what was not.
//! * [`messages`]: every failure message, and what to do about it.

#[doc = include_str!("rules.md")]
pub mod rules {}

#[doc = include_str!("testing.md")]
pub mod testing {}

#[doc = include_str!("messages.md")]
pub mod messages {}
