//! What a reply to an operation means: [`extension`](super::extension), [`kinds`](super::kinds) and
//! [`queue`](super::queue) have the tables for each kind of lock.

use super::form::{Answer, Form};
use super::kinds::fenced;
use super::operation::{Asked, AskedVerb};
use super::resp::Reply;
use super::{command, queue, refusal};
use crate::algorithm::fault::Cause;
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::vote::Vote;
use std::time::Duration;

/// The meaning of a reply to an operation in this form.
///
/// # Errors
/// A reply that the command or the script never returns.
pub(super) fn meaning(form: Form, asked: Asked, reply: Reply<'_>) -> Result<Answer, ProtocolError> {
    use AskedVerb::{Acquire, Extend, Leave, Raise, Release, Take};
    let vote = match (asked.verb, asked.kind.fence(), reply) {
        _ if form == Form::Set => command::acquire_vote(reply)?,
        (_, _, Reply::Error(text)) => return Ok(refusal::meaning(form, asked, text)),
        (Leave | Release, _, Reply::Integer(1..=4)) => Vote::Granted,
        (Leave | Release, _, Reply::Integer(-4..=-2 | 0)) => Vote::Refused,
        (Leave | Release, ..) => return Err(ProtocolError::UnexpectedReply),
        (Take { needs_queue, .. }, _, Reply::Bulk(Some(text))) if text.contains(&b' ') => {
            return Ok(queue::answer(text, needs_queue));
        }
        (Acquire | Take { .. }, Some(fence), Reply::Bulk(Some(digits))) => {
            return Ok(fenced::answer(fence.least, digits));
        }
        // It is refused through the last millisecond.
        (Acquire, _, Reply::Integer(left @ ..=-4)) => {
            return Ok(Answer::Held(Duration::from_millis(left.unsigned_abs() - 3)));
        }
        (Acquire | Take { .. }, None, Reply::Integer(1)) | (Extend | Raise, _, Reply::Integer(1)) => Vote::Granted,
        (Extend, _, Reply::Integer(0)) => Vote::Absent,
        (Extend, _, Reply::Integer(-1)) | (Raise, _, Reply::Integer(0 | -1)) => Vote::Refused,
        (Acquire | Take { .. }, Some(_), Reply::Integer(-3)) | (Raise, _, Reply::Integer(-3)) => {
            return Ok(Answer::fault(Cause::FenceAhead));
        }
        (_, _, Reply::Integer(-2)) if asked.script().is_some() => return Ok(Answer::fault(Cause::UnexpectedValue)),
        _ => return Err(ProtocolError::UnexpectedReply),
    };
    Ok(Answer::Vote(vote))
}
