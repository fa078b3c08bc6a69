//! What stands in for the operating system, under the names of the library's own `os/`. The clock and the detection of
//! forks are the library's: the clock reads simulated readings, and nothing forks.

pub(crate) mod channel;
pub(crate) mod clock;
pub(crate) mod entropy;
#[path = "../../../src/os/fork.rs"]
pub(crate) mod fork;
pub(crate) mod poll;
pub(crate) mod resolve;
pub(crate) mod stream;
pub(crate) mod sync;
pub(crate) mod waker;
