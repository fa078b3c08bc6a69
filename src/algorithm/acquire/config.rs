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
    /// How long [permanent](crate::fault::Cause::is_permanent) faults must leave no quorum until
    /// they end the wait.
    pub permanent_fault_limit: Duration,
    /// Whether a call that waits does so in the queues of the lock.
    pub queues: bool,
    /// When its first attempt is made, if that is made in turn, too.
    pub first_in_turn: Option<Timestamp>,
}
