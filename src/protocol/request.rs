//! What the requests on a connection are known by: the round that each belongs to, its kind, and whether votes count.

use super::operation::Operation;
use crate::algorithm::fault::{Cause, Fault};

/// Names the round that a request belongs to. A slot is used again; its generation then differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// Which slot of the rounds in flight.
    pub slot: u32,
    /// Which use of that slot.
    pub generation: u32,
}

/// What kind of request a lost connection left unanswered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abandoned {
    /// It may have set the key, now or later.
    Acquire,
    /// It was only a question.
    Check,
    /// It may make our key live longer or raise its fence, now or later. Nothing is owed: the release of the lock ends it
    /// wherever it is.
    Extend,
    /// It may not have deleted the key, and must be sent again.
    Release,
}

impl From<Operation> for Abandoned {
    fn from(operation: Operation) -> Abandoned {
        match operation {
            Operation::Acquire { .. } => Abandoned::Acquire,
            Operation::Extend { .. } | Operation::Raise(_) => Abandoned::Extend,
            Operation::Release { .. } => Abandoned::Release,
        }
    }
}

/// Whether the node on this connection may vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeState {
    /// The handshake is not answered yet.
    Pending,
    /// Its votes count.
    Accepted,
    /// Its votes count as this fault.
    Rejected(Fault),
}

impl HandshakeState {
    /// Whether this is another URL of a server that has its vote already, or seems to be.
    pub fn is_duplicate(self) -> bool {
        matches!(self, HandshakeState::Rejected(Fault { cause: Cause::Duplicate(_), .. }))
    }
}
