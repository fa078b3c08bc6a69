//! The requests of a session, each with one reply.

use crate::protocol::handshake::Part;
use crate::protocol::sent_operation::{SentOperation, Ticket};

/// One request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// What the handshake ends with, asked once more.
    Check(Ticket),
    Handshake(Part),
    Operation(SentOperation),
    /// One of a set but the last, which ends its operation.
    Part(SentOperation),
    Recheck(Part),
    /// A note of the node about itself.
    Note,
    /// What stands under the key of a lock, which is fenced if so.
    Value(bool),
    /// How many calls wait for that lock.
    Waiting,
    /// Until when: the last question about its holder.
    End(Ticket, bool),
}

impl Request {
    /// The part of a handshake that it is, or repeats.
    pub(super) fn part(self) -> Part {
        if let Request::Handshake(part) | Request::Recheck(part) = self { part } else { Part::InfoReplication }
    }

    pub(super) fn is_release(&self) -> bool {
        matches!(self, Request::Operation(sent) if sent.asked.is_release())
    }
}
