//! The replies to the commands of one request, one for each key of a set: folded into one answer.
//!
//! It is all keys or nothing, so one reply outweighs another:
//!
//! ```text
//!    worth another form  >  not run  >  another fault  >  refused  >  absent  >  granted
//! ```
//!
//! Where a node has refused a key, it may have set the ones before it or behind it. Its vote shows
//! that, and the attempt is undone there.

use crate::algorithm::vote::Vote;
use crate::protocol::form::Answer;

/// What was answered so far to the request whose replies are arriving.
#[derive(Debug, Default)]
pub(super) struct PartAnswers {
    worst: Option<Answer>,
    /// A bit for each key.
    refused: u64,
    has_granted: bool,
}

impl PartAnswers {
    /// Takes the answer to one part.
    pub(super) fn add(&mut self, part: u8, answer: Answer) {
        let worst = self.worst_with(part, answer);
        self.worst = Some(worst);
    }

    /// Whether all parts so far were granted.
    pub(super) fn have_granted(&self) -> bool {
        matches!(self.worst, None | Some(Answer::Vote(Vote::Granted)))
    }

    /// Takes the answer to the last part, and returns the answer to the whole request. `acquires`:
    /// it was to set the keys.
    pub(super) fn finish(&mut self, part: u8, answer: Answer, acquires: bool) -> Answer {
        let worst = self.worst_with(part, answer);
        let PartAnswers {
            refused,
            has_granted,
            ..
        } = std::mem::take(self);
        match worst {
            Answer::Vote(Vote::Refused) if acquires => {
                let vote = if has_granted {
                    Vote::Partial
                } else {
                    Vote::Refused
                };
                Answer::RefusedFor(vote, refused)
            }
            worst => worst,
        }
    }

    /// The worst answer so far, this one included; the first one of several.
    fn worst_with(&mut self, part: u8, answer: Answer) -> Answer {
        match answer {
            Answer::Vote(Vote::Granted) => self.has_granted = true,
            Answer::Vote(Vote::Refused) => self.refused |= 1 << part,
            _ => {}
        }
        self.worst
            .take()
            .filter(|worst| weight(worst) >= weight(&answer))
            .unwrap_or(answer)
    }
}

fn weight(answer: &Answer) -> u8 {
    match answer {
        Answer::WrongForm => 5,
        Answer::Vote(Vote::Fault(fault)) => 3 + u8::from(fault.cause.is_not_run()),
        Answer::Vote(Vote::Refused | Vote::Partial)
        | Answer::Held(_)
        | Answer::Queued(_)
        | Answer::RefusedFor(..) => 2,
        Answer::Vote(Vote::Absent) => 1,
        Answer::Vote(Vote::Granted) | Answer::Fence(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::kind::EntryKind;
    use crate::algorithm::lease::OwnerToken;
    use crate::algorithm::queue::Entry;
    use crate::algorithm::time::Timestamp;
    use crate::fault::{Cause, Fault, Phase};
    use crate::protocol::handshake::Handshake;
    use crate::protocol::lock_key::LockKey;
    use crate::protocol::operation::{Departure, Verb};
    use crate::protocol::session::tests::{
        events, feed, granted, operation, receives, sent, ticket, voted,
    };
    use crate::protocol::session::{Abandoned, Command, Log, Session, SessionEvent, Wakes};

    fn folded(letters: &str, acquires: bool) -> Answer {
        let fault = |cause| Answer::Vote(Vote::Fault(Fault::new(Phase::Reply, cause)));
        let answer = |letter| match letter {
            'g' => Answer::Vote(Vote::Granted),
            'r' => Answer::Vote(Vote::Refused),
            'a' => Answer::Vote(Vote::Absent),
            'n' => fault(Cause::Loading),
            'f' => fault(Cause::UnexpectedValue),
            _ => Answer::WrongForm,
        };
        let mut parts = PartAnswers::default();
        let (last, first) = letters.as_bytes().split_last().unwrap();
        for (part, &letter) in first.iter().enumerate() {
            parts.add(part as u8, answer(char::from(letter)));
        }
        let folded = parts.finish(first.len() as u8, answer(char::from(*last)), acquires);
        assert!(
            parts.worst.is_none() && parts.refused == 0 && !parts.has_granted,
            "the next request begins anew"
        );
        folded
    }

    const ACQUIRE: Verb = Verb::Acquire { ttl_millis: 1 };
    const RELEASE: Verb = Verb::Release(None);

    /// A session, and what it sends for an operation on two keys.
    fn asked(verb: Verb) -> (Session, String) {
        let mut session = Session::open(&Handshake::default(), Timestamp::ORIGIN);
        let silent = "-NOPERM no\r\n".repeat(2);
        receives(&mut session, &silent, [SessionEvent::Accepted]);
        sent(&mut session);
        let key = LockKey::of("", ["b", "a"]);
        let token = OwnerToken::from_entropy([0xab; OwnerToken::ENTROPY]);
        let operation = operation(verb);
        let command = Command::new(ticket(0), &operation, &key, &token);
        session.queue(&command, Timestamp::ORIGIN);
        let unsent = String::from_utf8(session.pipeline.unsent(&Log::default()).to_vec()).unwrap();
        let words = unsent.replace("\r\n", " ");
        (session, words.replace(&"ab".repeat(20), "TOKEN"))
    }

    #[test]
    fn a_set_is_one_request_of_several_commands_and_one_vote() {
        let sent = ["a", "b"]
            .map(|key| format!("*6 $3 SET $1 {key} $40 TOKEN $2 NX $2 PX $1 1 "))
            .concat();
        for (replies, event) in [
            ("+OK\r\n+OK\r\n", granted(0)),
            (
                "+OK\r\n$-1\r\n",
                SessionEvent::Answered(ticket(0), Answer::RefusedFor(Vote::Partial, 0b10)),
            ),
            (
                "$-1\r\n$-1\r\n",
                SessionEvent::Answered(ticket(0), Answer::RefusedFor(Vote::Refused, 0b11)),
            ),
        ] {
            let (mut session, bytes) = asked(ACQUIRE);
            assert_eq!(bytes, sent);
            assert_eq!(session.pipeline.backlog().requests, 2);
            assert_eq!(
                events(&mut session, &replies[..5]),
                [],
                "half of it is no answer"
            );
            receives(&mut session, &replies[5..], [event]);
            assert_eq!(session.pipeline.backlog().requests, 0);
        }
        for bytes in [0, 1] {
            let (mut session, _) = asked(ACQUIRE);
            session.pipeline.sent(bytes);
            receives(&mut session, "+OK\r\n", []);
            let left: Vec<_> = session.abandon().collect();
            let [(ended, kind)] = left[..] else {
                panic!("{left:?}")
            };
            assert_eq!(ended, ticket(0));
            assert_eq!(matches!(kind, Abandoned::Unwritten), bytes == 0, "{kind:?}");
        }
    }

    #[test]
    fn a_release_of_a_set_reports_for_each_key_who_was_told() {
        let released = granted(0);
        let untouched = voted(0, Vote::Refused);
        for (replies, event, told, more, is_denied) in [
            (":1\r\n:1\r\n", &released, 0, 0, false),
            (":2\r\n:1\r\n", &released, 0b01, 0, false),
            (":1\r\n:2\r\n", &released, 0b10, 0, false),
            (":2\r\n:2\r\n", &released, 0b11, 0, false),
            (":3\r\n:2\r\n", &released, 0b10, 0b01, false),
            (":1\r\n:3\r\n", &released, 0, 0b10, false),
            (":4\r\n:1\r\n", &released, 0, 0, true),
            (":1\r\n:4\r\n", &released, 0, 0, true),
            (":-2\r\n:-3\r\n", &untouched, 0b01, 0b10, false),
        ] {
            let (mut session, _) = asked(RELEASE);
            assert_eq!(session.pipeline.unanswered_releases(&Log::default()), 1);
            assert_eq!(
                events(&mut session, replies),
                std::slice::from_ref(event),
                "{replies:?}"
            );
            assert_eq!(
                session.take_wakes(),
                Wakes {
                    told,
                    more,
                    is_denied
                },
                "{replies:?}"
            );
            assert_eq!(
                (
                    session.take_wakes(),
                    session.pipeline.unanswered_releases(&Log::default())
                ),
                (Wakes::default(), 0),
                "once"
            );
        }
    }

    /// Otherwise the next request would seem to have told the client.
    #[test]
    fn a_set_is_no_plain_vote_if_the_release_of_a_key_has_told_another_client() {
        let log = Log::default();
        for (first, is_plain) in [(":1\r\n", true), (":2\r\n", false), (":4\r\n", false)] {
            let (mut session, _) = asked(RELEASE);
            receives(&mut session, first, []);
            feed(&mut session, b":1\r\n");
            let vote = session.next_plain_vote(&log).unwrap();
            assert_eq!(vote.is_some(), is_plain, "{first:?}");
            if !is_plain {
                receives(&mut session, "", [granted(0)]);
                assert_ne!(session.take_wakes(), Wakes::default(), "{first:?}");
            }
        }
    }

    #[test]
    fn the_entry_of_a_call_for_a_set_is_in_the_queue_of_one_of_its_keys() {
        let entry = Entry {
            client: 0xab,
            kind: EntryKind::Mutex,
            number: 7,
        };
        for (key, expected) in [
            (0, ["|00000000000000abm7|9", ""]),
            (1, ["", "|00000000000000abm7|9"]),
        ] {
            let departure = Departure {
                entry,
                ticket: Some(9),
                key,
            };
            let verb = Verb::Release(Some(departure));
            let (_, sent) = asked(verb);
            let commands: Vec<&str> = sent.split("$7 release ").skip(1).collect();
            let words = commands.iter().map(|command| {
                let words = command
                    .split(' ')
                    .skip(1)
                    .step_by(2)
                    .take_while(|word| !word.starts_with('$'));
                words
                    .skip(1)
                    .map(|word| format!("|{word}"))
                    .collect::<String>()
            });
            assert_eq!(words.collect::<Vec<_>>(), expected, "{sent}");
        }
    }

    #[test]
    fn a_set_is_asked_again_as_a_whole() {
        let (mut session, _) = asked(RELEASE);
        receives(&mut session, ":1\r\n:1\r\n", [granted(0)]);
        let key = LockKey::of("", ["a", "b"]);
        let token = OwnerToken::from_entropy([0xab; OwnerToken::ENTROPY]);
        let operation = operation(RELEASE);
        let command = Command::new(ticket(0), &operation, &key, &token);
        session.queue(&command, Timestamp::ORIGIN);
        receives(
            &mut session,
            &"-NOSCRIPT No matching script.\r\n".repeat(2),
            [SessionEvent::Answered(ticket(0), Answer::WrongForm)],
        );
        sent(&mut session);
        session.ask_again(&command, Timestamp::ORIGIN);
        assert_eq!(
            String::from_utf8_lossy(session.pipeline.unsent(&Log::default()))
                .matches("EVAL\r\n")
                .count(),
            2
        );
        receives(&mut session, ":1\r\n:1\r\n", [granted(0)]);
    }

    #[test]
    fn one_reply_outweighs_the_others_in_any_order() {
        for (index, heavier) in "wnfrag".char_indices() {
            for lighter in "wnfrag"[index..].chars() {
                let alone = folded(&format!("{heavier}{heavier}"), false);
                for letters in [
                    format!("{heavier}{lighter}"),
                    format!("{lighter}{heavier}{lighter}"),
                ] {
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
            assert_eq!(
                folded(letters, true),
                Answer::RefusedFor(vote, keys),
                "{letters}"
            );
            assert_eq!(
                folded(letters, false),
                Answer::Vote(Vote::Refused),
                "{letters}"
            );
        }
        assert_eq!(folded("gg", true), Answer::Vote(Vote::Granted));
    }
}
