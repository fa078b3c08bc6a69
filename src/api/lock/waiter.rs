//! The wait of a call that is the head of its program's queue, for messages from the nodes.
//!
//! The wait ends with a message, at the given time, by an interrupt from this process, or when it
//! is cancelled. All sources are registered before a round asks the nodes, and the wait follows it:
//! no release is missed in between.

use crate::api::wait::InterruptRegistration;
use crate::engine::seat::Seat;

/// A registered wait. Dropping it removes the call's entry.
pub(super) struct Waiter<'w> {
    // Dropped before the seat: a cancellation does not interrupt a wait that has gone.
    pub(super) registration: InterruptRegistration<'w>,
    pub(super) seat: Seat<'w>,
}
