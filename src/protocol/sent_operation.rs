//! An operation that was sent, and what a session says of its requests: the round that each belongs to, its kind, and
//! whether votes count.

use super::form::{Answer, Form};
use super::operation::{Kind, Operation, Verb};
use super::resp::Reply;
use super::script::Script;
use super::wake::Wake;
use super::{command, extension, lock_key, queue, read_write};
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

/// An operation, and the form that it was sent in last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentOperation {
    pub(super) ticket: Ticket,
    pub(super) operation: Operation,
    pub(super) form: Form,
    /// Of a set: which of its keys the next reply is about.
    pub(super) part: u8,
    /// Of the operation, which is large: looked at for each node and each reply.
    pub(super) is_release: bool,
    pub(super) script: Option<Script>,
}

impl SentOperation {
    /// An operation that is to be sent to the nodes of a round.
    pub fn new(ticket: Ticket, operation: Operation) -> SentOperation {
        let (is_release, script) = (operation.is_release(), operation.script());
        SentOperation { ticket, operation, form: Form::Text, part: 0, is_release, script }
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
        lock_key::each(key).zip(0..).for_each(|(key, part)| self.write_one(out, (key, part), token));
    }

    /// `part`: which key of a set it is.
    fn write_one(&self, out: &mut Vec<u8>, (key, part): (&[u8], u8), token: &OwnerToken) {
        let Operation { verb, kind } = self.operation;
        match verb {
            Verb::Acquire { ttl_millis } if kind.is_token_only() => command::acquire(out, key, token, ttl_millis),
            Verb::Take { ttl_millis, .. } if self.form == Form::Set => command::acquire(out, key, token, ttl_millis),
            Verb::Extend { ttl_millis } if kind.is_token_only() => {
                extension::extend(out, key, token, ttl_millis);
            }
            // The entry of a call that wants a set is in the queue of one of its keys.
            Verb::Release(Some(departure)) if departure.key != part => {
                queue::ask(out, self.form, key, token, Operation { verb: Verb::Release(None), kind });
            }
            _ => queue::ask(out, self.form, key, token, self.operation),
        }
    }

    /// What the reply reports of the queue.
    pub(super) fn wake(&self, reply: Reply<'_>) -> Wake {
        let looks = matches!(self.operation.verb, Verb::Release(_) | Verb::Leave(_));
        if looks { Wake::by(reply) } else { Wake::Nobody }
    }

    /// The meaning of the reply, in the form that it was sent in last.
    ///
    /// # Errors
    /// A reply that this operation never has.
    #[inline]
    pub(super) fn parse_reply(&self, reply: Reply<'_>) -> Result<Answer, ProtocolError> {
        let Operation { verb, kind } = self.operation;
        match (verb, kind) {
            (Verb::Take { .. } | Verb::Leave(_), _) => queue::reply(self.form, self.operation, reply),
            (_, Kind::ReadWrite(..) | Kind::Fenced(_)) => read_write::reply(self.form, self.operation, reply),
            (Verb::Acquire { .. }, _) => command::acquire_vote(reply).map(Answer::Vote),
            (Verb::Extend { .. } | Verb::Raise, _) => extension::extend_reply(self.operation, reply),
            (Verb::Release(_), _) => queue::reply(self.form, self.operation, reply),
        }
    }
}

/// The bytes of an operation that is sent to several nodes: written once, and copied where it is sent in the same form.
#[derive(Default)]
pub struct EncodedOperation {
    /// What the bytes are of: the ticket names one operation, key and token, which are written in this form.
    form: Option<(Ticket, Form)>,
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
        let form = Some((sent.ticket, sent.form));
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
    /// it wherever it is. Or it may not have removed an entry from a queue, whose client is told and removes it then.
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
        match operation.verb {
            Verb::Acquire { .. } | Verb::Take { .. } => Abandoned::Acquire,
            Verb::Extend { .. } | Verb::Leave(_) | Verb::Raise => Abandoned::Extend,
            Verb::Release(_) => Abandoned::Release,
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
