//! The form that each operation is sent in, by what the server runs:
//! [`form`](crate::protocol::form).

use crate::algorithm::vote::Vote;
use crate::protocol::asked::Asked;
use crate::protocol::form::{Answer, Form};
use crate::protocol::kinds::SCRIPTS;
use crate::protocol::script::Script;
use crate::protocol::sent_operation::SentOperation;

/// How often on one connection a server may not know a script that it has run. To flush its scripts
/// is rare. A server that forbids the hash, or forgets scripts all the time, does so for good.
const HASH_REFUSALS: u8 = 3;

/// Which forms a server runs, as its replies on one connection have shown.
#[derive(Debug, Default)]
pub(super) struct Forms {
    scripts: [ScriptRecord; SCRIPTS.len()],
    /// Whether attempts that are made in turn go by `SET`: the server runs no scripts for the user.
    pub(super) take_by_set: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct ScriptRecord {
    has_run: bool,
    refusals: u8,
}

impl Forms {
    /// The form that an operation is sent in first.
    pub(super) fn first(&self, asked: Asked) -> Form {
        match self.next(asked) {
            Form::Text if self.are_usual(asked) => asked.usual_form(),
            form => form,
        }
    }

    /// The form that it is sent in when the server does not run the usual one.
    pub(super) fn next(&self, asked: Asked) -> Form {
        if self.take_by_set && asked.may_go_by_set() {
            Form::Set
        } else {
            Form::Text
        }
    }

    /// Whether the server runs the script of an operation by its hash, if it usually goes by that.
    pub(super) fn are_usual(&self, asked: Asked) -> bool {
        let has_run = |script: &Script| {
            let record = self.scripts[script.index];
            record.has_run && record.refusals < HASH_REFUSALS
        };
        asked.usual_form() != Form::Hash || asked.script().is_some_and(has_run)
    }

    /// Learns from an answer.
    pub(super) fn learn(&mut self, sent: &SentOperation, answer: &Answer) {
        // From this answer on: it may not be sent again, and a node whose answers come late would
        // refuse each attempt that follows it.
        self.take_by_set |= sent.form == Form::Text && *answer == Answer::WrongForm;
        let Some(script) = sent.asked.script() else {
            return;
        };
        let record = &mut self.scripts[script.index];
        match (sent.form, answer) {
            // Of several requests that were under way together, one counts.
            (Form::Hash, Answer::WrongForm) => {
                let had_run = std::mem::take(&mut record.has_run);
                record.refusals = record.refusals.saturating_add(u8::from(had_run));
            }
            // An error does not show whether the script was run.
            (
                Form::Text,
                Answer::Fence(_)
                | Answer::Held(_)
                | Answer::Queued(_)
                | Answer::Vote(Vote::Granted | Vote::Refused | Vote::Absent),
            ) => record.has_run = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::fence::FencingToken;
    use crate::algorithm::kind::Kind;
    use crate::protocol::operation::Verb;
    use crate::protocol::reply_tests;
    use crate::protocol::sent_operation::Ticket;

    #[test]
    fn a_script_that_was_run_goes_by_its_hash_unless_the_server_keeps_forgetting() {
        let asked = |kind| Asked::of(&reply_tests::operation(Verb::Release(None), kind));
        let [fenced, plain] = [Kind::Fenced(FencingToken::MAX), Kind::Plain].map(asked);
        let sent = |asked, form| SentOperation {
            ticket: Ticket {
                slot: 0,
                generation: 0,
            },
            asked,
            form,
            part: 0,
        };
        let run = Answer::Vote(Vote::Granted);
        let mut forms = Forms::default();
        assert_eq!(forms.first(fenced), Form::Text);
        for round in 0..HASH_REFUSALS {
            forms.learn(&sent(fenced, Form::Text), &run);
            assert_eq!(
                (forms.first(fenced), forms.first(plain)),
                (Form::Hash, Form::Text),
                "{round}"
            );
            forms.learn(&sent(fenced, Form::Hash), &Answer::WrongForm);
            forms.learn(&sent(fenced, Form::Hash), &Answer::WrongForm);
            assert_eq!(forms.first(fenced), Form::Text, "{round}");
        }
        forms.learn(&sent(fenced, Form::Text), &run);
        assert_eq!(forms.first(fenced), Form::Text, "it forgets all the time");
        forms.learn(&sent(plain, Form::Text), &run);
        assert_eq!(forms.first(plain), Form::Hash);
    }
}
