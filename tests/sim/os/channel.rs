//! The library's sleep at channels, on simulated time.

use crate::kernel::{self, Reason};
use crossbeam_channel::{Receiver, TryRecvError};
use std::convert::Infallible;
use std::time::Duration;

pub(crate) fn sleep(
    wake: &Receiver<()>,
    _cancelled_by: &Receiver<()>,
    cancelled: &Receiver<Infallible>,
    time: Duration,
) -> bool {
    let is_cancelled = || cancelled.try_recv() == Err(TryRecvError::Disconnected);
    if !is_cancelled() && wake.try_recv() == Err(TryRecvError::Empty) {
        kernel::wait_for(Reason::Channel { wake: wake.clone(), cancelled: cancelled.clone() }, time);
    }
    is_cancelled()
}
