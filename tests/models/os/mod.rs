//! The substitute for the operating system in the models of the driver, under the names of the
//! library's own `os/`: locks and threads that a scheduler controls, and a wake-up of the model's
//! wire. The rest is the library's, and is not reached.

#[path = "../../sim/os/background_call.rs"]
pub(crate) mod background_call;
#[path = "../../../src/os/caught.rs"]
pub(crate) mod caught;
#[path = "../../../src/os/channel.rs"]
pub(crate) mod channel;
#[path = "../../../src/os/clock.rs"]
pub(crate) mod clock;
#[path = "../../../src/os/entropy.rs"]
pub(crate) mod entropy;
#[path = "../../../src/os/fork.rs"]
pub(crate) mod fork;
#[path = "../../../src/os/poll.rs"]
mod poll;
#[path = "../../../src/os/resolve.rs"]
pub(crate) mod resolve;
#[path = "../../../src/os/stream.rs"]
pub(crate) mod stream;
pub(crate) mod sync;
#[path = "../../../src/os/thread_number.rs"]
pub(crate) mod thread_number;
#[path = "../../../src/os/transport.rs"]
pub(crate) mod transport;
pub(crate) mod waker;
#[path = "../../../src/os/watch.rs"]
pub(crate) mod watch;
