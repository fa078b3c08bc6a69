//! The library's wall clock: the running client's, in simulated time.

pub(crate) use crate::fences::wall_clock as since_epoch;
