//! What a program names: builder, client, mutex, guard, lease, semaphore, wait, watchdog, and the status of nodes.

pub(crate) mod builder;
pub(crate) mod client;
pub(crate) mod fence_checker;
pub(crate) mod forked;
pub(crate) mod guard;
pub(crate) mod lease;
pub(crate) mod mutex;
pub(crate) mod mutex_set;
pub(crate) mod node_status;
pub(crate) mod redlock;
pub(crate) mod reentrant;
pub(crate) mod semaphore;
#[cfg(feature = "tls")]
pub(crate) mod tls;
pub(crate) mod wait;
pub(crate) mod watchdog;
