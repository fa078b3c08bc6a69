//! The place of one call in the queue of a fair lock.

use super::call::LockCall;
use super::waiter::ReleaseWaiter;
use crate::algorithm::acquire::Acquire;
use crate::algorithm::node::NodeSet;
use crate::algorithm::place::{Departure, PlaceAnswer, PlaceId, PlaceKeeper, Successor};
use crate::algorithm::time::Timestamp;
use crate::engine::calls::RoundResult;
use crate::engine::local_queue::QueueTicket;

/// The place of one call, until it ends: whatever ends the call, it is deleted. A call that wins while other programs
/// wait may leave one to the next thread of its own: one command does both, and the program goes on listening.
pub(super) struct HeldPlace<'m> {
    call: LockCall<'m>,
    id: PlaceId,
    /// The nodes that may have it.
    nodes: NodeSet,
    /// Whether the call before it has left it, with a subscription that no thread may have gone on with.
    is_taken_over: bool,
    departure: Departure,
}

impl<'m> HeldPlace<'m> {
    /// The place of a call that has not asked yet, and `waits` or not, if it is for a fair lock. It may have been left
    /// one by the thread of this program that was the head before.
    pub(super) fn begin(
        call: LockCall<'m>,
        ticket: Option<&QueueTicket<'_>>,
        waits: bool,
        machine: &mut Acquire,
        random: fn() -> u64,
    ) -> Option<HeldPlace<'m>> {
        let taken_over = ticket.and_then(QueueTicket::take_over);
        if !call.is_fair {
            if let Some((key, place)) = taken_over {
                // The call before it was for the fair lock with this key.
                let left = (place.id, Departure::GivenUp);
                call.client.engine().forgo(key.as_bytes(), place.kind, left, place.nodes);
            }
            return None;
        }
        let (id, nodes) = taken_over
            .as_ref()
            .map_or_else(|| (PlaceId::new(random()), NodeSet::EMPTY), |(_, place)| (place.id, place.nodes));
        let keeper = PlaceKeeper::new(id, call.client.settings().place_lease, waits);
        if let (Some((_, place)), true) = (&taken_over, waits) {
            machine.await_turn(keeper.refreshed_after(place.since), call.started);
        }
        machine.keep_place(keeper);
        Some(HeldPlace { call, id, nodes, is_taken_over: taken_over.is_some(), departure: Departure::GivenUp })
    }

    /// Takes what an attempt that may have `reached` these nodes has found out about the place, and where it may have
    /// left it.
    pub(super) fn answered(
        &mut self,
        machine: &mut Acquire,
        waiter: Option<&ReleaseWaiter<'_>>,
        reached: NodeSet,
        result: &RoundResult,
    ) {
        let attempts = machine.attempts();
        let Some(keeper) = machine.keeper() else { return };
        let (tally, is_stored) = (&result.tally, keeper.request().lasts_millis.is_some());
        if is_stored {
            // Of a first attempt that has won, a node that has not answered yet may have it: that is rare, and it
            // lapses.
            let may_have = if result.is_won() && attempts == 0 { tally.refused() } else { reached };
            self.nodes = self.nodes.union(may_have);
        }
        let has_quorum = tally.granted().len() + tally.refused().len() >= tally.quorum();
        // Where the lock was granted, no place is stored.
        let is_everywhere = tally.granted().is_empty();
        let answer = result.place.map(|place| PlaceAnswer { is_common: place.is_common && is_everywhere, ..place });
        keeper.answered(has_quorum, answer, result.free_at);
        if let (Some(waiter), Some(_)) = (waiter, result.place) {
            waiter.listener().note_place(self.id, keeper.is_first());
        }
    }

    pub(super) fn id(&self) -> PlaceId {
        self.id
    }
}

impl HeldPlace<'_> {
    /// Leaves the queue of a lock that was won. If other programs wait, and another thread of this one, the nodes put a
    /// place at the end for that. Without other programs it asks by itself, which is quicker. Gives the call that has a
    /// place then.
    pub(super) fn leave_won(
        mut self,
        waits: Option<(&QueueTicket<'_>, &ReleaseWaiter<'_>)>,
        attempts: u32,
        random: fn() -> u64,
        now: Timestamp,
    ) -> Option<PlaceId> {
        self.departure = Departure::Won(None);
        let (ticket, waiter) = waits?;
        let has_others = attempts > 1 || waiter.listener().has_heard_of_others();
        if self.nodes.is_empty() || !has_others {
            return None;
        }
        let (id, kind, nodes) = (PlaceId::new(random()), self.call.kind(), self.nodes);
        if !ticket.leave_to_next(Successor { id, kind, nodes, since: now }) {
            return None;
        }
        self.call.client.engine().leave(self.call.key.as_bytes(), kind, (self.id, Departure::Won(Some(id))), nodes);
        self.nodes = NodeSet::EMPTY;
        Some(id)
    }
}

impl Drop for HeldPlace<'_> {
    fn drop(&mut self) {
        let (engine, key, kind) = (self.call.client.engine(), self.call.key.as_bytes(), self.call.kind());
        let place = (self.id, self.departure);
        match self.nodes.is_empty() {
            true => {}
            false if self.is_taken_over => engine.forgo(key, kind, place, self.nodes),
            false => engine.leave(key, kind, place, self.nodes),
        }
    }
}
