//! What an error reply to a script means: another form is worth trying, the key is not ours, or a
//! fault.

use super::asked::Asked;
use super::error_reply::ErrorReply;
use super::form::{Answer, Form};
use super::kinds::wire::AskedVerb;
use crate::algorithm::vote::Vote;
use crate::fault::Cause;
use crate::fault::server_error::ServerError;

/// The meaning of an error reply to a script that was sent in this form.
pub(super) fn meaning(form: Form, asked: Asked, text: &[u8]) -> Answer {
    let error = ErrorReply::read(text);
    let runs_no_scripts = error.runs_no_scripts();
    let is_worth_another = match form {
        Form::Hash => runs_no_scripts || error.cause == Cause::Server(ServerError::NoScript),
        Form::Text => runs_no_scripts && asked.may_go_by_set(),
        Form::Set => false,
    };
    if is_worth_another {
        Answer::WrongForm
    } else if runs_no_scripts {
        Answer::fault(Cause::NoScripts)
    } else if holds_no_token(asked, error) {
        Answer::Vote(Vote::Refused)
    } else {
        Answer::Vote(Vote::Fault(error.fault(asked.commands())))
    }
}

/// Whether the key of a lock that is to be kept or ended holds a list or a hash, and so no token,
/// ours or another one.
fn holds_no_token(asked: Asked, error: ErrorReply) -> bool {
    let compares =
        asked.wire.is_token_only && matches!(asked.verb, AskedVerb::Extend | AskedVerb::Release);
    compares && error.cause == Cause::Server(ServerError::WrongType)
}
