//! A sleep that two channels can end.

use crossbeam_channel::Receiver;
use std::time::Duration;

/// Sleeps until `wake` brings a message, `cancelled` brings one or ends, or the time is up. True if
/// the latter channel has ended the sleep.
pub(crate) fn sleep(wake: &Receiver<()>, cancelled: &Receiver<()>, time: Duration) -> bool {
    crossbeam_channel::select! {
        recv(wake) -> _ => false,
        recv(cancelled) -> _ => true,
        default(time) => false,
    }
}
