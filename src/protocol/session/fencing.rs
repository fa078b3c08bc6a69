//! The part of a conversation that is about fenced locks.
//!
//! A request whose script the server does not know by its hash is handed back, to be queued once more by its text, or not
//! at all: one that takes the key must not go out behind the release of an attempt that was given up meanwhile.

use super::{Event, HandshakeState, Request, Session, Ticket};
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::protocol::fenced::{self, FencedOp, FencedReply, FencedRequest};

impl Session {
    /// Queues a request about the key of a fenced lock.
    pub fn fenced(&mut self, ticket: Ticket, ask: FencedRequest, key: &[u8], token: &OwnerToken, now: Timestamp) {
        if !matches!(ask.deed, FencedOp::Release(_)) {
            self.recheck(now);
        }
        // An extension is never said twice: behind a later one, it would shorten what that has gained.
        let by_hash = self.fence_memory.by_hash() && !matches!(ask.deed, FencedOp::Extend { .. });
        fenced::ask(self.outgoing.end(), by_hash, key, token, &ask);
        self.await_reply(Request::Fenced { ticket, ask, by_hash }, now);
    }
}

impl FencedReply {
    /// The event in what the server said.
    pub(super) fn event(self, ticket: Ticket, ask: FencedRequest, standing: HandshakeState) -> Event {
        match (self, standing) {
            (FencedReply::NotByHash, _) => Event::UnknownScript(ticket, ask),
            (FencedReply::Vote(vote), _) if matches!(ask.deed, FencedOp::Release(_)) => standing.released(ticket, vote),
            (_, HandshakeState::Rejected(fault)) => Event::Answered(ticket, Vote::Fault(fault)),
            (FencedReply::Fence(fence), _) => Event::Fenced(ticket, fence),
            (FencedReply::Held(left), _) => Event::Held(ticket, left),
            (FencedReply::Vote(vote), _) => Event::Answered(ticket, vote),
        }
    }
}
