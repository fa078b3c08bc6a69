//! What the replies of the script of read-write locks mean, and what is stored.

use super::ReadWriteValue;
use crate::algorithm::fence::FencingToken;
use crate::algorithm::kind::Kind;
use crate::algorithm::vote::Vote;
use crate::fault::Cause;
use crate::fault::protocol_error::ProtocolError;
use crate::protocol::asked::Asked;
use crate::protocol::form::{Answer, Form};
use crate::protocol::kinds::key_kind::Hold;
use crate::protocol::operation::{Operation, Verb};
use crate::protocol::reply;
use crate::protocol::resp::Reply;
use std::time::Duration;

const UNEXPECTED: Result<Answer, ProtocolError> = Err(ProtocolError::UnexpectedReply);
const FENCE: FencingToken = FencingToken::MAX;
const ACQUIRE: Verb = Verb::Acquire { ttl_millis: 30_000 };
const EXTEND: Verb = Verb::Extend { ttl_millis: 30_000 };

const fn write(verb: Verb, fence: Option<FencingToken>) -> Operation {
    Operation {
        verb,
        kind: Kind::Write(fence),
        retention_millis: 86_400_000,
    }
}

fn meaning(operation: &Operation, reply: Reply<'_>) -> Result<Answer, ProtocolError> {
    reply::meaning(Form::Text, Asked::of(operation), reply)
}

#[test]
fn a_reply_means_what_its_operation_makes_of_it() {
    let failed = |cause| Ok(Answer::fault(cause));
    let [granted, refused, absent] =
        [Vote::Granted, Vote::Refused, Vote::Absent].map(|vote| Ok(Answer::Vote(vote)));
    let [foreign, no_scripts] = [Cause::UnexpectedValue, Cause::NoScripts].map(failed);
    let [held, held_longer] = [1, 2].map(|millis| Ok(Answer::Held(Duration::from_millis(millis))));
    let [ahead, full] = [Cause::FenceAhead, Cause::OutOfMemory].map(failed);
    let number = Ok(Answer::Fence(FencingToken::saturating(
        1_700_000_000_000_000,
    )));
    let all = |meaning| [meaning; 5];
    let operations = [
        write(ACQUIRE, None),
        write(ACQUIRE, Some(FENCE)),
        write(EXTEND, Some(FENCE)),
        write(Verb::Raise, Some(FENCE)),
        write(Verb::Release(None), None),
    ];
    let table: [(Reply<'_>, [&Result<Answer, ProtocolError>; 5]); 14] = [
        (
            Reply::Integer(1),
            [&granted, &UNEXPECTED, &granted, &granted, &granted],
        ),
        (
            Reply::Integer(0),
            [&UNEXPECTED, &UNEXPECTED, &absent, &refused, &refused],
        ),
        (
            Reply::Integer(-1),
            [&UNEXPECTED, &UNEXPECTED, &refused, &refused, &UNEXPECTED],
        ),
        (
            Reply::Integer(-2),
            [&foreign, &foreign, &foreign, &foreign, &refused],
        ),
        (
            Reply::Integer(-3),
            [&UNEXPECTED, &ahead, &UNEXPECTED, &ahead, &refused],
        ),
        (
            Reply::Integer(-4),
            [&held, &held, &UNEXPECTED, &UNEXPECTED, &refused],
        ),
        (
            Reply::Integer(-5),
            [
                &held_longer,
                &held_longer,
                &UNEXPECTED,
                &UNEXPECTED,
                &UNEXPECTED,
            ],
        ),
        (
            Reply::Integer(2),
            [&UNEXPECTED, &UNEXPECTED, &UNEXPECTED, &UNEXPECTED, &granted],
        ),
        (Reply::Integer(5), all(&UNEXPECTED)),
        (Reply::Bulk(None), all(&UNEXPECTED)),
        (
            Reply::Bulk(Some(b"1700000000000000")),
            [&UNEXPECTED, &number, &UNEXPECTED, &UNEXPECTED, &UNEXPECTED],
        ),
        (
            Reply::Bulk(Some(b"9007199254740992")),
            [&UNEXPECTED, &foreign, &UNEXPECTED, &UNEXPECTED, &UNEXPECTED],
        ),
        (
            Reply::Error(b"NOPERM this user has no permissions to run the 'eval' command"),
            all(&no_scripts),
        ),
        (Reply::Error(b"OOM command not allowed"), all(&full)),
    ];
    for (bytes, meanings) in table {
        for (operation, expected) in operations.into_iter().zip(meanings) {
            assert_eq!(
                &meaning(&operation, bytes),
                expected,
                "{bytes:?} to {operation:?}"
            );
        }
    }
}

#[test]
fn what_has_ended_is_dropped_and_the_rest_stays_as_it_is() {
    let [one, two] = ["1", "2"].map(|digit| digit.repeat(40));
    for (text, now, left) in [
        (
            format!("r 7:{one} 9:{two}"),
            7,
            format!("r 7:{one} 9:{two}"),
        ),
        (format!("r 7:{one} 9:{two}"), 8, format!("r 9:{two}")),
        (format!("r 7:{one} 9:{two}"), 10, String::new()),
        (format!("w 7 {one}"), 7, format!("w 7 {one}")),
        (format!("w 7 {one}"), 8, String::new()),
        (format!("f 5 8 w 7 {one}"), 8, "f 5 8".to_owned()),
        (format!("f 5 8 r 9:{one}"), 9, format!("r 9:{one}")),
    ] {
        let mut value = ReadWriteValue::parse(text.as_bytes()).unwrap();
        value.expire(now);
        assert_eq!(value.text(), left.as_bytes(), "{text} at {now}");
        assert!(value.is_write == left.contains('w'), "{text} at {now}");
    }
}

#[test]
fn a_value_is_a_writer_or_readers_and_perhaps_a_number() {
    let one = "1".repeat(40);
    let two = "2".repeat(40);
    let read = |text: &str| ReadWriteValue::parse(text.as_bytes());
    let hold = |deadline, token: &str| Hold {
        deadline,
        signature: token.as_bytes().to_vec(),
    };
    let first = hold(7, &one);
    let second = hold(8, &two);
    for number in [None, Some((5, 0)), Some((5, 6))] {
        let (fence, kept) = number.unwrap_or_default();
        let front = number.map_or(String::new(), |_| format!("f {fence} {kept} "));
        for (behind, is_write, holds) in [
            (format!("w 7 {one}"), true, vec![first.clone()]),
            (format!("r 7:{one}"), false, vec![first.clone()]),
            (
                format!("r 7:{one} 8:{two}"),
                false,
                vec![first.clone(), second.clone()],
            ),
            (String::new(), false, vec![]),
        ] {
            let text = format!("{front}{behind}");
            let text = text.trim_end();
            let value = ReadWriteValue {
                is_write,
                holds,
                fence,
                kept,
            };
            if !text.is_empty() {
                assert!(read(text) == Some(value.clone()), "{text}");
            }
            assert_eq!(value.text(), text.as_bytes());
            assert!(
                read(format!("{text} +9 more").trim_start()) == Some(value),
                "{text}"
            );
        }
    }
    for wrong in [
        "",
        "r",
        "w",
        "x",
        "q 9",
        &one,
        &format!("w 7:{one}"),
        &format!("r 7 {one}"),
        "r 7:1",
    ] {
        assert!(read(wrong).is_none(), "{wrong:?}");
    }
    for wrong in [
        "f",
        "f 5",
        "f 5 6 ",
        "f 05 6",
        "f 5 x",
        "f 5 9007199254740992",
        "9 f 5 6",
        "f 5 6 f 5 6",
    ] {
        assert!(read(wrong).is_none(), "{wrong:?}");
    }
}
