//! The library's module of this name: as in the models of the driver, but for waits, which end by
//! the model's time.

#[path = "../../os/sync.rs"]
#[allow(
    unused_imports,
    dead_code,
    reason = "its condition variable and threads are replaced"
)]
mod scheduled;

pub(crate) use crate::time::{Condvar, spawn};
pub(crate) use scheduled::*;
