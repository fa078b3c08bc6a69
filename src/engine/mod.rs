//! Shared connections, requests in flight, and the thread that polls; the local queue, the watchdog and wake-ups.

mod busy_poll;
pub(crate) mod calls;
pub(crate) mod driver;
pub(crate) mod interrupt;
pub(crate) mod local_queue;
mod node_connection;
pub(crate) mod nodes;
pub(crate) mod rounds;
mod socket_state;
mod subscriber;
pub(crate) mod wait_registry;
pub(crate) mod watchdog_thread;
