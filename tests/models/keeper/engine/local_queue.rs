//! The local queue. No thread waits for a lock here.

use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::NodeSet;
use crate::algorithm::time::{LeaseTime, Readings, Timestamp};
use crate::events::error::NodeFault;
use crate::protocol::lock_key::LockKey;

#[derive(Clone, Copy, Debug)]
pub(crate) struct HoldId;

impl HoldId {
    pub(crate) fn of(_token: &OwnerToken) -> HoldId {
        HoldId
    }
}

#[derive(Default)]
pub(crate) struct Queues {}

impl Queues {
    pub(crate) fn of(&self, key: &LockKey) -> LocalLock {
        LocalLock::alone(key)
    }
}

#[derive(Clone)]
pub(crate) struct LocalLock(LockKey);

impl LocalLock {
    pub(crate) fn alone(key: &LockKey) -> LocalLock {
        LocalLock(key.clone())
    }

    pub(crate) fn key(&self) -> &LockKey {
        &self.0
    }

    pub(crate) fn hold_until(&self, _hold: HoldId, _end: LeaseTime, _now: Readings) {}
    pub(crate) fn release(&self, _hold: HoldId, _now: Timestamp) {}
}

#[derive(Default)]
pub(crate) struct Unavailability {
    pub(crate) answered: NodeSet,
    pub(crate) asked: NodeSet,
    pub(crate) quorum_impossible_since: Option<Timestamp>,
    pub(crate) causes: Vec<NodeFault>,
}

/// No thread wants a permit.
pub(crate) mod slots {
    use crate::os::fork::ForkEpoch;

    pub(crate) struct Semaphores;

    impl Semaphores {
        pub(crate) fn new(_created_in: ForkEpoch) -> Semaphores {
            Semaphores
        }
    }
}
