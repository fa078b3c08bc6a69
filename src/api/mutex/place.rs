//! The place of one call in the queue of a fair lock.

use super::call::LockCall;
use crate::algorithm::node::NodeSet;
use crate::algorithm::place::{PlaceId, PlaceKeeper};

/// The place of one call, until it ends: whatever ends the call, it is deleted.
pub(super) struct HeldPlace<'m> {
    call: LockCall<'m>,
    id: PlaceId,
    /// The nodes that may have it.
    nodes: NodeSet,
}

impl<'m> HeldPlace<'m> {
    /// The place of a call that has not asked yet.
    pub(super) fn new(call: LockCall<'m>, random: u64) -> HeldPlace<'m> {
        HeldPlace { call, id: PlaceId::new(random), nodes: NodeSet::EMPTY }
    }

    /// The keeper of a call that `waits` or not.
    pub(super) fn keeper(&self, waits: bool) -> PlaceKeeper {
        PlaceKeeper::new(self.id, self.call.client.settings().place_lease, waits)
    }

    /// An attempt may have left it on these nodes.
    pub(super) fn note_stored(&mut self, nodes: NodeSet) {
        self.nodes = self.nodes.union(nodes);
    }

    pub(super) fn id(&self) -> PlaceId {
        self.id
    }
}

impl Drop for HeldPlace<'_> {
    fn drop(&mut self) {
        if !self.nodes.is_empty() {
            self.call.client.engine().leave(self.call.key, self.call.kind(), self.id, self.nodes);
        }
    }
}
