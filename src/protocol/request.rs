//! What the requests on a connection are known by: the round that each belongs to, its kind, and whether votes count.

use super::fenced::FencedOp;
use crate::algorithm::fault::Fault;

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
    /// It was but a question.
    Check,
    /// It may make our key live longer or raise its fence, now or later. Nothing is owed: the release of the lock ends it
    /// wherever it is.
    Extend,
    /// It may not have deleted the key, and must be sent again.
    Release,
}

impl Abandoned {
    /// What is left of a request about a fenced lock.
    pub(super) fn of(deed: FencedOp) -> Abandoned {
        match deed {
            FencedOp::Acquire { .. } => Abandoned::Acquire,
            FencedOp::Extend { .. } | FencedOp::Raise(_) => Abandoned::Extend,
            FencedOp::Release(_) => Abandoned::Release,
        }
    }
}

/// Whether the node on this connection may vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeState {
    /// The greeting is not answered yet.
    Pending,
    /// Its votes count.
    Accepted,
    /// Its votes count as this fault.
    Rejected(Fault),
}
