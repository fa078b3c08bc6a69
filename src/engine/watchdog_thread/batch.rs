//! What the thread works on at a time, and what it has found about that.

use super::watched::WatchedLock;
use crate::algorithm::lease::Ttl;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::renewal::LeaseId;
use crate::events::event::LossReason;
use crate::fault::Fault;
use crate::protocol::session::Ticket;
use std::sync::Arc;

#[derive(Default)]
pub(super) struct Batch {
    pub(super) ended: Vec<LeaseId>,
    pub(super) due: Vec<LeaseId>,
    pub(super) lost: Vec<Arc<WatchedLock>>,
    pub(super) extending: Vec<(Arc<WatchedLock>, Ttl)>,
    pub(super) tickets: Vec<Ticket>,
    pub(super) unreported: Vec<(Arc<WatchedLock>, Finding)>,
}

/// What is to be reported about a lock.
pub(super) enum Finding {
    /// By this time to live; the key is being set again on these nodes.
    Extended(Ttl, NodeSet),
    Failed(Vec<(NodeId, Fault)>),
    /// With whether the observer is still to be notified. Callbacks run in any case.
    Lost(LossReason, bool),
}

impl Batch {
    /// Whether anything is left whose report had to wait, and need not any more.
    pub(super) fn has_reportable(&self) -> bool {
        self.unreported
            .iter()
            .any(|(watched, _)| watched.is_announced())
    }
}
