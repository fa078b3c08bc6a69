//! The library's clock, which reads simulated readings, and the running client's wall clock in
//! simulated time.

#[path = "../../../src/os/clock.rs"]
mod library;

pub(crate) use library::*;

pub(crate) fn micros_since_epoch() -> u64 {
    crate::fences::wall_clock().as_micros() as u64
}
