//! What an extension changes of a held lock. While one thread extends it, others look at it.

use crate::algorithm::lease::{Ttl, Validity};
use crate::algorithm::node::NodeSet;
use crate::algorithm::time::LeaseTime;

/// How a lock is held. Its mutex is held for a moment only: nothing is sent and no callback runs
/// meanwhile.
pub(super) struct HeldState {
    /// The lease since the lock was taken or extended by hand. For a watched lock, the watchdog's
    /// thread has it.
    pub(super) lease: Validity,
    /// The longest that the lock can last from now on unless it is extended by hand. None when it has been released, or detached.
    pub(super) lasts: Option<Ttl>,
    /// The longest time to live that any node may have been asked for.
    pub(super) longest: Ttl,
    /// The nodes that may have the key.
    pub(super) reached: NodeSet,
    /// Until when the lock is kept, however early it is released.
    pub(super) kept_until: LeaseTime,
}
