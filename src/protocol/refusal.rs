//! What an error reply to a script means: another form is worth trying, the key is not ours, or a fault.

use super::asked::Asked;
use super::error_reply;
use super::form::{Answer, Form};
use super::kinds::wire::AskedVerb;
use crate::algorithm::fault::Cause;
use crate::algorithm::vote::Vote;

/// The meaning of an error reply to a script that was sent in this form.
pub(super) fn meaning(form: Form, asked: Asked, text: &[u8]) -> Answer {
    let is_barred = error_reply::is_unknown_command(text) || is_no_permission_to_run(text);
    let is_worth_another = match form {
        Form::Hash => is_barred || error_reply::cause(text) == Cause::Server("NOSCRIPT"),
        Form::Text => is_barred && asked.may_go_by_set(),
        Form::Set => false,
    };
    if is_worth_another {
        Answer::WrongForm
    } else if is_barred {
        Answer::fault(Cause::NoScripts)
    } else if holds_no_token(asked, text) {
        Answer::Vote(Vote::Refused)
    } else {
        Answer::Vote(Vote::Fault(error_reply::fault(text, asked.commands())))
    }
}

/// Whether the user may not run scripts at all. What else it may not do, touch the key for one, has another remedy.
fn is_no_permission_to_run(text: &[u8]) -> bool {
    const WORDS: &[u8] = b" run the 'eval";
    text.starts_with(b"NOPERM") && text.windows(WORDS.len()).any(|window| window == WORDS)
}

/// Whether the key of a lock that is to be kept or ended holds a list or a hash, and so no token, ours or another one.
fn holds_no_token(asked: Asked, text: &[u8]) -> bool {
    let compares = asked.wire.is_token_only && matches!(asked.verb, AskedVerb::Extend | AskedVerb::Release);
    compares && error_reply::cause(text) == Cause::Server("WRONGTYPE")
}
