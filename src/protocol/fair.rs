//! What a node is asked about a fair lock, and what its reply means: [`place`](crate::algorithm::place) has the rules.
//!
//! ```text
//!    the key is                take     its reply is                             release
//!    free, the call is first   Granted  :1                                       Refused
//!    ours                      Granted  :1                                       Granted, :1 or more
//!    held, or others wait      Queued   held for, ticket, position, wait, first  Refused
//!    beside what is no queue   UnexpectedValue  :-2                              as if no other one waited
//! ```
//!
//! All is one script, [`FAIR`](super::script::FAIR). The lock's key is that of a plain lock, and the name of the
//! queue's key is made of it.
//!
//! The key of a lock that is fenced as well is that of a fenced lock, and the script is
//! [`FENCED_FAIR`](super::script::FENCED_FAIR). What is granted has a fence, as [`fenced`] says, with what else may be
//! wrong about it. To extend it, and to raise the fence, is asked as of any fenced lock.

use super::command;
use super::dialect::{Answer, Dialect};
use super::fair_operation::FairOperation;
use super::fenced;
use super::operation::Operation;
use super::publish::{CHANNEL, Hint};
use super::resp::{self, Reply};
use super::script::Script;
use crate::algorithm::fault::Cause;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::place::{MOST_TICKET, PlaceAnswer, PlaceId, QueueReply};
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::vote::Vote;
use std::time::Duration;

/// What stands between the prefix and the name of the lock in the key of a queue. No name of a plain lock begins with
/// it.
pub const QUEUE_KEY_PREFIX: &str = "quorumlock-queue:";

/// The key of the queue of the lock with this key.
pub fn queue_key(key: &[u8], prefix: u32) -> Vec<u8> {
    let (prefix, name) = key.split_at(key.len().min(prefix as usize));
    [prefix, QUEUE_KEY_PREFIX.as_bytes(), name].concat()
}

/// Writes an operation: by the script's text, or by its hash in [`Dialect::Evalsha`].
pub fn ask(out: &mut Vec<u8>, dialect: Dialect, key: &[u8], token: &OwnerToken, operation: FairOperation) {
    let fence = operation.fence();
    let script = if fence.is_some() { Script::FencedFair } else { Script::Fair };
    let [command, script] = script.call(dialect);
    let (FairOperation::Take { prefix, .. }
    | FairOperation::Leave { prefix, .. }
    | FairOperation::Release { prefix, .. }) = operation;
    let (queue, token) = (queue_key(key, prefix), token.value());
    let [mut first, mut second, mut third, mut fourth, mut fifth, mut sixth] = [[0; 20]; 6];
    let kept = fence.map(|fence| resp::decimal(fence.retention_millis, &mut fourth));
    let least = fence.map(|fence| resp::decimal(fence.least.get(), &mut fifth));
    let mut words: Vec<&[u8]> = vec![command, script, b"2", key, &queue];
    match operation {
        FairOperation::Take { ttl_millis, ref place, hint, .. } => {
            let ttl = resp::decimal(ttl_millis, &mut first);
            let ticket = resp::decimal(place.ticket.unwrap_or(0), &mut second);
            let lasts = resp::decimal(place.lasts_millis.unwrap_or(0).into(), &mut third);
            words.extend([b"take", &*token, ttl, place.id.text(), ticket, lasts]);
            words.extend(published(hint, kept.is_some(), &mut sixth).into_iter().flatten());
            words.extend(kept.into_iter().chain(least));
        }
        FairOperation::Leave { ref id, ref successor, hint, .. } => {
            words.extend([b"leave".as_slice(), id.text()]);
            words.extend(published(hint, successor.is_some(), &mut first).into_iter().flatten());
            if let Some((successor, lasts_millis)) = successor {
                words.extend([successor.text().as_slice(), resp::decimal((*lasts_millis).into(), &mut second)]);
            }
        }
        FairOperation::Release { hint, ref undoes, .. } => {
            words.extend([b"release", &*token]);
            words.extend(published(hint, kept.is_some() || undoes.is_some(), &mut first).into_iter().flatten());
            words.extend(kept);
            words.extend(undoes.iter().map(|id| id.text().as_slice()));
        }
    }
    resp::encode(out, &words);
}

/// The words that say what is to be published. Without a hint they are empty, where `more` words follow.
fn published(hint: Option<Hint>, more: bool, space: &mut [u8; 20]) -> Option<[&[u8]; 2]> {
    match hint {
        Some(hint) => Some([CHANNEL, hint.text(space)]),
        None => more.then_some([b"", b""]),
    }
}

/// The meaning of a reply to [`ask`] in this dialect.
///
/// # Errors
/// A reply that the script never gives.
pub fn reply(dialect: Dialect, operation: FairOperation, reply: Reply<'_>) -> Result<Answer, ProtocolError> {
    match (operation, reply) {
        (FairOperation::Release { .. }, reply) => command::release_reply(reply),
        (_, Reply::Error(text)) => Ok(fenced::refusal(dialect, text, Operation::Fair(operation).commands())),
        (FairOperation::Take { fence, .. }, Reply::Bulk(Some(text))) if fence.is_none() || text.contains(&b' ') => {
            // What it is made of is stored under the keys: damage there is no fault of the connection.
            Ok(queued(text).map_or(fenced::fault(Cause::UnexpectedValue), Answer::Queued))
        }
        (FairOperation::Take { fence: Some(fence), .. }, reply @ (Reply::Bulk(_) | Reply::Integer(-3))) => {
            fenced::acquire_reply(fence.least, reply)
        }
        (FairOperation::Take { fence: None, .. }, Reply::Integer(1))
        | (FairOperation::Leave { .. }, Reply::Integer(0 | 1)) => Ok(Answer::Vote(Vote::Granted)),
        (_, Reply::Integer(-2)) => Ok(fenced::fault(Cause::UnexpectedValue)),
        _ => Err(ProtocolError::UnexpectedReply),
    }
}

fn queued(text: &[u8]) -> Option<QueueReply> {
    let mut fields = std::str::from_utf8(text).ok()?.split(' ');
    let held = match fields.next()? {
        "-1" => None,
        millis => Some(Duration::from_millis(millis.parse().ok()?)),
    };
    let ticket = fields.next()?.parse().ok().filter(|ticket| (1..=MOST_TICKET).contains(ticket))?;
    let position = fields.next()?.parse().ok().filter(|&position: &u32| position > 0)?;
    let first_lasts = Duration::from_millis(fields.next()?.parse().ok()?);
    PlaceId::parse(fields.next()?.as_bytes())?;
    fields.next().is_none().then_some(QueueReply { held, first_lasts, place: PlaceAnswer::new(ticket, position) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::fault::{Fault, Phase};
    use crate::algorithm::fence::FencingToken;
    use crate::algorithm::place::PlaceRequest;
    use crate::protocol::operation::FenceRequest;
    use crate::protocol::publish::Hint;

    const ID: PlaceId = PlaceId::new(255);
    const PLACE: PlaceRequest = PlaceRequest { id: ID, ticket: Some(12), lasts_millis: Some(1000) };
    const TAKE: FairOperation =
        FairOperation::Take { ttl_millis: 30_000, place: PLACE, hint: None, prefix: 6, fence: None };
    const FENCE: Option<FenceRequest> = Some(FenceRequest { least: FencingToken::MAX, retention_millis: 86_400_000 });

    fn sent(operation: FairOperation) -> String {
        let mut out = Vec::new();
        ask(&mut out, Dialect::Evalsha, b"locks/orders", &OwnerToken::from_entropy([0xab; 20]), operation);
        let text = String::from_utf8(out).unwrap();
        let words: Vec<&str> = text.split("\r\n").filter(|word| !word.starts_with(['*', '$'])).collect();
        words[3..].join(" ").replace(&"ab".repeat(20), "token").trim_end().to_owned()
    }

    #[test]
    fn operations_name_both_keys() {
        let keys = "locks/orders locks/quorumlock-queue:orders";
        assert_eq!(sent(TAKE), format!("{keys} take token 30000 00000000000000ff 12 1000"));
        let first = PlaceRequest { ticket: None, lasts_millis: None, ..PLACE };
        let take = FairOperation::Take { ttl_millis: 5, place: first, hint: None, prefix: 6, fence: None };
        assert_eq!(sent(take), format!("{keys} take token 5 00000000000000ff 0 0"));
        let hint = Some(Hint { crowd: 2, has_waited: true });
        let leave = FairOperation::Leave { id: ID, successor: None, hint, prefix: 6, fence: None };
        assert_eq!(sent(leave), format!("{keys} leave 00000000000000ff quorumlock: 2w"));
        assert_eq!(sent(leave.unpublished()), format!("{keys} leave 00000000000000ff"));
        let successor = Some((PlaceId::new(254), 1000));
        let leave = FairOperation::Leave { id: ID, successor, hint, prefix: 6, fence: None };
        assert_eq!(sent(leave), format!("{keys} leave 00000000000000ff quorumlock: 2w 00000000000000fe 1000"));
        assert_eq!(sent(leave.unpublished()), format!("{keys} leave 00000000000000ff   00000000000000fe 1000"));
        let undo = FairOperation::Release { hint, undoes: Some(ID), prefix: 6, fence: None };
        assert_eq!(sent(undo), format!("{keys} release token quorumlock: 2w 00000000000000ff"));
        let release = FairOperation::Release { hint, undoes: None, prefix: 6, fence: None };
        assert_eq!(sent(release), format!("{keys} release token quorumlock: 2w"));
        assert_eq!(sent(release.unpublished()), format!("{keys} release token"));
        let take = FairOperation::Take { ttl_millis: 30_000, place: PLACE, hint: None, prefix: 6, fence: FENCE };
        let of_fence = "86400000 9007199254740991";
        assert_eq!(sent(take), format!("{keys} take token 30000 00000000000000ff 12 1000   {of_fence}"));
        let undo = FairOperation::Release { hint: None, undoes: Some(ID), prefix: 6, fence: FENCE };
        assert_eq!(sent(undo), format!("{keys} release token   86400000 00000000000000ff"));
        let leave = FairOperation::Leave { id: ID, successor: None, hint, prefix: 6, fence: FENCE };
        assert_eq!(sent(leave), format!("{keys} leave 00000000000000ff quorumlock: 2w"));
        let release = FairOperation::Release { hint, undoes: None, prefix: 6, fence: FENCE };
        assert_eq!(sent(release), format!("{keys} release token quorumlock: 2w 86400000"));
        assert_eq!(sent(release.unpublished()), format!("{keys} release token   86400000"));
    }

    #[test]
    fn replies_are_places_grants_and_faults() {
        let said = |text: &'static str| reply(Dialect::Eval, TAKE, Reply::Bulk(Some(text.as_bytes())));
        let place = QueueReply {
            held: Some(Duration::from_millis(250)),
            first_lasts: Duration::from_millis(900),
            place: PlaceAnswer::new(12, 2),
        };
        assert_eq!(said("250 000000000000012 2 900 00000000000000ff"), Ok(Answer::Queued(place)));
        let endless = QueueReply { held: None, ..place };
        assert_eq!(said("-1 000000000000012 2 900 00000000000000ff"), Ok(Answer::Queued(endless)));
        for damaged in [
            "",
            "1700000000000001",
            "9e+15 000000000000012 2 900 00000000000000ff",
            "250 000000000000012 2 900 zzzzzzzzzzzzzzzz",
            "-2 000000000000012 2 900 00000000000000ff",
            "250 000000000000000 2 900 00000000000000ff",
            "250 1000000000000000 2 900 00000000000000ff",
            "250 000000000000012 0 900 00000000000000ff",
            "250 000000000000012 2 900 ff",
            "250 000000000000012 2 900 00000000000000ff 1",
        ] {
            assert_eq!(said(damaged), Ok(fenced::fault(Cause::UnexpectedValue)), "{damaged:?}");
        }
        let granted = Ok(Answer::Vote(Vote::Granted));
        assert_eq!(reply(Dialect::Eval, TAKE, Reply::Integer(1)), granted);
        let unexpected = Vote::Fault(Fault::new(Phase::Reply, Cause::UnexpectedValue));
        assert_eq!(reply(Dialect::Eval, TAKE, Reply::Integer(-2)), Ok(Answer::Vote(unexpected)));
        let no_scripts = Vote::Fault(Fault::new(Phase::Reply, Cause::NoScripts));
        let unknown = Reply::Error(b"ERR unknown command 'EVAL'");
        assert_eq!(reply(Dialect::Eval, TAKE, unknown), Ok(Answer::Vote(no_scripts)));
        let forgotten = Reply::Error(b"NOSCRIPT No matching script.");
        let again = Ok(Answer::WrongDialect(Cause::Server("NOSCRIPT")));
        assert_eq!(reply(Dialect::Evalsha, TAKE, forgotten), again);
        let release = FairOperation::Release { hint: None, undoes: None, prefix: 0, fence: None };
        assert_eq!(reply(Dialect::Eval, release, Reply::Integer(4)), granted);
        assert_eq!(reply(Dialect::Eval, release, Reply::Integer(0)), Ok(Answer::Vote(Vote::Refused)));
        let leave = FairOperation::Leave { id: ID, successor: None, hint: None, prefix: 0, fence: None };
        assert_eq!(reply(Dialect::Eval, leave, Reply::Integer(0)), granted);
        assert_eq!(reply(Dialect::Eval, leave, Reply::Integer(2)), Err(ProtocolError::UnexpectedReply));
    }

    #[test]
    fn a_fenced_lock_is_granted_with_a_fence_or_not_at_all() {
        let take = |least: u64| {
            let fence = Some(FenceRequest { least: FencingToken::saturating(least), retention_millis: 1 });
            FairOperation::Take { ttl_millis: 1, place: PLACE, hint: None, prefix: 0, fence }
        };
        let said = |bytes| reply(Dialect::Eval, take(1_700_000_000_000_000), bytes);
        let fence = 1_700_000_000_000_001;
        assert_eq!(said(Reply::Bulk(Some(b"1700000000000001"))), Ok(Answer::Fence(FencingToken::saturating(fence))));
        let fault = |cause| Ok(fenced::fault(cause));
        assert_eq!(reply(Dialect::Eval, take(1), Reply::Bulk(Some(b"1700000000000001"))), fault(Cause::FenceAhead));
        assert_eq!(said(Reply::Integer(-3)), fault(Cause::FenceAhead));
        assert_eq!(said(Reply::Integer(-2)), fault(Cause::UnexpectedValue));
        let queued = b"250 000000000000012 2 900 00000000000000ff";
        assert!(matches!(said(Reply::Bulk(Some(queued))), Ok(Answer::Queued(_))));
        assert_eq!(said(Reply::Bulk(Some(b"9007199254740992"))), fault(Cause::UnexpectedValue));
        for wrong in [Reply::Integer(1), Reply::Integer(-4), Reply::Bulk(None)] {
            assert_eq!(said(wrong), Err(ProtocolError::UnexpectedReply), "{wrong:?}");
        }
        for wrong in [Reply::Integer(-3), Reply::Bulk(None), Reply::Simple(b"OK")] {
            assert_eq!(reply(Dialect::Eval, TAKE, wrong), Err(ProtocolError::UnexpectedReply), "{wrong:?}");
        }
    }
}
