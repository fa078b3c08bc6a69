//! Replies that are not handed out when they arrive.
//!
//! Commands go out in one flight with the handshake. A server in cluster mode is asked one question
//! more when it has reported that mode, behind those commands. So their replies come first, and
//! count as soon as that question is answered.
//!
//! Later such a server may reply that another one is the master of its shard. Then that one is
//! asked, and what was asked here is unanswered.

use crate::algorithm::vote::Vote;
use crate::fault::Fault;
use crate::protocol::form::Answer;
use crate::protocol::inspection::Inspected;
use crate::protocol::sent_operation::{Abandoned, SentOperation, Ticket};

/// What a reply brought whose meaning depends on whether the server may vote.
pub(super) enum Outcome {
    /// The question whether it may, refused if so.
    Check(Ticket, Option<Fault>),
    Inspected(Ticket, Box<Inspected>),
    Operation(SentOperation, Answer),
}

impl Outcome {
    /// Whether it counts at once, if it was run: a release is served by every server, and the calls
    /// that it has woken are reported with its reply.
    pub(super) fn is_departure(&self) -> bool {
        matches!(self, Outcome::Operation(sent, _) if sent.asked.departs())
    }

    /// The fault in the answer to an operation.
    #[inline]
    pub(super) fn fault(&self) -> Option<Fault> {
        match self {
            Outcome::Operation(_, Answer::Vote(Vote::Fault(fault))) => Some(*fault),
            _ => None,
        }
    }

    /// The request, as one without a reply.
    pub(super) fn abandoned(&self) -> (Ticket, Abandoned) {
        match self {
            Outcome::Check(ticket, _) | Outcome::Inspected(ticket, _) => {
                (*ticket, Abandoned::Check)
            }
            Outcome::Operation(sent, _) => (sent.ticket, Abandoned::of(sent, true)),
        }
    }
}
