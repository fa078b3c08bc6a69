//! Observers that hand on what happens to crates of the ecosystem, each behind a feature of the crate's name.

#[cfg(feature = "log")]
pub(crate) mod log_observer;
#[cfg(feature = "metrics")]
pub(crate) mod recorder_observer;
