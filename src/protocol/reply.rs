//! What a reply to an operation means. [`kinds`](super::kinds) and [`queue`] have the tables.

use super::asked::Asked;
use super::form::{Answer, Form};
use super::kinds::plain;
use super::kinds::wire::AskedVerb;
use super::resp::Reply;
use super::{queue, refusal};
use crate::algorithm::vote::Vote;
use crate::fault::Cause;
use crate::fault::protocol_error::ProtocolError;

/// The meaning of a reply to an operation in this form.
///
/// # Errors
/// A reply that the command or the script never returns.
pub(super) fn meaning(form: Form, asked: Asked, reply: Reply<'_>) -> Result<Answer, ProtocolError> {
    use AskedVerb::{Leave, Release, Take};
    match (asked.verb, reply) {
        _ if form == Form::Set => plain::acquire_vote(reply).map(Answer::Vote),
        (_, Reply::Error(text)) => Ok(refusal::meaning(form, asked, text)),
        (Leave | Release, Reply::Integer(1..=4)) => Ok(Answer::Vote(Vote::Granted)),
        (Leave | Release, Reply::Integer(-4..=-2 | 0)) => Ok(Answer::Vote(Vote::Refused)),
        (Take { needs_queue, .. }, Reply::Bulk(Some(text))) if text.contains(&b' ') => {
            Ok(queue::answer(text, needs_queue))
        }
        (_, Reply::Integer(-2)) if asked.script().is_some() => {
            Ok(Answer::fault(Cause::UnexpectedValue))
        }
        (verb, reply) => (asked.wire.meaning)(verb, asked.least, reply),
    }
}
