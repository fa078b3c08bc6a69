//! The one path of an operation, plain or fenced: queued, sent in a form, and its event made. [`SentOperation`]
//! writes it and parses its reply.

use super::{EncodedOperation, HandshakeState, Request, SentOperation, Session, SessionEvent, Ticket};
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::protocol::form::{Answer, Form};
use crate::protocol::lock_key;
use crate::protocol::operation::Verb;

impl Session {
    /// Queues an operation. `sent` and `encoded` are kept from one node to the next.
    pub fn queue(
        &mut self,
        sent: &SentOperation,
        about: (&[u8], &OwnerToken),
        now: Timestamp,
        encoded: &mut EncodedOperation,
    ) {
        self.send(SentOperation { form: self.form(sent), ..*sent }, about, now, encoded);
    }

    /// Queues an operation once more, in a form it has not been sent in.
    pub fn ask_again(&mut self, again: SentOperation, key: &[u8], token: &OwnerToken, now: Timestamp) {
        let form = if self.goes_by_set(&again) { Form::Set } else { Form::Text };
        self.send(SentOperation { form, ..again }, (key, token), now, &mut EncodedOperation::default());
    }

    #[inline]
    fn send(
        &mut self,
        mut sent: SentOperation,
        (key, token): (&[u8], &OwnerToken),
        now: Timestamp,
        encoded: &mut EncodedOperation,
    ) {
        if !sent.is_release {
            self.recheck(now);
        }
        encoded.write(&sent, self.traffic.end(), key, token);
        let last = lock_key::count(key) as u8 - 1;
        for part in 0..last {
            sent.part = part;
            self.await_reply(Request::Part(sent), now);
        }
        sent.part = last;
        self.await_reply(Request::Operation(sent), now);
        if !matches!(sent.operation.verb, Verb::Leave(_) | Verb::Release(_)) {
            self.look_behind(now);
        }
    }

    /// The form that an operation is sent in first.
    fn form(&self, sent: &SentOperation) -> Form {
        match (sent.operation.verb, sent.script) {
            (Verb::Acquire { .. }, None) => Form::Set,
            // An extension is never sent twice: behind a later one, it would shorten what that has gained.
            (Verb::Extend { .. }, _) => Form::Text,
            _ if self.goes_by_set(sent) => Form::Set,
            (_, Some(script)) if self.scripts.knows(script) => Form::Hash,
            _ => Form::Text,
        }
    }

    fn goes_by_set(&self, sent: &SentOperation) -> bool {
        self.takes_by_set && sent.operation.may_go_by_set()
    }

    /// The event in the answer to an operation.
    pub(super) fn answered(&mut self, sent: &mut SentOperation, answer: &mut Answer) -> SessionEvent {
        let SentOperation { ticket, is_release, .. } = *sent;
        self.note_script(sent, answer);
        // From this answer on: it may not be sent again, and a node whose answers come late would refuse each attempt
        // that follows it.
        self.takes_by_set |= sent.form == Form::Text && *answer == Answer::WrongForm;
        let is_duplicate = self.standing.is_duplicate();
        match (&*answer, &self.standing) {
            (Answer::Vote(vote), state) if is_release => released(ticket, vote, state),
            // What is granted on a duplicate URL is granted by the server, and the URL that votes for the server may be
            // refused because of it. A fence would have to be raised on the connection that answered it.
            (Answer::Vote(Vote::Granted), _) if is_duplicate && sent.operation.fence().is_none() => {
                SessionEvent::Answered(ticket, Vote::Granted)
            }
            // Another form would not give it a vote. A release is wanted for what it does.
            (Answer::WrongForm, HandshakeState::Rejected(_)) if is_release || is_duplicate => {
                SessionEvent::WrongForm(*sent)
            }
            (_, &HandshakeState::Rejected(fault)) => SessionEvent::Answered(ticket, Vote::Fault(fault)),
            (&Answer::Fence(fence), _) => SessionEvent::Fenced(ticket, fence),
            (&Answer::Held(left), _) => SessionEvent::Held(ticket, left),
            (&Answer::Queued(reply), _) => SessionEvent::Queued(ticket, reply),
            (&Answer::RefusedFor(vote, keys), _) => SessionEvent::RefusedFor(ticket, vote, keys),
            (&Answer::Vote(vote), _) => SessionEvent::Answered(ticket, vote),
            (Answer::WrongForm, _) => SessionEvent::WrongForm(*sent),
        }
    }

    /// Learns from an answer whether the server knows a script by its hash.
    fn note_script(&mut self, sent: &SentOperation, answer: &Answer) {
        let Some(script) = sent.script else { return };
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

/// The event in the answer to a release. What a duplicate URL deletes is deleted on the server.
fn released(ticket: Ticket, vote: &Vote, state: &HandshakeState) -> SessionEvent {
    let is_deleted = *vote == Vote::Granted && state.is_duplicate();
    match (vote, state.rejection().filter(|_| !is_deleted)) {
        (Vote::Fault(reason), rejection) if reason.cause.is_not_run() => {
            SessionEvent::NotRun(ticket, *rejection.unwrap_or(reason))
        }
        (_, Some(&fault)) => SessionEvent::Answered(ticket, Vote::Fault(fault)),
        (&vote, None) => SessionEvent::Answered(ticket, vote),
    }
}
