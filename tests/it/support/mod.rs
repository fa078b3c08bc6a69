//! The base of the tests: real servers, fake ones, a wire that can be cut, children, and facts
//! about our own process.
//!
//! Nothing here but [`sides`] knows the library. Everything that is started ends when its value is
//! dropped, also in a panic.

// A tool is made whole even when today's tests use a part of it.
#![allow(dead_code)]

pub(crate) mod capable;
pub(crate) mod child;
pub(crate) mod exposition;
pub(crate) mod fake;
pub(crate) mod handler;
pub(crate) mod listener;
pub(crate) mod package;
pub(crate) mod preload;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod proxy;
pub(crate) mod queues;
pub(crate) mod server;
pub(crate) mod shard;
pub(crate) mod sides;
pub(crate) mod threads;
pub(crate) mod timing;
pub(crate) mod versions;
