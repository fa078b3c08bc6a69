//! The library's sleep at channels, on simulated time.

use crate::kernel::{self, Reason};
use crossbeam_channel::{Receiver, TryRecvError};
use std::time::Duration;

/// The library's own, for its unit tests, which run without a simulation.
#[path = "../../../src/os/channel.rs"]
mod real;

pub(crate) fn sleep(wake: &Receiver<()>, cancelled: &Receiver<()>, time: Duration) -> bool {
    if !kernel::is_inside() {
        return real::sleep(wake, cancelled, time);
    }
    let is_cancelled = || cancelled.try_recv() == Err(TryRecvError::Disconnected);
    if !is_cancelled() && wake.try_recv() == Err(TryRecvError::Empty) {
        kernel::wait_for(
            Reason::Channel {
                wake: wake.clone(),
                cancelled: cancelled.clone(),
            },
            time,
        );
    }
    is_cancelled()
}
