//! How a client ends its run: with nothing in flight, idle while releases are left, or by dropping
//! its last handle.

use crate::api::client::Client;
use crate::api::redlock::Redlock;
use crate::api::shutdown::ShutdownOutcome;
use crate::kernel::{self, with};
use crate::plan::MILLISECOND;
use std::time::Duration;

/// What the threads of a client do when the faults have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// They take the lock once more, and go on to use the client.
    GoesOn,
    /// They keep the client, and call nothing from before the faults have ended.
    Idles,
    /// They have dropped it before the faults have ended.
    Quits,
}

/// How long before the end of a run the last call of every thread has returned.
const QUIET: u64 = 1000 * MILLISECOND;

/// Whether a thread is to stop using its client.
pub(crate) fn is_quitting() -> bool {
    with(|world| world.plan.ending != Ending::GoesOn && world.now > world.plan.fault_time / 4 * 3)
}

/// Called by every thread of a client when it asks for nothing any more. The last of them checks
/// that no release is pending, and no round in flight.
pub(crate) fn settled(client: &Client) {
    kernel::sleep_until(with(|world| world.plan.end() - QUIET));
    let is_last = with(|world| {
        let index = world.current_client();
        world.clients[index].settled += 1;
        world.clients[index].settled == world.plan.clients[index].threads
    });
    if !is_last {
        return;
    }
    let redlock = Redlock::new(client.clone());
    let time = Duration::from_nanos(QUIET / 3);
    let outcome = redlock.shutdown(time);
    if client.engine.in_flight() > 0 {
        // No thread waits for the reply to a call that has left its place in a queue, nor for one
        // to a question whose time was up. They come before those to the next question.
        let _ = redlock.connect(time);
    }
    let in_flight = client.engine.in_flight();
    let counters = with(|world| world.clients[world.current_client()].counters.clone());
    let text = counters.map_or_else(String::new, |counters| counters.prometheus_text());
    with(|world| {
        let index = world.current_client();
        if world.clients[index].is_gone {
            return;
        }
        world.saw("a client that ends with nothing in flight");
        world.check_counters(index, &text);
        if !matches!(outcome, Ok(ShutdownOutcome::Complete)) {
            world.violate(
                "nothing in flight",
                format!("client {index} has not ended all at the end: {outcome:?}"),
            );
        }
        if in_flight > 0 {
            world.violate(
                "nothing in flight",
                format!("client {index} has {in_flight} rounds in flight at the end"),
            );
        }
    });
}
