//! A synchronous, blocking Redlock: one distributed lock over N independent Redis or Valkey masters.

#[doc(hidden)]
pub mod proto;

#[cfg(feature = "embedded")]
pub mod embedded;

mod client;
mod clock;
mod config;
mod error;
mod guard;
mod mutex;
mod net;
mod queue;
mod redlock;
mod sync;
mod token;
mod wait;
mod waker;

pub use config::Builder;
pub use error::{Error, ErrorKind, NodeFault, Result};
pub use guard::{MutexGuard, Release};
pub use mutex::Mutex;
pub use proto::fault::{Cause, Phase};
pub use proto::node::NodeId;
pub use proto::resp::ProtocolError;
pub use redlock::Redlock;
pub use wait::{CancelHandle, Wait};

#[doc(hidden)]
pub use net::endpoint::{Address, Endpoint, EndpointError};
