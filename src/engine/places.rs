//! Places in the queues of fair locks that are left: for good, or to the next call of the program.

use super::calls::Engine;
use crate::algorithm::lock_kind::LockKind;
use crate::algorithm::node::NodeSet;
use crate::algorithm::place::{PlaceId, Successor};
use crate::protocol::subscription::Key;
use std::sync::Arc;

impl Engine {
    /// Deletes the place of a call in the queue of a fair lock on these nodes, and does not wait for that. With a
    /// successor, that call has one at the end.
    pub(crate) fn leave(&self, key: &[u8], kind: LockKind, place: (PlaceId, Option<PlaceId>), nodes: NodeSet) {
        self.driver.enter(|all, now, _| all.leave((key, kind), place, nodes, now));
    }

    /// Deletes the place of a call that none will make, and ends the subscription that was kept for it.
    pub(crate) fn forgo(&self, key: &Arc<str>, place: &Successor) {
        let keys = [Key::from(key.as_bytes())];
        self.driver.enter(|nodes, now, _| {
            nodes.leave((key.as_bytes(), place.kind), (place.id, None), place.nodes, now);
            nodes.forget_successor(&keys, now);
        });
    }
}
