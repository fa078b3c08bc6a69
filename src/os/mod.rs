//! The only code that touches the operating system: sockets, poll, clocks, entropy, threads and locks, host names, fork.
//!
//! The layers above use the system through this module alone. A simulator or a model checker replaces it as a whole.

pub(crate) mod channel;
pub(crate) mod clock;
pub(crate) mod entropy;
pub(crate) mod fork;
pub(crate) mod poll;
pub(crate) mod resolve;
pub(crate) mod stream;
pub(crate) mod sync;
pub(crate) mod waker;
pub(crate) mod wall;
