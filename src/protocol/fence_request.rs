//! What an operation on a fenced lock says beside what it says of any lock.

use crate::algorithm::fence::FencingToken;

/// What an operation on a fenced lock says beside that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FenceRequest {
    /// The least fencing token. Only an acquisition and a raise send it.
    pub least: FencingToken,
    /// How long the node keeps the fence from now on. No shorter than any time to live.
    pub retention_millis: u64,
}
