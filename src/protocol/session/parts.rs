//! The replies to the commands of one request, one for each key of a set: folded into one answer.
//!
//! It is all keys or nothing, so one reply outweighs another:
//!
//! ```text
//!    worth another dialect  >  not run  >  another fault  >  refused  >  absent  >  granted
//! ```
//!
//! Where a node has refused a key, it may have set the ones before it or behind it. Its vote says so, and the attempt
//! is undone there.

use crate::algorithm::vote::Vote;
use crate::protocol::dialect::Answer;

/// What was answered so far to the request whose replies are arriving.
#[derive(Debug, Default)]
pub(super) struct PartAnswers {
    worst: Option<Answer>,
    /// A bit for each key.
    refused: u64,
    has_granted: bool,
    /// Of the keys of a set that are asked for, those that are there.
    held: u64,
}

impl PartAnswers {
    /// Takes the answer to one part.
    pub(super) fn add(&mut self, part: u8, answer: Answer) {
        match answer {
            Answer::Vote(Vote::Granted) => self.has_granted = true,
            Answer::Vote(Vote::Refused) => self.refused |= 1 << part,
            _ => {}
        }
        if self.worst.is_none_or(|worst| weight(&answer) > weight(&worst)) {
            self.worst = Some(answer);
        }
    }

    /// Takes the answer to the last part, and makes it that to the whole request. `acquires`: it was to set the keys.
    pub(super) fn finish(&mut self, part: u8, answer: &mut Answer, acquires: bool) {
        self.add(part, *answer);
        let PartAnswers { worst, refused, has_granted, .. } = std::mem::take(self);
        *answer = match worst.unwrap_or(*answer) {
            Answer::Vote(Vote::Refused) if acquires => {
                let vote = if has_granted { Vote::Partial } else { Vote::Refused };
                Answer::RefusedFor(vote, refused)
            }
            worst => worst,
        };
    }

    /// Takes the answer whether there is a key of a set. Gives all that are there, when this is the last one.
    pub(super) fn note_held(&mut self, part: u8, is_held: bool, is_last: bool) -> Option<u64> {
        self.held |= u64::from(is_held) << part;
        is_last.then(|| std::mem::take(&mut self.held))
    }
}

fn weight(answer: &Answer) -> u8 {
    match answer {
        Answer::WrongDialect(_) => 5,
        Answer::Vote(Vote::Fault(fault)) => 3 + u8::from(fault.cause.is_not_run()),
        Answer::Vote(Vote::Refused | Vote::Partial) | Answer::Held(_) | Answer::Queued(_) | Answer::RefusedFor(..) => 2,
        Answer::Vote(Vote::Absent) => 1,
        Answer::Vote(Vote::Granted) | Answer::Fence(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::fault::{Cause, Fault, Phase};
    use crate::algorithm::lease::OwnerToken;
    use crate::algorithm::queue::{Entry, EntryKind};
    use crate::algorithm::time::Timestamp;
    use crate::protocol::dialect::Dialect;
    use crate::protocol::handshake::Handshake;
    use crate::protocol::lock_key::LockKey;
    use crate::protocol::operation::{Departure, Kind, Operation, Verb};
    use crate::protocol::session::{Abandoned, EncodedOperation, SentOperation, Session, SessionEvent, Ticket, Wakes};

    fn folded(letters: &str, acquires: bool) -> Answer {
        let fault = |cause| Answer::Vote(Vote::Fault(Fault::new(Phase::Reply, cause)));
        let answer = |letter| match letter {
            'g' => Answer::Vote(Vote::Granted),
            'r' => Answer::Vote(Vote::Refused),
            'a' => Answer::Vote(Vote::Absent),
            'n' => fault(Cause::Loading),
            'f' => fault(Cause::UnexpectedValue),
            _ => Answer::WrongDialect(Cause::NoPermission),
        };
        let mut parts = PartAnswers::default();
        let (last, first) = letters.as_bytes().split_last().unwrap();
        for (part, &letter) in first.iter().enumerate() {
            parts.add(part as u8, answer(char::from(letter)));
        }
        let mut folded = answer(char::from(*last));
        parts.finish(first.len() as u8, &mut folded, acquires);
        assert!(parts.worst.is_none() && parts.refused == 0 && !parts.has_granted, "the next request begins anew");
        folded
    }

    const TICKET: Ticket = Ticket { slot: 0, generation: 0 };
    const ACQUIRE: Operation = Operation { verb: Verb::Acquire { ttl_millis: 1 }, kind: Kind::Plain };
    const RELEASE: Operation = Operation { verb: Verb::Release(None), kind: Kind::Plain };

    /// A session with a server that speaks this dialect, and what it sends for an operation on two keys.
    fn asked(dialect: Dialect, operation: Operation) -> (Session, String) {
        let mut session = Session::open(&Handshake::default(), Some(dialect), Timestamp::ORIGIN);
        let silent = "-NOPERM no\r\n".repeat(2);
        assert_eq!(events(&mut session, &silent), [SessionEvent::Accepted]);
        session.traffic.sent(session.traffic.unsent().len());
        let (key, token) = (LockKey::of("", ["b", "a"]), OwnerToken::from_entropy([0xab; OwnerToken::ENTROPY]));
        let encoded = &mut EncodedOperation::default();
        session.queue(&SentOperation::new(TICKET, operation), (key.as_bytes(), &token), Timestamp::ORIGIN, encoded);
        let sent = String::from_utf8(session.traffic.unsent().to_vec()).unwrap();
        (session, sent.replace("\r\n", " ").replace(&"ab".repeat(20), "TOKEN"))
    }

    fn events(session: &mut Session, text: &str) -> Vec<SessionEvent> {
        session.traffic.space()[..text.len()].copy_from_slice(text.as_bytes());
        session.traffic.received(text.len());
        std::iter::from_fn(|| session.next_event().unwrap()).collect()
    }

    #[test]
    fn a_set_is_one_request_of_several_commands_and_one_vote() {
        let sent = ["a", "b"].map(|key| format!("*6 $3 SET $1 {key} $40 TOKEN $2 NX $2 PX $1 1 ")).concat();
        for (replies, event) in [
            ("+OK\r\n+OK\r\n", SessionEvent::Answered(TICKET, Vote::Granted)),
            ("+OK\r\n$-1\r\n", SessionEvent::RefusedFor(TICKET, Vote::Partial, 0b10)),
            ("$-1\r\n$-1\r\n", SessionEvent::RefusedFor(TICKET, Vote::Refused, 0b11)),
        ] {
            let (mut session, bytes) = asked(Dialect::Eval, ACQUIRE);
            assert_eq!(bytes, sent);
            assert_eq!(session.traffic.backlog(), 2);
            assert_eq!(events(&mut session, &replies[..5]), [], "half of it is no answer");
            assert_eq!(events(&mut session, &replies[5..]), [event]);
            assert_eq!(session.traffic.backlog(), 0);
        }
        for bytes in [0, 1] {
            let (mut session, _) = asked(Dialect::Eval, ACQUIRE);
            session.traffic.sent(bytes);
            assert_eq!(events(&mut session, "+OK\r\n"), []);
            let left: Vec<_> = session.abandon().collect();
            let [(TICKET, kind)] = left[..] else { panic!("{left:?}") };
            assert_eq!(matches!(kind, Abandoned::Unwritten(_)), bytes == 0, "{kind:?}");
        }
    }

    #[test]
    fn a_release_of_a_set_reports_for_each_key_who_was_told() {
        let released = SessionEvent::Answered(TICKET, Vote::Granted);
        let untouched = SessionEvent::Answered(TICKET, Vote::Refused);
        for (replies, event, told, more, is_denied) in [
            (":1\r\n:1\r\n", released, 0, 0, false),
            (":2\r\n:1\r\n", released, 0b01, 0, false),
            (":1\r\n:2\r\n", released, 0b10, 0, false),
            (":2\r\n:2\r\n", released, 0b11, 0, false),
            (":3\r\n:2\r\n", released, 0b10, 0b01, false),
            (":1\r\n:3\r\n", released, 0, 0b10, false),
            (":4\r\n:1\r\n", released, 0, 0, true),
            (":1\r\n:4\r\n", released, 0, 0, true),
            (":-2\r\n:-3\r\n", untouched, 0b01, 0b10, false),
        ] {
            let (mut session, _) = asked(Dialect::Eval, RELEASE);
            assert_eq!(session.unanswered_releases(), 1);
            assert_eq!(events(&mut session, replies), [event], "{replies:?}");
            assert_eq!(session.take_wakes(), Wakes { told, more, is_denied }, "{replies:?}");
            assert_eq!((session.take_wakes(), session.unanswered_releases()), (Wakes::default(), 0), "once");
        }
        // A command that is no script tells no call.
        let (mut session, sent) = asked(Dialect::Delifeq, RELEASE);
        assert_eq!(sent, "*3 $7 DELIFEQ $1 a $40 TOKEN *3 $7 DELIFEQ $1 b $40 TOKEN ");
        assert_eq!(events(&mut session, ":1\r\n:1\r\n"), [released]);
        assert_eq!(session.take_wakes(), Wakes::default());
    }

    #[test]
    fn the_entry_of_a_call_for_a_set_is_in_the_queue_of_one_of_its_keys() {
        let entry = Entry { client: 0xab, kind: EntryKind::Mutex, number: 7 };
        for (key, expected) in [(0, ["|00000000000000abm7|9", ""]), (1, ["", "|00000000000000abm7|9"])] {
            let departure = Departure { entry, ticket: Some(9), key };
            let verb = Verb::Release(Some(departure));
            let (_, sent) = asked(Dialect::Eval, Operation { verb, kind: Kind::Plain });
            let commands: Vec<&str> = sent.split("$7 release ").skip(1).collect();
            let words = commands.iter().map(|command| {
                let words = command.split(' ').skip(1).step_by(2).take_while(|word| !word.starts_with('$'));
                words.skip(1).map(|word| format!("|{word}")).collect::<String>()
            });
            assert_eq!(words.collect::<Vec<_>>(), expected, "{sent}");
        }
    }

    #[test]
    fn a_server_that_sets_all_or_none_is_asked_so_unless_it_turns_out_otherwise() {
        let (key, token) = (LockKey::of("", ["a", "b"]), OwnerToken::from_entropy([0xab; OwnerToken::ENTROPY]));
        let about = (key.as_bytes(), &token);
        let mut session = Session::open(&Handshake::default(), None, Timestamp::ORIGIN);
        let info = "redis_version:8.4.0\r\nrole:master\r\n";
        let info = format!("${}\r\n{info}\r\n-NOPERM no\r\n", info.len());
        assert_eq!(events(&mut session, &info), [SessionEvent::Accepted]);
        let queue = |session: &mut Session| {
            session.traffic.sent(session.traffic.unsent().len());
            session.queue(
                &SentOperation::new(TICKET, ACQUIRE),
                about,
                Timestamp::ORIGIN,
                &mut EncodedOperation::default(),
            );
            String::from_utf8_lossy(session.traffic.unsent()).into_owned()
        };
        assert!(queue(&mut session).starts_with("*9\r\n$6\r\nMSETEX\r\n"));
        assert_eq!(events(&mut session, ":0\r\n"), [SessionEvent::Answered(TICKET, Vote::Refused)], "nothing is set");
        // A waiter asks which keys are there.
        queue(&mut session);
        session.ask_for_held_keys(TICKET, key.as_bytes(), Timestamp::ORIGIN);
        let reported = events(&mut session, ":0\r\n:-2\r\n:9\r\n");
        assert_eq!(reported, [SessionEvent::Answered(TICKET, Vote::Refused), SessionEvent::HeldKeys(TICKET, 0b10)]);

        queue(&mut session);
        let reported = events(&mut session, "-NOPERM no permissions to run 'msetex'\r\n");
        let [SessionEvent::WrongDialect(again)] = reported[..] else { panic!("{reported:?}") };
        assert_eq!(queue(&mut session).matches("NX\r\n").count(), 2, "remembered, though it is not asked again");
        assert_eq!(events(&mut session, "+OK\r\n+OK\r\n"), [SessionEvent::Answered(TICKET, Vote::Granted)]);
        session.traffic.sent(session.traffic.unsent().len());
        session.ask_again(again, about.0, about.1, Timestamp::ORIGIN);
        assert_eq!(String::from_utf8_lossy(session.traffic.unsent()).matches("NX\r\n").count(), 2);
        events(&mut session, "+OK\r\n+OK\r\n");
        session.ask_for_held_keys(TICKET, key.as_bytes(), Timestamp::ORIGIN);
        assert_eq!(session.traffic.backlog(), 0, "the replies to SET say it");
    }

    #[test]
    fn a_set_is_asked_again_as_a_whole() {
        let (mut session, _) = asked(Dialect::Delifeq, RELEASE);
        let unknown = "-ERR unknown command 'DELIFEQ'\r\n";
        let reported = events(&mut session, &unknown.repeat(2));
        let [SessionEvent::WrongDialect(again)] = reported[..] else { panic!("{reported:?}") };
        session.traffic.sent(session.traffic.unsent().len());
        let (key, token) = (LockKey::of("", ["a", "b"]), OwnerToken::from_entropy([0xab; OwnerToken::ENTROPY]));
        session.ask_again(again, key.as_bytes(), &token, Timestamp::ORIGIN);
        assert_eq!(String::from_utf8_lossy(session.traffic.unsent()).matches("EVAL\r\n").count(), 2);
        assert_eq!(events(&mut session, ":1\r\n:1\r\n"), [SessionEvent::Answered(TICKET, Vote::Granted)]);
    }

    #[test]
    fn one_reply_outweighs_the_others_in_any_order() {
        for (index, heavier) in "wnfrag".char_indices() {
            for lighter in "wnfrag"[index..].chars() {
                let alone = folded(&format!("{heavier}{heavier}"), false);
                for letters in [format!("{heavier}{lighter}"), format!("{lighter}{heavier}{lighter}")] {
                    assert_eq!(folded(&letters, false), alone, "{letters}");
                }
            }
        }
    }

    #[test]
    fn an_attempt_that_was_refused_says_for_which_keys_and_whether_others_were_set() {
        for (letters, vote, keys) in [
            ("rr", Vote::Refused, 0b11),
            ("rg", Vote::Partial, 0b01),
            ("gr", Vote::Partial, 0b10),
            ("grgr", Vote::Partial, 0b1010),
        ] {
            assert_eq!(folded(letters, true), Answer::RefusedFor(vote, keys), "{letters}");
            assert_eq!(folded(letters, false), Answer::Vote(Vote::Refused), "{letters}");
        }
        assert_eq!(folded("gg", true), Answer::Vote(Vote::Granted));
    }
}
