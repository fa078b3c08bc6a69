//! The wait of a call that is the head of its program's queue, for messages from the nodes.
//!
//! The wait ends with a message, at the given time, by an interrupt from this process, or when it
//! is cancelled. All sources are registered before a round asks the nodes, and the wait follows it:
//! no release is missed in between.

use crate::algorithm::time::Timestamp;
use crate::api::client::Client;
use crate::api::wait::{InterruptRegistration, Wait};
use crate::engine::seat::Seat;
use crate::engine::wait_registry::Wakening;

/// A registered wait. Dropping it removes the call's entry.
pub(super) struct Waiter<'w> {
    client: &'w Client,
    wait: &'w Wait,
    // Dropped before the seat: a cancellation does not interrupt a wait that has gone.
    registration: InterruptRegistration<'w>,
    pub(super) seat: Seat<'w>,
}

impl<'w> Waiter<'w> {
    pub(super) fn new(client: &'w Client, wait: &'w Wait, seat: Seat<'w>) -> Waiter<'w> {
        let registration = wait.register(seat.interrupt(), &client.engine.channel_watch);
        Waiter {
            client,
            wait,
            registration,
            seat,
        }
    }

    /// Whether the wait is cancelled, or the client shut down: that interrupts it as well.
    fn is_cancelled(&self) -> bool {
        self.client.shutdown.has_begun() || self.wait.is_cancelled()
    }

    /// Waits until then at the latest, and returns what has arrived. None: the wait is cancelled.
    pub(super) fn wait(&self, until: Timestamp) -> Option<Wakening> {
        loop {
            let longest = self.registration.before_sleep();
            if self.is_cancelled() {
                return None;
            }
            let next_check = self.client.engine.now().after(longest);
            let wakening = self.seat.wait(until.min(next_check));
            if self.is_cancelled() {
                return None;
            }
            if wakening.is_any() || next_check >= until {
                return Some(wakening);
            }
        }
    }
}
