//! An operation that was sent, and what a session says of its requests: the round that each belongs to, its kind, and
//! whether votes count.

use super::dialect::{Answer, Dialect, TriedDialects};
use super::fair_operation::FairOperation;
use super::operation::{Operation, ReadWriteOperation};
use super::resp::Reply;
use super::script::Script;
use super::{command, extension, fair, fenced, lock_key, read_write};
use crate::algorithm::fault::{Cause, Fault};
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::protocol_error::ProtocolError;

/// Names the round that a request belongs to. A slot is used again; its generation then differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// Which slot of the rounds in flight.
    pub slot: u32,
    /// Which use of that slot.
    pub generation: u32,
}

/// An operation, and the dialects that it has been sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentOperation {
    pub(super) ticket: Ticket,
    pub(super) operation: Operation,
    pub(super) tried: TriedDialects,
    /// Of a set: which of its keys the next reply is about.
    pub(super) part: u8,
    /// Of the operation, which is large: looked at for each node and each reply.
    pub(super) is_release: bool,
    pub(super) publishes: bool,
    pub(super) script: Option<Script>,
}

impl SentOperation {
    /// An operation that is to be sent to the nodes of a round.
    pub fn new(ticket: Ticket, operation: Operation) -> SentOperation {
        let (is_release, publishes, script) =
            (operation.is_release(), operation.publishes(), operation.cached_script());
        let tried = TriedDialects::first(Dialect::Eval);
        SentOperation { ticket, operation, tried, part: 0, is_release, publishes, script }
    }

    /// The round it belongs to.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// What the node was asked.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// Whether it ends a lock.
    pub fn is_release(&self) -> bool {
        self.is_release
    }

    /// Writes the command, of a set one for each key. Apart from what runs for each node.
    #[inline(never)]
    fn write(&self, out: &mut Vec<u8>, key: &[u8], token: &OwnerToken) {
        match (self.operation, self.tried.last()) {
            (Operation::Acquire { ttl_millis, .. }, Dialect::Msetex) => {
                command::acquire_all(out, key, token, ttl_millis);
            }
            _ => lock_key::each(key).for_each(|key| self.write_one(out, key, token)),
        }
    }

    fn write_one(&self, out: &mut Vec<u8>, key: &[u8], token: &OwnerToken) {
        let dialect = self.tried.last();
        match self.operation {
            Operation::Acquire { ttl_millis, fence: None } => command::acquire(out, key, token, ttl_millis),
            Operation::Extend { ttl_millis, fence: None } => extension::extend(out, dialect, key, token, ttl_millis),
            Operation::Release { hint, fence: None } => command::release(out, dialect, key, token, hint),
            Operation::Fair(operation) => fair::ask(out, dialect, key, token, operation),
            Operation::ReadWrite(operation) => read_write::ask(out, dialect, key, token, operation),
            fenced => fenced::ask(out, dialect, key, token, fenced),
        }
    }

    /// The meaning of the reply, in the dialect that it was sent in last.
    ///
    /// # Errors
    /// A reply that this operation never has.
    #[inline]
    pub(super) fn parse_reply(&self, reply: Reply<'_>) -> Result<Answer, ProtocolError> {
        let dialect = self.tried.last();
        match self.operation {
            Operation::Acquire { fence: None, .. } if dialect == Dialect::Msetex => command::acquire_all_reply(reply),
            Operation::Acquire { fence: None, .. } => command::acquire_vote(reply).map(Answer::Vote),
            Operation::Extend { fence: None, .. } => extension::extend_reply(dialect, reply),
            Operation::Release { fence: None, .. } => command::release_reply(reply),
            Operation::Fair(operation) => fair::reply(dialect, operation, reply),
            Operation::ReadWrite(operation) => read_write::reply(dialect, operation, reply),
            fenced => fenced::reply(dialect, fenced, reply),
        }
    }
}

/// The bytes of an operation that is sent to several nodes: written once, and copied where it is sent in the same
/// dialect.
#[derive(Default)]
pub struct EncodedOperation {
    /// What the bytes are of: the ticket names one operation, key and token, which are written in this dialect, and
    /// with a hint or without.
    form: Option<(Ticket, Dialect, bool)>,
    bytes: Vec<u8>,
}

impl EncodedOperation {
    /// Nothing is encoded. The memory is kept.
    pub fn clear(&mut self) {
        self.form = None;
        self.bytes.clear();
    }

    /// Writes the command.
    #[inline]
    pub(super) fn write(&mut self, sent: &SentOperation, out: &mut Vec<u8>, key: &[u8], token: &OwnerToken) {
        let form = Some((sent.ticket, sent.tried.last(), sent.publishes));
        if self.form != form {
            self.clear();
            sent.write(&mut self.bytes, key, token);
            self.form = form;
        }
        out.extend_from_slice(&self.bytes);
    }
}

/// What kind of request a lost connection left unanswered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abandoned {
    /// It may have set the key, now or later.
    Acquire,
    /// It was only a question.
    Check,
    /// It may make our key live longer or raise its fence, now or later. Nothing is owed: the release of the lock ends
    /// it wherever it is. Or it may not have deleted a place in a queue, which ends by itself.
    Extend,
    /// It may not have deleted the key, and must be sent again.
    Release,
    /// It was to set the key, or to make it live longer, and no byte of it was written.
    Unwritten(SentOperation),
}

impl Abandoned {
    /// The kind of an operation. `is_written`: a byte of it may have been written.
    pub(super) fn of(sent: &SentOperation, is_written: bool) -> Abandoned {
        match Abandoned::from(sent.operation()) {
            Abandoned::Acquire | Abandoned::Extend if !is_written => Abandoned::Unwritten(*sent),
            written => written,
        }
    }
}

impl From<&Operation> for Abandoned {
    fn from(operation: &Operation) -> Abandoned {
        match operation {
            Operation::Acquire { .. }
            | Operation::Fair(FairOperation::Take { .. })
            | Operation::ReadWrite(ReadWriteOperation::Acquire { .. }) => Abandoned::Acquire,
            Operation::Extend { .. }
            | Operation::Fair(FairOperation::Leave { .. })
            | Operation::Raise(_)
            | Operation::ReadWrite(ReadWriteOperation::Extend { .. } | ReadWriteOperation::Raise(_)) => {
                Abandoned::Extend
            }
            Operation::Release { .. }
            | Operation::Fair(FairOperation::Release { .. })
            | Operation::ReadWrite(ReadWriteOperation::Release { .. }) => Abandoned::Release,
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
    pub fn is_duplicate(&self) -> bool {
        matches!(self, HandshakeState::Rejected(Fault { cause: Cause::Duplicate(_), .. }))
    }

    /// The fault that its votes count as, if the node may not vote. Not even a refusal counts then: of two URLs that
    /// lead to one server, the second is refused because of our own key.
    pub(super) fn rejection(&self) -> Option<&Fault> {
        match self {
            HandshakeState::Rejected(fault) => Some(fault),
            HandshakeState::Pending | HandshakeState::Accepted => None,
        }
    }
}
