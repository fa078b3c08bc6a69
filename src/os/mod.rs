//! The seam: the only code that touches the operating system.
//!
//! The layers above use the system through this module alone. A simulator or a model checker
//! replaces it as a whole, and includes the layers above as they are (`tests/sim/os`,
//! `tests/models/os`).
//!
//! | file | what |
//! |---|---|
//! | [`background_call`] | a call that may block, in a thread of its own |
//! | `blocking` | a connection that blocks, for the command line; with the feature `cli` |
//! | [`caught`] | a call of the program's, whose panic ends there |
//! | [`channel`] | a sleep that two channels can end |
//! | [`clock`] | the lease clock, the steady clock, the wall clock |
//! | [`entropy`] | owner tokens and jitter |
//! | [`fork`] | whether the process was forked. The one file of unsafe code, so that it contains a socket option, too |
//! | [`host`] | what this machine is called |
//! | [`occupancy`] | the one thread that uses something |
//! | [`poll`] | waiting for sockets |
//! | [`resolve`] | host names to addresses |
//! | [`stream`] | non-blocking TCP and Unix sockets |
//! | [`sync`] | locks and threads |
//! | [`thread_number`] | which thread is which |
//! | `tls` | TLS, by rustls; with the feature `tls` |
//! | [`transport`] | the bytes of a connection, as they are or through TLS |
//! | [`waker`] | ending a poll from another thread |
//! | [`watch`] | the list that is polled, and what was found |

pub(crate) mod background_call;
#[cfg(feature = "cli")]
pub(crate) mod blocking;
pub(crate) mod caught;
pub(crate) mod channel;
pub(crate) mod clock;
pub(crate) mod entropy;
pub(crate) mod fork;
pub(crate) mod host;
pub(crate) mod occupancy;
mod poll;
pub(crate) mod resolve;
pub(crate) mod stream;
pub(crate) mod sync;
pub(crate) mod thread_number;
#[cfg(feature = "tls")]
pub(crate) mod tls;
pub(crate) mod transport;
pub(crate) mod waker;
pub(crate) mod watch;
