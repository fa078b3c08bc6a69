//! The local queue. No thread waits for a lock here.

use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::NodeSet;
use crate::algorithm::time::{LeaseTime, Readings, Timestamp};
use crate::events::error::NodeFault;
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
pub(crate) struct HoldId;

impl HoldId {
    pub(crate) fn of(_token: &OwnerToken) -> HoldId {
        HoldId
    }
}

#[derive(Default)]
pub(crate) struct Queues {}

#[derive(Default)]
pub(crate) struct Unavailability {
    pub(crate) answered: NodeSet,
    pub(crate) asked: NodeSet,
    pub(crate) quorum_impossible_since: Option<Timestamp>,
    pub(crate) causes: Vec<NodeFault>,
}

impl Queues {
    pub(crate) fn hold_until(&self, _keys: &[Arc<str>], _hold: HoldId, _end: LeaseTime, _now: Readings) {}
    pub(crate) fn release(&self, _keys: &[Arc<str>], _hold: HoldId, _now: Timestamp) {}
}

/// No thread wants a permit.
pub(crate) mod slots {
    use super::Queues;
    use crate::os::fork::ForkEpoch;
    use std::sync::Arc;

    pub(crate) struct Semaphores;

    impl Semaphores {
        pub(crate) fn new(_holders: Arc<Queues>, _created_in: ForkEpoch) -> Semaphores {
            Semaphores
        }
    }
}
