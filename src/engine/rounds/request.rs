//! What the nodes of a round are asked: kept once for all of them, as long as one may have to be asked again.

use crate::algorithm::lease::OwnerToken;
use crate::protocol::operation::Operation;
use crate::protocol::session::{Command, Ticket};

/// Longest key buffer that an unused slot keeps.
const KEPT_KEY: usize = 256;

/// A command about the key of a lock, or none.
#[derive(Debug)]
pub(super) struct Request {
    key: Vec<u8>,
    token: OwnerToken,
    operation: Option<Operation>,
}

impl Request {
    pub(super) fn none() -> Request {
        let token = OwnerToken::from_entropy([0; OwnerToken::ENTROPY]);
        Request { key: Vec::new(), token, operation: None }
    }

    /// Sets the command, where there is none.
    pub(super) fn set(&mut self, key: &[u8], token: &OwnerToken, operation: Operation) {
        self.key.extend_from_slice(key);
        self.token.clone_from(token);
        self.operation = Some(operation);
    }

    pub(super) fn clear(&mut self) {
        self.key.clear();
        self.key.shrink_to(KEPT_KEY);
        self.operation = None;
    }

    pub(super) fn command(&self, ticket: Ticket) -> Option<Command<'_>> {
        Some(Command { ticket, operation: self.operation.as_ref()?, key: &self.key, token: &self.token })
    }
}
