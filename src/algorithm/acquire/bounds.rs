//! What an attempt has shown about the wait that follows it.

use crate::algorithm::time::Timestamp;

/// What determines the next wait, in addition to the tally of an attempt.
#[derive(Clone, Copy, Debug)]
pub struct WaitBounds {
    /// When so many keys have expired that a quorum may be free; never, if that is not known.
    pub free_at: Timestamp,
    /// Whether so many nodes send messages that no release by a quorum goes unnoticed.
    pub is_attentive: bool,
    /// Whether a majority of nodes refused for a key without expiry.
    pub is_endless: bool,
}

impl WaitBounds {
    /// Nothing is known.
    pub const NONE: WaitBounds = WaitBounds {
        free_at: Timestamp::NEVER,
        is_attentive: false,
        is_endless: false,
    };
}
