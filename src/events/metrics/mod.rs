//! What a client counts, for a metrics server.
//!
//! All counts are made where the thing happens, and not by events: an observer that is too slow, or
//! a call within a callback, changes none of them.

pub(crate) mod class;
pub(crate) mod counters;
pub(crate) mod families;
mod histogram;
pub(crate) mod nodes;
#[cfg(feature = "metrics")]
mod recorded;
mod text;

#[cfg(test)]
mod tests;
