//! What is reported, and to what: errors, outcomes, events, observers.

pub(crate) mod error;
pub mod event;
pub(crate) mod event_queue;
pub(crate) mod extension;
pub(crate) mod observer;
pub(crate) mod release;
pub(crate) mod report;
