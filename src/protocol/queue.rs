//! What a node is asked by the script of a lock's kind, and what it replies about the queue of
//! those that wait: the scripts are in `lua/`, [`algorithm::queue`](crate::algorithm::queue) has
//! the rules.
//!
//! ```text
//!    the lock is                take     its reply is                              release   leave
//!    free, the call is first    Granted  :1, or a number                           :0
//!    ours                       Granted  :1, or a number                           :1 to :4
//!    held, or others wait       Queued   storage, ticket, rank, held for, holder,  :0, :-2 to :-4
//!                                        slots, first
//! ```
//!
//! A release and a leave reply 1 where something was removed, 0 where not, an error where the node
//! refuses to. By 2 they report that another client was told, by 3 that more entries may be in
//! front whose clients are gone, by 4 that the user may not publish.

use super::form::{Answer, Form};
use super::kinds;
use super::kinds::wire::{Word, Words};
use super::operation::{Operation, Verb};
use super::resp;
use super::script::Script;
use crate::algorithm::digits;
use crate::algorithm::holder::HolderTag;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::queue::{Member, QueueReply, Slots, Storage, TakeRequest, TicketRequest};
use crate::fault::Cause;
use std::time::Duration;

/// What the name of a client's channel begins with. Its id is the rest.
pub const CHANNEL: &[u8] = b"quorumlock:";

/// Writes an operation: by the script's text, or by its hash.
pub(super) fn ask(
    out: &mut Vec<u8>,
    form: Form,
    key: &[u8],
    token: &OwnerToken,
    operation: &Operation,
) {
    let wire = kinds::wire(operation.kind);
    let value = if wire.has_label {
        Word::Value(token)
    } else {
        Word::Token(token)
    };
    let mut words = Words::new();
    let (member, head);
    match operation.verb {
        Verb::Acquire { ttl_millis } => {
            words.extend(&[Word::Text(b"acquire"), value, Word::Number(ttl_millis)])
        }
        Verb::Extend { ttl_millis } => {
            words.extend(&[Word::Text(b"extend"), value, Word::Number(ttl_millis)])
        }
        Verb::Keep { ttl_millis } => {
            words.extend(&[Word::Text(wire.keep), value, Word::Number(ttl_millis)])
        }
        Verb::Raise => words.extend(&[Word::Text(wire.raise), value]),
        Verb::Take {
            ttl_millis,
            request,
        } => {
            let TakeRequest {
                entry,
                ticket,
                stores_only,
                challenged,
                must_queue: _,
                by_command: _,
            } = request;
            let (number, mode) = match (ticket, stores_only) {
                (TicketRequest::Proposed(clock), false) => (clock, b"p"),
                (TicketRequest::Proposed(clock), true) => (clock, b"q"),
                (TicketRequest::Fixed(ticket), false) => (ticket, b"f"),
                (TicketRequest::Fixed(ticket), true) => (ticket, b"s"),
                (TicketRequest::None, _) => (0, b"n"),
            };
            member = entry.map_or(Member::NONE, |entry| entry.member());
            head = challenged.unwrap_or(Member::NONE);
            words.extend(&[
                Word::Text(b"take"),
                value,
                Word::Number(ttl_millis),
                Word::Text(member.text()),
            ]);
            words.extend(&[
                Word::Number(number),
                Word::Text(mode),
                Word::Text(head.text()),
            ]);
        }
        Verb::Release(departure) => {
            member = departure.map_or(Member::NONE, |departure| departure.entry.member());
            let ticket = departure.and_then(|departure| departure.ticket);
            let ticket = ticket.map_or(Word::Text(b""), Word::Number);
            words.extend(&[
                Word::Text(b"release"),
                value,
                Word::Text(member.text()),
                ticket,
            ]);
        }
        Verb::Leave(entry) => {
            member = entry.map_or(Member::NONE, |entry| entry.member());
            words.extend(&[Word::Text(b"leave"), Word::Text(member.text())]);
        }
    }
    (wire.write_tail)(&mut words, operation);
    if operation.is_release() {
        words.trim();
    }
    resp::begin(out, Script::CALL_WORDS + 1 + words.as_slice().len());
    wire.script.begin_call(out, form);
    resp::push(out, key);
    words.as_slice().iter().for_each(|word| word.push(out));
}

/// The answer to a take that was not granted. It is made of what is stored under the keys: damage
/// there is no fault of the connection.
pub(super) fn answer(text: &[u8], needs_queue: bool) -> Answer {
    match queued(text) {
        None => Answer::fault(Cause::UnexpectedValue),
        Some(QueueReply {
            storage: Storage::Denied,
            ..
        }) if needs_queue => Answer::fault(Cause::NoPermission),
        Some(reply) => Answer::Queued(Box::new(reply)),
    }
}

fn queued(text: &[u8]) -> Option<QueueReply> {
    let mut fields = text.splitn(7, |&byte| byte == b' ');
    let storage = match fields.next()? {
        b"y" => Storage::Before,
        b"n" => Storage::Now,
        b"o" => Storage::NoMemory,
        b"d" => Storage::Denied,
        _ => return None,
    };
    let ticket = digits::number(fields.next()?)?;
    let rank = digits::number(fields.next()?)?;
    let held = match fields.next()? {
        b"-1" => None,
        millis => Some(Duration::from_millis(digits::number(millis)?)),
    };
    let holder = fields.next()?;
    let is_other_library = holder.ends_with(b"!");
    let holder = Some(holder).filter(|text| *text != b"-").map(HolderTag::of);
    let slots = Slots::of(fields.next()?);
    let head = Some(fields.next()?)
        .filter(|head| !head.is_empty())
        .and_then(Member::new);
    Some(QueueReply {
        storage,
        ticket,
        rank: u32::try_from(rank).ok()?,
        held,
        holder,
        is_other_library,
        slots,
        head,
    })
}

#[cfg(test)]
mod tests;
