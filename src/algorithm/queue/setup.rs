//! What stays the same for all calls of a client that wait.

use std::time::Duration;

/// Two days, in microseconds: no clock that is right makes tickets so far ahead.
const FAR_AHEAD: u64 = 2 * 86_400_000_000;

/// The greatest ticket that a node may make where the client's clock shows so many microseconds.
pub fn latest_ticket(clock: u64) -> u64 {
    clock.saturating_add(FAR_AHEAD)
}

/// What stays the same for a client.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How many nodes there are.
    pub nodes: usize,
    /// How long an entry in front may let others wait.
    pub place_lease: Duration,
}

impl Setup {
    /// How many nodes decide.
    pub const fn quorum(&self) -> usize {
        self.nodes / 2 + 1
    }
}
