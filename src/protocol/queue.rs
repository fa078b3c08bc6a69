//! What a node is asked by the script of a lock's kind, and what it replies about the queue of those that wait: the
//! scripts are in `lua/`, [`algorithm::queue`](crate::algorithm::queue) has the rules.
//!
//! ```text
//!    the lock is                take     its reply is                              release   leave
//!    free, the call is first    Granted  :1, or a number                           :0
//!    ours                       Granted  :1, or a number                           :1 to :4
//!    held, or others wait       Queued   storage, ticket, rank, held for, holder,  :0, :-2 to :-4
//!                                        slots, first
//! ```
//!
//! A release and a leave reply 1 where something was removed, 0 where not. By 2 they report that another client was
//! told, by 3 that more entries may be in front whose clients are gone, by 4 that the user may not publish.

use super::form::{Answer, Form};
use super::operation::{Kind, Operation, Verb};
use super::resp;
use super::script::Script;
use crate::algorithm::fault::Cause;
use crate::algorithm::holder::HolderTag;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::lock_kind::Access;
use crate::algorithm::queue::{Member, QueueReply, Slots, Storage, TakeRequest, TicketRequest};
use std::time::Duration;

/// What the name of a client's channel begins with. Its id is the rest.
pub const CHANNEL: &[u8] = b"quorumlock:";

/// Words of the longest request, behind the key.
const MOST_WORDS: usize = 12;

/// Writes an operation: by the script's text, or by its hash.
pub(super) fn ask(out: &mut Vec<u8>, form: Form, key: &[u8], token: &OwnerToken, operation: &Operation) {
    let &Operation { verb, kind } = operation;
    // Labels stay out of the key of a read-write lock: they would count against its room.
    let value = token.value();
    let value = if matches!(kind, Kind::ReadWrite(..)) { &value[..OwnerToken::LENGTH] } else { &value[..] };
    let mut words = Words { words: [&[]; MOST_WORDS], count: 0 };
    let [mut first, mut second, mut third, mut fourth, mut fifth] = [[0; 20]; 5];
    let (member, head);
    let fence = kind.fence();
    let retention = fence.map_or(&b""[..], |fence| resp::decimal(fence.retention_millis, &mut first));
    let least = fence.map_or(&b""[..], |fence| resp::decimal(fence.least.get(), &mut second));
    match verb {
        Verb::Acquire { ttl_millis } => {
            words.extend(&[b"acquire", value, resp::decimal(ttl_millis, &mut third)]);
            words.tail(kind, &[retention, least]);
        }
        Verb::Extend { ttl_millis } => {
            words.extend(&[b"extend", value, resp::decimal(ttl_millis, &mut third)]);
            words.tail(kind, &[retention]);
        }
        Verb::Raise if matches!(kind, Kind::Fenced(_)) => words.extend(&[b"raise", value, least, retention]),
        // An extension that adds no time.
        Verb::Raise => words.extend(&[b"extend", value, b"0", b"w", retention, least]),
        Verb::Take { ttl_millis, request } => {
            let TakeRequest { entry, ticket, stores_only, challenged, must_queue: _, by_command: _ } = request;
            let (number, mode) = match (ticket, stores_only) {
                (TicketRequest::Proposed(clock), false) => (clock, b"p"),
                (TicketRequest::Proposed(clock), true) => (clock, b"q"),
                (TicketRequest::Fixed(ticket), false) => (ticket, b"f"),
                (TicketRequest::Fixed(ticket), true) => (ticket, b"s"),
                (TicketRequest::None, _) => (0, b"n"),
            };
            member = entry.map_or(Member::NONE, |entry| entry.member());
            head = challenged.unwrap_or(Member::NONE);
            words.extend(&[b"take", value, resp::decimal(ttl_millis, &mut third), member.text()]);
            words.extend(&[resp::decimal(number, &mut fourth), mode, head.text()]);
            words.tail(kind, &[retention, least]);
            if let Kind::Permit(permits) = kind {
                words.extend(&[resp::decimal(permits.into(), &mut fifth)]);
            }
        }
        Verb::Release(departure) => {
            words.extend(&[b"release", value]);
            member = departure.map_or(Member::NONE, |departure| departure.entry.member());
            let ticket = departure.and_then(|departure| departure.ticket);
            let ticket = ticket.map_or(&b""[..], |ticket| resp::decimal(ticket, &mut third));
            match (kind, ticket.is_empty()) {
                (Kind::Fenced(_), _) => words.extend(&[member.text(), ticket, retention]),
                (_, true) if departure.is_none() => {}
                (_, true) => words.extend(&[member.text()]),
                (_, false) => words.extend(&[member.text(), ticket]),
            }
        }
        Verb::Leave(entry) => {
            member = entry.map_or(Member::NONE, |entry| entry.member());
            words.extend(&[b"leave", member.text()]);
        }
    }
    resp::begin(out, Script::CALL_WORDS + 1 + words.count);
    kind.script().begin_call(out, form);
    resp::push(out, key);
    words.words[..words.count].iter().for_each(|word| resp::push(out, word));
}

/// The words of one request.
struct Words<'w> {
    words: [&'w [u8]; MOST_WORDS],
    count: usize,
}

impl<'w> Words<'w> {
    fn extend(&mut self, more: &[&'w [u8]]) {
        for word in more {
            self.words[self.count] = word;
            self.count += 1;
        }
    }

    /// What the verbs that begin or extend a hold end with.
    fn tail(&mut self, kind: Kind, of_fence: &[&'w [u8]]) {
        if let Kind::ReadWrite(access, _) = kind {
            self.extend(&[if access == Access::Read { b"r" } else { b"w" }]);
        }
        if kind.fence().is_some() {
            self.extend(of_fence);
        }
    }
}

/// The answer to a take that was not granted. It is made of what is stored under the keys: damage there is no fault of
/// the connection.
pub(super) fn answer(text: &[u8], needs_queue: bool) -> Answer {
    match queued(text) {
        None => Answer::fault(Cause::UnexpectedValue),
        Some(QueueReply { storage: Storage::Denied, .. }) if needs_queue => Answer::fault(Cause::NoPermission),
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
    let (ticket, rank) = (resp::number(fields.next()?)?, resp::number(fields.next()?)?);
    let held = match fields.next()? {
        b"-1" => None,
        millis => Some(Duration::from_millis(resp::number(millis)?)),
    };
    let holder = fields.next()?;
    let is_other_library = holder.ends_with(b"!");
    let holder = Some(holder).filter(|text| *text != b"-").map(HolderTag::exact);
    let slots = Slots::of(fields.next()?);
    let head = Some(fields.next()?).filter(|head| !head.is_empty()).and_then(Member::new);
    Some(QueueReply { storage, ticket, rank: u32::try_from(rank).ok()?, held, holder, is_other_library, slots, head })
}

#[cfg(test)]
mod tests;
