//! The manual.
//!
//! * [`rules`]: what the library does, rule by rule, with the tests that show each.
//! * [`operations`]: nodes, access control, restarts, settings, sizing, errors.
//! * [`recipes`]: complete answers to common tasks, and the debate about Redlock.
//! * [`messages`]: every failure message, and what to do about it.
//! * [`testing`]: what was tested, how, and what was not.

#[doc = include_str!("messages.md")]
pub mod messages {}
// The page shows the events of the C interface too.
#[cfg(test)]
#[cfg(feature = "capi")]
mod messages_tests;

#[doc = include_str!("operations.md")]
pub mod operations {}

#[doc = include_str!("recipes.md")]
pub mod recipes {}

#[doc = include_str!("rules.md")]
pub mod rules {}

#[doc = include_str!("testing.md")]
pub mod testing {}
