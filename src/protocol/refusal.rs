//! What an error reply to a script means: whether it was the form of the request, and the fault if not.

use super::error_reply;
use super::form::{Answer, Form};
use super::operation::Asked;
use crate::algorithm::fault::Cause;
use crate::algorithm::vote::Vote;

/// The meaning of an error reply to a script that was sent in this form: worth another form, or a fault.
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
    } else {
        Answer::Vote(Vote::Fault(error_reply::fault(text, asked.commands())))
    }
}

/// Whether the user may not run scripts at all. What else it may not do, touch the key for one, has another remedy.
fn is_no_permission_to_run(text: &[u8]) -> bool {
    let says = |words: &[u8]| text.windows(words.len()).any(|window| window == words);
    text.starts_with(b"NOPERM") && says(b" run the 'eval")
}
