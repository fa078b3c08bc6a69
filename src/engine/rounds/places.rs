//! Rounds of attempts for fair locks: what nodes answer about the place.

use super::{Round, Rounds};
use crate::algorithm::lock_kind::LockKind;
use crate::algorithm::node::NodeId;
use crate::algorithm::place::PlaceAnswer;
use crate::protocol::session::Ticket;

impl Round {
    /// Whether an attempt for a fair lock is lost, and so many nodes are still to answer that a quorum may: its answers
    /// are what the place comes from.
    pub(super) fn lacks_places(&self) -> bool {
        let answered = self.tally.granted().len() + self.tally.refused().len();
        let quorum = self.tally.quorum();
        let is_fair = matches!(self.kind, LockKind::Fair { .. });
        is_fair && answered < quorum && answered + self.tally.undecided().len() >= quorum
    }
}

impl Rounds {
    /// Notes what a node that has not granted has answered about the place. To be called before its vote.
    pub(crate) fn record_place(&mut self, ticket: Ticket, node: NodeId, answer: PlaceAnswer) {
        if let Some(round) = self.round_mut(ticket)
            && round.tally.undecided().contains(node)
        {
            round.place = Some(round.place.map_or(answer, |place| place.and(answer)));
        }
    }
}
