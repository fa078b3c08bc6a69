//! The one path of an operation, plain or fenced: queued, sent in a dialect, and its event made. [`SentOperation`]
//! writes it and parses its reply.

use super::{EncodedOperation, HandshakeState, Request, SentOperation, Session, SessionEvent, Ticket};
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::protocol::dialect::{Answer, Dialect, TriedDialects};
use crate::protocol::lock_key;
use crate::protocol::operation::{Operation, Verb};

impl Session {
    /// Queues an operation. `sent` and `encoded` are kept from one node to the next.
    pub fn queue(
        &mut self,
        sent: &SentOperation,
        about: (&[u8], &OwnerToken),
        now: Timestamp,
        encoded: &mut EncodedOperation,
    ) {
        let preferred = self.preferred(&sent.operation, about.0);
        // An extension is never sent twice in one dialect: behind a later one, it would shorten what that has gained.
        let may_repeat = preferred == Dialect::Eval && !matches!(sent.operation.verb, Verb::Extend { .. });
        let by_hash = may_repeat && sent.script.is_some_and(|script| self.scripts.knows(script));
        let tried = TriedDialects::first(if by_hash { Dialect::Evalsha } else { preferred });
        self.send(SentOperation { tried, ..*sent }, about, now, encoded);
    }

    /// Queues an operation once more, in a dialect it has not been sent in.
    pub fn ask_again(&mut self, again: SentOperation, key: &[u8], token: &OwnerToken, now: Timestamp) {
        let tried = again.tried.again(self.preferred(&again.operation, key), again.operation.dialects());
        self.send(SentOperation { tried, ..again }, (key, token), now, &mut EncodedOperation::default());
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
        let last = if sent.tried.last() == Dialect::Msetex { 0 } else { lock_key::count(key) as u8 - 1 };
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

    /// The dialect that an operation is sent in first, if not by a hash.
    fn preferred(&self, operation: &Operation, key: &[u8]) -> Dialect {
        match operation.verb {
            _ if !operation.kind.is_token_only() => Dialect::Eval,
            Verb::Acquire { .. } if lock_key::count(key) > 1 => self.set_dialect,
            Verb::Acquire { .. } => Dialect::Set,
            Verb::Extend { .. } => self.extension_dialect,
            Verb::Release(_) => self.release_dialect,
            Verb::Take { request, .. } if !request.stores_only => self.take_dialect,
            Verb::Take { .. } | Verb::Leave(_) | Verb::Raise => Dialect::Eval,
        }
    }

    /// Prefers a dialect that an operation has not been sent in, from its answer on: it may not be sent again, and a
    /// node whose answers come late would refuse each one that follows it.
    fn prefer_another(&mut self, sent: &SentOperation) {
        let preferred = match sent.operation.verb {
            _ if !sent.operation.kind.is_token_only() => return,
            Verb::Acquire { .. } => &mut self.set_dialect,
            Verb::Extend { .. } => &mut self.extension_dialect,
            Verb::Release(_) => &mut self.release_dialect,
            // The hash is no dialect that could be preferred.
            Verb::Take { .. } if sent.tried.last() != Dialect::Evalsha => &mut self.take_dialect,
            Verb::Take { .. } | Verb::Leave(_) | Verb::Raise => return,
        };
        *preferred = sent.tried.again(*preferred, sent.operation.dialects()).last();
    }

    /// The event in the answer to an operation.
    pub(super) fn answered(&mut self, sent: &mut SentOperation, answer: &mut Answer) -> SessionEvent {
        let SentOperation { ticket, is_release, .. } = *sent;
        self.note_script(sent, answer);
        if let Answer::WrongDialect(cause) = *answer
            && let Some(fault) = sent.tried.refused(cause, sent.operation.dialects(), sent.operation.commands())
        {
            *answer = Answer::Vote(Vote::Fault(fault));
        }
        if let Answer::WrongDialect(_) = *answer {
            self.prefer_another(sent);
        }
        let is_duplicate = self.standing.is_duplicate();
        match (&*answer, &self.standing) {
            (Answer::Vote(vote), state) if is_release => released(ticket, vote, state),
            // What is granted on a duplicate URL is granted by the server, and the URL that votes for the server may be
            // refused because of it. A fence would have to be raised on the connection that answered it.
            (Answer::Vote(Vote::Granted), _) if is_duplicate && sent.operation.fence().is_none() => {
                SessionEvent::Answered(ticket, Vote::Granted)
            }
            // Another dialect would not give it a vote. A release is wanted for what it does.
            (Answer::WrongDialect(_), HandshakeState::Rejected(_)) if is_release || is_duplicate => {
                SessionEvent::WrongDialect(*sent)
            }
            (_, &HandshakeState::Rejected(fault)) => SessionEvent::Answered(ticket, Vote::Fault(fault)),
            (&Answer::Fence(fence), _) => SessionEvent::Fenced(ticket, fence),
            (&Answer::Held(left), _) => SessionEvent::Held(ticket, left),
            (&Answer::Queued(reply), _) => SessionEvent::Queued(ticket, reply),
            (&Answer::RefusedFor(vote, keys), _) => SessionEvent::RefusedFor(ticket, vote, keys),
            (&Answer::Vote(vote), _) => SessionEvent::Answered(ticket, vote),
            (Answer::WrongDialect(_), _) => SessionEvent::WrongDialect(*sent),
        }
    }

    /// Learns from an answer whether the server knows a script by its hash.
    fn note_script(&mut self, sent: &SentOperation, answer: &Answer) {
        let Some(script) = sent.script else { return };
        match (sent.tried.last(), answer) {
            (Dialect::Evalsha, Answer::WrongDialect(_)) => self.scripts.note_refusal(script),
            // An error does not say whether the script was run.
            (
                Dialect::Eval,
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
