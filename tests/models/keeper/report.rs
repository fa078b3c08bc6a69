//! Tells an observer that is not there.

use crate::error::NodeFault;
use crate::event::LossReason;
use crate::net::engine::Count;
use crate::proto::fault::Fault;
use crate::proto::node::{NodeId, NodeSet};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone)]
pub(crate) struct Reporter;

impl Reporter {
    pub(crate) fn is_listening(&self) -> bool {
        false
    }

    pub(crate) fn has_news(&self) -> bool {
        false
    }

    pub(crate) fn tell_last_news(&self, _has_time: impl Fn() -> bool) {}

    pub(crate) fn tell_news(&self) {}

    pub(crate) fn tell_some_news(&self, _most: usize) {}

    pub(crate) fn without_share(&self) -> Reporter {
        self.clone()
    }

    pub(crate) fn extended(&self, _key: &Arc<str>, _ttl: Duration, _automatic: bool, _repaired: NodeSet) {}

    pub(crate) fn extension_failed(&self, _: &Arc<str>, _remaining: impl FnOnce() -> Duration, _: &[NodeFault]) {}

    pub(crate) fn renewal_failed(&self, _key: &Arc<str>, _remaining: Duration, _faults: &[(NodeId, Fault)]) {}

    pub(crate) fn lost(&self, _key: &Arc<str>, _reason: LossReason) {}

    pub(crate) fn unlocked(&self, _key: &Arc<str>, _was_valid: bool, _loss_told: bool, _count: &Count) {}
}
