//! What an extension changes of a held lock. While a thread extends the lock of a shared guard, others look at it.

use crate::algorithm::lease::{Ttl, Validity};
use crate::algorithm::node::NodeSet;
use crate::os::sync::{Mutex, lock};
use std::num::NonZeroU64;

/// What is held.
#[derive(Clone, Copy)]
pub(super) struct Held {
    /// The lease since the lock was taken or extended by hand. For a watched lock, the watchdog's thread has it.
    pub(super) lease: Validity,
    /// The longest that the lock can last from now on unless it is extended by hand, in milliseconds. None when it has
    /// been released, or detached.
    pub(super) lasts: Option<NonZeroU64>,
    /// The longest time to live that any node may have been asked for, in milliseconds.
    pub(super) longest: NonZeroU64,
    /// The nodes that may have the key.
    pub(super) reached: NodeSet,
}

impl Held {
    /// A lock that was taken, by this time to live.
    pub(super) fn since_taken(lease: Validity, ttl: Ttl, reached: NodeSet) -> Held {
        Held { lease, lasts: Some(ttl.longest()), longest: ttl.longest(), reached }
    }
}

/// It, with a mutex that is held for a moment only: nothing is sent and no callback runs meanwhile.
pub(super) struct HeldCell(Mutex<Held>);

impl HeldCell {
    pub(super) fn new(held: Held) -> HeldCell {
        HeldCell(Mutex::new(held))
    }

    pub(super) fn get(&self) -> Held {
        *lock(&self.0)
    }

    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Held) -> R) -> R {
        change(&mut lock(&self.0))
    }
}
