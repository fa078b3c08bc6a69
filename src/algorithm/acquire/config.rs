//! What the caller of one lock call has set.

use crate::algorithm::backoff::Backoff;
use crate::algorithm::lease::Ttl;
use crate::algorithm::time::Timestamp;
use std::time::Duration;

/// How long to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitLimit {
    /// One attempt, no wait.
    Once,
    /// Until then at the latest.
    Until(Timestamp),
    /// As long as a quorum of nodes answers at least once in this time.
    WhileAvailable(Duration),
}

impl WaitLimit {
    /// For how long to make no attempt at most: there is time for another one.
    pub(super) fn longest_sleep(self, now: Timestamp) -> Duration {
        match self {
            WaitLimit::WhileAvailable(limit) => limit / 2,
            WaitLimit::Until(deadline) => deadline.since(now) / 2,
            WaitLimit::Once => Duration::ZERO,
        }
    }
}

/// The parameters of one call.
#[derive(Clone, Copy, Debug)]
pub struct AcquireConfig {
    /// The time to live to ask for.
    pub ttl: Ttl,
    /// How long each node has to answer.
    pub node_timeout: Duration,
    /// How long to try.
    pub wait_limit: WaitLimit,
    /// The delays between attempts.
    pub backoff: Backoff,
    /// How long [permanent](crate::algorithm::fault::Cause::is_permanent) faults must leave no quorum until they
    /// end the wait.
    pub permanent_fault_limit: Duration,
}
