//! The library's clock, which reads simulated readings, and the running client's wall clock in
//! simulated time.

#[path = "../../../src/os/clock.rs"]
mod library;

pub(crate) use crate::fences::wall_clock as since_epoch;
pub(crate) use library::*;
