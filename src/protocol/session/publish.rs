//! The part of a conversation that tells those who wait of a release.

use super::{Expected, PendingOp, Request, Session, Ticket};
use crate::algorithm::fault::Fault;
use crate::algorithm::time::Timestamp;
use crate::protocol::command::Dialect;
use crate::protocol::dialect::Attempted;
use crate::protocol::hint;

impl Session {
    /// [`release`](Session::release), as [`hint::release_and_tell`] wrote it: those who wait for the lock are told.
    pub fn release_and_tell(&mut self, ticket: Ticket, request: &[u8], now: Timestamp) {
        self.outgoing.end().extend_from_slice(request);
        let tried = Attempted::nothing(self.dialect).in_next(&mut self.dialect);
        self.expect_release(ticket, tried, true, now);
    }

    /// Why those who wait cannot be told of a release on this connection, if that was found out and not asked since.
    pub fn newly_mute(&mut self) -> Option<Fault> {
        self.voice.take_refusal()
    }

    /// How many were told of a release within the answer to it that was the last event.
    pub fn audience(&mut self) -> u8 {
        std::mem::take(&mut self.audience)
    }

    /// Whether those who wait can be told of a release on this connection, as far as is known.
    pub fn may_tell(&self) -> bool {
        self.voice.may_tell()
    }

    /// Behind the answer to a release may stand how many were told of it. It belongs to that answer: nobody may refer to the
    /// release any more when the next one is looked at.
    pub(super) fn overhear(&mut self) {
        if let Some(Expected { request: Request::Publish(_), .. }) = self.expected.front()
            && let Ok(Some((reply, length))) = self.incoming.decode()
            && let Ok(told) = hint::publish_reply(reply)
        {
            self.audience = self.voice.told(told);
            self.taken(length);
        }
    }

    /// What a release is answered with, and in some dialects another reply for having told of it.
    pub(super) fn expect_release(&mut self, ticket: Ticket, tried: Attempted<Dialect>, tells: bool, now: Timestamp) {
        self.await_reply(Request::PendingOp(ticket, PendingOp::Release { tried, tells }), now);
        if tells && tried.last().publishes_apart() {
            self.await_reply(Request::Publish(ticket), now);
        }
    }
}
