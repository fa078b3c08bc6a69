//! What a single node announces again and again in vain: how often it is believed, and for how long it is not.

use std::time::Duration;

/// What a single node has announced in vain is distrusted: where there are other nodes, and where not. The waiter of a
/// single node has no other sign, and loses to quicker ones.
const DISTRUST: [Distrust; 2] = [
    Distrust { most_vain: 2, growth: 3, longest: Duration::from_secs(10) },
    Distrust { most_vain: 4, growth: 1, longest: Duration::from_millis(250) },
];

/// How a single node is distrusted.
pub(super) struct Distrust {
    /// How many announcements may be in vain before.
    pub(super) most_vain: u32,
    /// By which power of two the time grows, for which they are ignored, and how long it is at most.
    pub(super) growth: u32,
    pub(super) longest: Duration,
}

impl Distrust {
    pub(super) fn with_quorum(quorum: usize) -> &'static Distrust {
        &DISTRUST[usize::from(quorum == 1)]
    }
}
