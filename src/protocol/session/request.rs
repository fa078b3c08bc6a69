//! The requests of a session, each with one reply.

use crate::protocol::form::Form;
use crate::protocol::handshake::Part;
use crate::protocol::sent_operation::{Command, SentOperation, Ticket};
use crate::protocol::{command, node_note};

/// One request.
#[derive(Clone, Copy)]
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
    /// The value of the key of a lock, which is fenced if so.
    Value(bool),
    /// How many calls wait for that lock.
    Waiting,
    /// Until when: the last question about its holder.
    End(Ticket, bool),
}

impl Request {
    /// Writes a command in this form. Returns a request for each of its keys, of which the last one
    /// ends the operation.
    pub(super) fn write(
        command: &Command<'_>,
        form: Form,
        out: &mut Vec<u8>,
    ) -> impl Iterator<Item = Request> + use<> {
        command.write(out, form);
        let keys = command.key.each().len() as u8;
        let sent = SentOperation {
            ticket: command.ticket,
            asked: command.asked,
            form,
            part: 0,
        };
        (0..keys).map(move |part| {
            let sent = SentOperation { part, ..sent };
            if part + 1 < keys {
                Request::Part(sent)
            } else {
                Request::Operation(sent)
            }
        })
    }

    /// Writes the question to a server whether it is still the master that it was, and what it
    /// remembers of itself.
    pub(super) fn write_look(
        out: &mut Vec<u8>,
        node_key: Option<&str>,
    ) -> impl Iterator<Item = Request> + use<> {
        const PARTS: [Part; 3] = [Part::InfoReplication, Part::NodeKey, Part::NodeTime];
        command::info(out, "replication");
        node_key
            .into_iter()
            .for_each(|key| node_note::look(out, key.as_bytes()));
        PARTS
            .into_iter()
            .take(if node_key.is_some() { PARTS.len() } else { 1 })
            .map(Request::Recheck)
    }

    /// Whether the reply may be the value of a key, in which any program may have stored anything.
    pub(super) fn is_for_value(&self) -> bool {
        use Request::{Handshake, Note, Recheck, Value};
        matches!(
            self,
            Handshake(Part::NodeKey) | Recheck(Part::NodeKey) | Note | Value(_)
        )
    }

    pub(super) fn is_release(&self) -> bool {
        matches!(self, Request::Operation(sent) if sent.asked.is_release())
    }
}
