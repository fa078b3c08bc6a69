//! The part of a conversation that is about releases: which requests are some, and whether one was run.

use super::{Event, HandshakeState, PendingOp, Request, Session, Ticket, credited};
use crate::algorithm::fault::{Cause, Fault};
use crate::algorithm::vote::Vote;
use crate::protocol::fenced::FencedOp;

impl Session {
    /// How many of the expected replies are to releases.
    pub fn unanswered_releases(&self) -> usize {
        self.unanswered_releases
    }
}

impl Request {
    pub(super) fn is_release(self) -> bool {
        match self {
            Request::Fenced { ask, .. } => matches!(ask.deed, FencedOp::Release(_)),
            Request::PendingOp(_, wish) => matches!(wish, PendingOp::Release { .. }),
            _ => false,
        }
    }
}

impl HandshakeState {
    /// Whether this is another URL of a server that has its vote already, or seems to be.
    pub fn is_duplicate(self) -> bool {
        matches!(self, HandshakeState::Rejected(Fault { cause: Cause::Duplicate(_), .. }))
    }

    /// The event in the answer to a release.
    pub(super) fn released(self, ticket: Ticket, vote: Vote) -> Event {
        match (vote, credited(vote, self)) {
            (Vote::Fault(reason), Vote::Fault(fault)) if reason.cause.is_not_run() => Event::NotRun(ticket, fault),
            (_, counted) => Event::Answered(ticket, counted),
        }
    }
}

impl Event {
    /// The vote that it is, if it is one.
    pub(super) fn vote(self) -> Option<Vote> {
        match self {
            Event::Answered(_, vote) => Some(vote),
            Event::NotRun(_, fault) => Some(Vote::Fault(fault)),
            _ => None,
        }
    }
}
