//! What the nodes of a round are asked: kept once for all of them, as long as one may have to be asked again.

use super::Rounds;
use crate::algorithm::node::NodeSet;
use crate::protocol::operation::Operation;
use crate::protocol::session::{Command, Ticket};

impl Rounds {
    /// Says what these nodes are asked, now, and others when they can be asked.
    pub(crate) fn ask(&mut self, ticket: Ticket, operation: Operation, nodes: NodeSet) {
        if let Some(round) = self.round_mut(ticket) {
            round.operation = Some(operation);
        }
        self.refer(ticket, nodes);
    }

    /// What the nodes of a round are asked.
    pub(crate) fn command(&self, ticket: Ticket) -> Option<Command<'_>> {
        let round = self.round(ticket)?;
        Some(Command { ticket, operation: round.operation.as_ref()?, key: &round.key, token: &round.token })
    }
}
