//! A sleep that several channels can end.

use crossbeam_channel::Receiver;
use std::convert::Infallible;
use std::time::Duration;

/// Sleeps until `wake` brings a message, `cancelled_by` brings one or ends, `cancelled` ends, or
/// the time is up. True if one of the latter two has ended the sleep.
pub(crate) fn sleep(
    wake: &Receiver<()>,
    cancelled_by: &Receiver<()>,
    cancelled: &Receiver<Infallible>,
    time: Duration,
) -> bool {
    crossbeam_channel::select! {
        recv(wake) -> _ => false,
        recv(cancelled_by) -> _ => true,
        recv(cancelled) -> _ => true,
        default(time) => false,
    }
}
