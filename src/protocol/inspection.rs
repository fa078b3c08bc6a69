//! Which holder has a lock: how a node is asked, and what its replies mean.
//!
//! ```text
//!    a plain lock    GET key, ZCARD queue, PTTL key    "token", or "token label"; or of another library
//!    a fenced lock   GET key, ZCARD queue, TIME        "fence deadline token", or "fence deadline token label"
//! ```
//!
//! A fenced lock's key expires when its fence does: the lock ends at the deadline, by the node's
//! clock. Nothing of a token leaves this file but its hash.

use super::command;
use super::error_reply::ErrorReply;
use super::key_space;
use super::kinds::key_kind::{Hold, KeyKind, StoredLock};
use super::kinds::{fenced, plain};
use super::resp::{self, Reply};
use crate::algorithm::holder::HolderTag;
use crate::algorithm::inspection::Occupant;
use crate::algorithm::label::HolderLabel;
use crate::algorithm::vote::Vote;
use crate::fault::protocol_error::ProtocolError;
use crate::fault::server_error::ServerError;
use crate::fault::{Cause, Fault, Phase};
use std::time::Duration;

/// What a node has replied to the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    /// Granted with an occupant, or absent.
    pub vote: Vote,
    /// What the node has under the key, with how long it lasts from now on.
    pub occupant: Option<Occupant>,
    /// How many calls wait for the lock.
    pub waiting: u64,
}

/// What `GET` has brought.
#[derive(Debug, Default, PartialEq, Eq)]
enum Stored {
    /// No key, or a fenced lock that is free.
    #[default]
    Nothing,
    /// A signature, with the deadline of a fenced lock in milliseconds of the node's clock.
    Signature(HolderTag, HolderLabel, u64),
    Fault(Fault),
}

/// What the replies to one question have brought so far: they arrive one behind the other.
#[derive(Default)]
pub(super) struct Inquiry {
    stored: Stored,
    waiting: u64,
}

impl Inquiry {
    /// Takes the reply to `GET`.
    ///
    /// # Errors
    /// A reply that it never returns.
    pub(super) fn learn_value(
        &mut self,
        reply: Reply<'_>,
        is_fenced: bool,
    ) -> Result<(), ProtocolError> {
        self.stored = match reply {
            Reply::Bulk(None) => Stored::Nothing,
            Reply::Bulk(Some(value)) => stored(
                value,
                if is_fenced {
                    &fenced::KEYS
                } else {
                    &plain::KEYS
                },
            ),
            Reply::Error(text) => match ErrorReply::read(text) {
                ErrorReply {
                    cause: Cause::Server(ServerError::WrongType),
                    ..
                } => UNEXPECTED,
                error => Stored::Fault(error.fault("GET")),
            },
            _ => return Err(ProtocolError::UnexpectedReply),
        };
        Ok(())
    }

    /// Takes the reply to `ZCARD`. A user may have no right to it, and a server may not know it:
    /// then no call counts.
    ///
    /// # Errors
    /// A reply that it never returns.
    pub(super) fn learn_waiting(&mut self, reply: Reply<'_>) -> Result<(), ProtocolError> {
        self.waiting = match reply {
            Reply::Integer(count) => {
                u64::try_from(count).map_err(|_| ProtocolError::UnexpectedReply)?
            }
            Reply::Error(_) => 0,
            _ => return Err(ProtocolError::UnexpectedReply),
        };
        Ok(())
    }

    /// The node's answer: the reply to `PTTL` or `TIME`, together with the others.
    ///
    /// # Errors
    /// A reply that they never give.
    pub(super) fn finish(
        &mut self,
        reply: Reply<'_>,
        is_fenced: bool,
    ) -> Result<Inspected, ProtocolError> {
        let Inquiry { stored, waiting } = std::mem::take(self);
        let end = match (reply, &stored) {
            (Reply::Error(text), _) => {
                Err(ErrorReply::read(text).fault(if is_fenced { "TIME" } else { "PTTL" }))
            }
            (reply, stored) if is_fenced => {
                let now = command::time_reply(reply)? / 1000;
                // It is held through the last millisecond of its time.
                let left =
                    |deadline: u64| Duration::from_millis((deadline + 1).saturating_sub(now));
                Ok(if let &Stored::Signature(_, _, deadline) = stored {
                    Some(left(deadline))
                } else {
                    None
                })
            }
            (reply, _) => Ok(command::remaining_reply(reply)?),
        };
        let (vote, occupant) = match (stored, end) {
            (Stored::Fault(fault), _) | (_, Err(fault)) => (Vote::Fault(fault), None),
            // It has ended between the two.
            (Stored::Nothing, _) | (_, Ok(Some(Duration::ZERO))) => (Vote::Absent, None),
            (Stored::Signature(tag, label, _), Ok(left)) => {
                (Vote::Granted, Some(Occupant { tag, label, left }))
            }
        };
        Ok(Inspected {
            vote,
            occupant,
            waiting,
        })
    }
}

/// Writes the three questions.
pub(super) fn ask(out: &mut Vec<u8>, key: &[u8], is_fenced: bool) {
    resp::encode(out, &[b"GET", key]);
    resp::encode(
        out,
        &[b"ZCARD", &[key_space::QUEUE.as_bytes(), key].concat()],
    );
    match is_fenced {
        false => command::remaining(out, key),
        true => command::time(out),
    }
}

const UNEXPECTED: Stored = Stored::Fault(Fault::new(Phase::Reply, Cause::UnexpectedValue));

/// The holder with this value. Another library's has no label, whatever it looks like.
fn stored(value: &[u8], keys: &KeyKind) -> Stored {
    match (keys.parse)(value) {
        Some(StoredLock { holds, label, .. }) => holds.first().map_or(Stored::Nothing, |hold| {
            Stored::Signature(HolderTag::of(&hold.signature), label, hold.deadline)
        }),
        None if *keys == plain::KEYS => {
            Stored::Signature(HolderTag::of(value), HolderLabel::NONE, Hold::KEY_END)
        }
        None => UNEXPECTED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed<R>(text: &str, parse: impl FnOnce(Reply<'_>) -> R) -> R {
        parse(resp::decode(text.as_bytes()).unwrap().unwrap().0)
    }

    fn answer(
        value: &str,
        end: &str,
        is_fenced: bool,
    ) -> Result<(Vote, Option<Occupant>), ProtocolError> {
        let mut inquiry = Inquiry::default();
        parsed(value, |reply| inquiry.learn_value(reply, is_fenced))?;
        parsed(end, |reply| inquiry.finish(reply, is_fenced))
            .map(|inspected| (inspected.vote, inspected.occupant))
    }

    fn bulk(text: &str) -> String {
        format!("${}\r\n{text}\r\n", text.len())
    }

    #[test]
    fn a_plain_lock_is_its_value_and_its_expiry() {
        let token = "a7".repeat(20);
        let held = |value: &str| {
            let (vote, occupant) = answer(&bulk(value), ":4999\r\n", false).unwrap();
            let occupant = occupant.unwrap();
            assert_eq!(
                (vote, occupant.left),
                (Vote::Granted, Some(Duration::from_secs(5)))
            );
            (occupant.tag, occupant.label.as_str().map(str::to_owned))
        };
        let [plain, labelled, other] =
            [&token, &format!("{token} host7"), &"b8".repeat(20)].map(|value| held(value));
        assert_eq!((plain.1, labelled.1.as_deref()), (None, Some("host7")));
        assert!(plain.0 != other.0 && plain.0 != labelled.0);
        for foreign in [
            "",
            "locked",
            "2f4ce0a4-0c9f-11ef host7",
            &format!("{token} h\u{7f}"),
            &format!("{token}host7"),
        ] {
            assert_eq!(held(foreign).1, None, "{foreign}");
        }
        assert_eq!(
            answer("$-1\r\n", ":-2\r\n", false),
            Ok((Vote::Absent, None))
        );
        assert_eq!(
            answer(&bulk(&token), ":-2\r\n", false),
            Ok((Vote::Absent, None))
        );
        let (_, endless) = answer(&bulk(&token), ":-1\r\n", false).unwrap();
        assert_eq!(endless.unwrap().left, None);
    }

    #[test]
    fn a_queue_that_cannot_be_asked_for_has_no_calls() {
        let waiting = |text: &str| {
            let mut inquiry = Inquiry::default();
            parsed(text, |reply| inquiry.learn_waiting(reply)).map(|()| inquiry.waiting)
        };
        assert_eq!((waiting(":0\r\n"), waiting(":3\r\n")), (Ok(0), Ok(3)));
        assert_eq!(
            waiting(&format!(":{}\r\n", i64::MAX)),
            Ok(i64::MAX.unsigned_abs())
        );
        for refusal in [
            "-NOPERM this user has no\r\n",
            "-WRONGTYPE no\r\n",
            "-ERR unknown command\r\n",
        ] {
            assert_eq!(waiting(refusal), Ok(0), "{refusal}");
        }
        for other in [":-1\r\n", "+OK\r\n", "$1\r\n1\r\n"] {
            assert_eq!(
                waiting(other),
                Err(ProtocolError::UnexpectedReply),
                "{other}"
            );
        }
    }

    #[test]
    fn a_fenced_lock_ends_at_its_deadline() {
        let token = "a7".repeat(20);
        let time = "*2\r\n$4\r\n1700\r\n$6\r\n250999\r\n";
        let at = |deadline: u64| {
            answer(&bulk(&format!("9 {deadline} {token} host7")), time, true).unwrap()
        };
        let (vote, occupant) = at(1_700_350);
        let Occupant { tag, label, left } = occupant.unwrap();
        assert_eq!(
            (vote, left),
            (Vote::Granted, Some(Duration::from_millis(101)))
        );
        assert_eq!(label.as_str(), Some("host7"));
        assert_eq!(
            at(1_700_351).1.unwrap().tag,
            tag,
            "nodes have deadlines of their own"
        );
        assert!(at(1_700_250).1.is_some(), "through the last millisecond");
        assert_eq!(at(1_700_249), (Vote::Absent, None));
        for free in ["9 0 ", "9 0  host7"] {
            assert_eq!(answer(&bulk(free), time, true), Ok((Vote::Absent, None)));
        }
        let unexpected = Vote::Fault(Fault::new(Phase::Reply, Cause::UnexpectedValue));
        for other in ["", "9", "9 0", "x 0 ", "9 0 host7", "locked"] {
            assert_eq!(
                answer(&bulk(other), time, true),
                Ok((unexpected, None)),
                "{other}"
            );
        }
        assert_eq!(
            answer("-WRONGTYPE no\r\n", time, true),
            Ok((unexpected, None))
        );
    }

    #[test]
    fn what_is_denied_is_named_and_what_is_no_reply_is_refused() {
        let denied = |command| {
            let text = b"NOPERM this user has no permissions to run the command";
            Ok((Vote::Fault(ErrorReply::read(text).fault(command)), None))
        };
        let no = "-NOPERM this user has no\r\n";
        let value = "$1\r\nv\r\n";
        let time = "*2\r\n$1\r\n1\r\n$1\r\n1\r\n";
        assert_eq!(answer(no, no, false), denied("GET"));
        assert_eq!(answer(value, no, false), denied("PTTL"));
        assert_eq!(answer("$-1\r\n", no, true), denied("TIME"));
        for (value, end, is_fenced) in [
            ("+OK\r\n", ":1\r\n", false),
            (value, "+OK\r\n", false),
            (value, time, false),
            ("$-1\r\n", ":1\r\n", true),
            ("$-1\r\n", "*1\r\n$1\r\n1\r\n", true),
            ("$-1\r\n", "*2\r\n$1\r\nx\r\n$1\r\n1\r\n", true),
        ] {
            assert_eq!(
                answer(value, end, is_fenced),
                Err(ProtocolError::UnexpectedReply),
                "{value} {end}"
            );
        }
    }
}
