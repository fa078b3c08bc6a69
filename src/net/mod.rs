//! The only code that touches a socket or waits.
//!
//! ```text
//!   engine   take, release, undo: what the rest of the library calls
//!     relay    whoever waits, polls: one thread drives, the others are parked
//!       fleet    all links and the rounds in flight
//!         rounds   one command to all nodes, and its tally
//!         news     what happened meanwhile, for the observer
//!         watch    what is polled, and what was found           spin     whether to poll without sleeping
//!         link     one node's ordered connection        resolve  host names, in a thread
//!         ear      one node's subscriber connection     alarm    ends a wait from outside
//!           connection  how far it has come              listening  who waits for what, and what was heard
//!           stream   a non-blocking byte stream
//!           endpoint where a node is, from a URL
//! ```

pub(crate) mod alarm;
mod connection;
mod ear;
pub(crate) mod endpoint;
pub(crate) mod engine;
mod fleet;
mod link;
pub(crate) mod listening;
pub(crate) mod news;
mod relay;
mod resolve;
mod rounds;
mod spin;
mod stream;
mod watch;
