//! Places in the queues of fair locks that are left: for good, or to the next call of the program.

use super::calls::Engine;
use crate::algorithm::lock_kind::LockKind;
use crate::algorithm::node::NodeSet;
use crate::algorithm::place::{Departure, PlaceId};
use crate::protocol::subscription::Key;

impl Engine {
    /// Deletes the place of a call in the queue of a fair lock on these nodes, and does not wait for that. With a
    /// successor, that call has one at the end.
    pub(crate) fn leave(&self, key: &[u8], kind: LockKind, place: (PlaceId, Departure), nodes: NodeSet) {
        self.driver.enter(|all, now, _| all.leave((key, kind), place, nodes, now));
    }

    /// Deletes the place that was left to a call, and ends the subscription that was kept for it, unless a thread
    /// listens.
    pub(crate) fn forgo(&self, key: &[u8], kind: LockKind, place: (PlaceId, Departure), nodes: NodeSet) {
        let keys = [Key::from(key)];
        self.driver.enter(|all, now, _| {
            all.leave((key, kind), place, nodes, now);
            all.forget_successor(&keys, now);
        });
    }
}
