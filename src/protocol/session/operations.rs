//! The one path of an operation, plain or fenced: queued, sent in a form, and its event made. [`Command`]
//! writes it, and [`SentOperation`] parses its reply.

use super::{Command, Request, SentOperation, Session, SessionEvent};
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::protocol::form::{Answer, Form};
use crate::protocol::operation::{Asked, AskedVerb};

impl Session {
    /// Queues a command.
    pub fn queue(&mut self, command: &Command<'_>, now: Timestamp) {
        self.send(command, self.form(command.operation.asked()), now);
    }

    /// Queues a command once more, in a form it has not been sent in.
    pub fn ask_again(&mut self, command: &Command<'_>, now: Timestamp) {
        let form = if self.goes_by_set(command.operation.asked()) { Form::Set } else { Form::Text };
        self.send(command, form, now);
    }

    fn send(&mut self, command: &Command<'_>, form: Form, now: Timestamp) {
        let asked = command.operation.asked();
        if !asked.is_release() {
            self.recheck(now);
        }
        command.write(self.traffic.end(), form);
        Request::each_of(command, form).for_each(|request| self.await_reply(request, now));
        if !matches!(asked.verb, AskedVerb::Leave | AskedVerb::Release) {
            self.look_behind(now);
        }
    }

    /// The form that an operation is sent in first.
    fn form(&self, asked: Asked) -> Form {
        match asked.usual_form() {
            Form::Hash if self.goes_by_set(asked) => Form::Set,
            Form::Hash if !asked.script().is_some_and(|script| self.scripts.knows(script)) => Form::Text,
            form => form,
        }
    }

    fn goes_by_set(&self, asked: Asked) -> bool {
        self.takes_by_set && asked.may_go_by_set()
    }

    /// The event in the answer to an operation.
    pub(super) fn answered(&mut self, sent: &SentOperation, answer: Answer) -> SessionEvent {
        self.note_script(sent, &answer);
        // From this answer on: it may not be sent again, and a node whose answers come late would refuse each attempt
        // that follows it.
        self.takes_by_set |= sent.form == Form::Text && answer == Answer::WrongForm;
        match (&answer, self.standing.rejection()) {
            (Answer::Vote(Vote::Fault(reason)), rejection) if sent.asked.is_release() && reason.cause.is_not_run() => {
                SessionEvent::NotRun(sent.ticket, *rejection.unwrap_or(reason))
            }
            (_, None) => SessionEvent::Answered(sent.ticket, answer),
            (_, Some(_)) if self.counts_all_the_same(sent, &answer) => SessionEvent::Answered(sent.ticket, answer),
            (_, Some(&rejection)) => SessionEvent::Answered(sent.ticket, Answer::Vote(Vote::Fault(rejection))),
        }
    }

    /// Whether an answer counts although the node may not vote:
    /// * A key that is set or deleted by a duplicate URL is set or deleted on the server, and the URL that votes for
    ///   the server may be refused because of it. A fence is excluded: it is raised on the connection that replied.
    /// * A release is sent again in another form, because the key is to be deleted on every node.
    fn counts_all_the_same(&self, sent: &SentOperation, answer: &Answer) -> bool {
        let (is_release, is_duplicate) = (sent.asked.is_release(), self.standing.is_duplicate());
        match answer {
            Answer::Vote(Vote::Granted) => is_duplicate && (is_release || sent.asked.kind.fence().is_none()),
            Answer::WrongForm => is_release || is_duplicate,
            _ => false,
        }
    }

    /// Learns from an answer whether the server knows a script by its hash.
    fn note_script(&mut self, sent: &SentOperation, answer: &Answer) {
        let Some(script) = sent.asked.script() else { return };
        match (sent.form, answer) {
            (Form::Hash, Answer::WrongForm) => self.scripts.note_refusal(script),
            // An error does not say whether the script was run.
            (
                Form::Text,
                Answer::Fence(_)
                | Answer::Held(_)
                | Answer::Queued(_)
                | Answer::Vote(Vote::Granted | Vote::Refused | Vote::Absent),
            ) => {
                self.scripts.note_run(script);
            }
            _ => {}
        }
    }
}
