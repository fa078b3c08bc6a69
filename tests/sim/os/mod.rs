//! The substitute for the operating system, under the names of the library's own `os/`. The
//! detection of forks and the list of what is polled are the library's: nothing forks, and the list
//! calls nothing.

pub(crate) mod background_call;
#[path = "../../../src/os/caught.rs"]
pub(crate) mod caught;
pub(crate) mod channel;
pub(crate) mod clock;
pub(crate) mod entropy;
#[path = "../../../src/os/fork.rs"]
pub(crate) mod fork;
pub(crate) mod host;
#[path = "../../../src/os/occupancy.rs"]
pub(crate) mod occupancy;
mod poll;
pub(crate) mod resolve;
pub(crate) mod stream;
pub(crate) mod sync;
pub(crate) mod thread_number;
pub(crate) mod transport;
pub(crate) mod waker;
#[path = "../../../src/os/watch.rs"]
pub(crate) mod watch;
