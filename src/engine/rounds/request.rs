//! What the nodes of a round are asked: kept once for all of them, as long as one may have to be
//! asked again.

use crate::algorithm::lease::OwnerToken;
use crate::protocol::lock_key::LockKey;
use crate::protocol::operation::Operation;
use crate::protocol::session::{Command, Ticket};

/// A command about the key of a lock.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) key: LockKey,
    pub(super) token: OwnerToken,
    pub(super) operation: Operation,
}

impl Request {
    pub(super) fn command(&self, ticket: Ticket) -> Command<'_> {
        let Request {
            key,
            token,
            operation,
        } = self;
        Command::new(ticket, operation, key, token)
    }
}
