//! What is reported to callers and observers: errors, outcomes, events.

pub(crate) mod error;
pub mod event;
pub(crate) mod event_queue;
pub(crate) mod extension;
pub(crate) mod metrics;
pub(crate) mod names;
pub(crate) mod node_states;
pub(crate) mod release;
pub(crate) mod report;
pub(crate) mod spans;
