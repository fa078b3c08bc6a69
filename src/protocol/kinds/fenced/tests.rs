//! What the replies of the script of fenced locks mean.

use super::*;
use crate::algorithm::kind::Kind;
use crate::algorithm::vote::Vote;
use crate::fault::protocol_error::ProtocolError;
use crate::protocol::asked::Asked;
use crate::protocol::form::Form;
use crate::protocol::operation::{Operation, Verb};
use crate::protocol::reply;
use crate::protocol::resp::Reply;
use std::time::Duration;

const UNEXPECTED: Result<Answer, ProtocolError> = Err(ProtocolError::UnexpectedReply);
const ACQUIRE: Verb = Verb::Acquire { ttl_millis: 30_000 };
const EXTEND: Verb = Verb::Extend { ttl_millis: 30_000 };

fn meaning(verb: Verb, least: FencingToken, bytes: Reply<'_>) -> Result<Answer, ProtocolError> {
    let operation = Operation {
        verb,
        kind: Kind::Fenced(least),
        retention_millis: 86_400_000,
    };
    reply::meaning(Form::Text, Asked::of(&operation), bytes)
}

#[test]
fn a_reply_means_what_its_operation_makes_of_it() {
    let failed = |cause| Ok(Answer::fault(cause));
    let [granted, refused, absent] =
        [Vote::Granted, Vote::Refused, Vote::Absent].map(|vote| Ok(Answer::Vote(vote)));
    let [ahead, foreign, no_scripts] =
        [Cause::FenceAhead, Cause::UnexpectedValue, Cause::NoScripts].map(failed);
    let [denied, full] = [Cause::NoPermission, Cause::OutOfMemory].map(failed);
    let number = Ok(Answer::Fence(FencingToken::saturating(
        1_700_000_000_000_000,
    )));
    let held = |millis| Ok(Answer::Held(Duration::from_millis(millis)));
    let all = |meaning| [meaning; 4];
    let table: [(Reply<'_>, [&Result<Answer, ProtocolError>; 4]); 21] = [
        (
            Reply::Bulk(Some(b"1700000000000000")),
            [&number, &UNEXPECTED, &UNEXPECTED, &UNEXPECTED],
        ),
        (
            Reply::Bulk(Some(b"9007199254740992")),
            [&foreign, &UNEXPECTED, &UNEXPECTED, &UNEXPECTED],
        ),
        (
            Reply::Bulk(Some(b"1.7e+15")),
            [&foreign, &UNEXPECTED, &UNEXPECTED, &UNEXPECTED],
        ),
        (Reply::Bulk(None), all(&UNEXPECTED)),
        (
            Reply::Integer(1),
            [&UNEXPECTED, &granted, &granted, &granted],
        ),
        (
            Reply::Integer(0),
            [&UNEXPECTED, &absent, &refused, &refused],
        ),
        (
            Reply::Integer(-1),
            [&UNEXPECTED, &refused, &refused, &UNEXPECTED],
        ),
        (Reply::Integer(-2), [&foreign, &foreign, &foreign, &refused]),
        (Reply::Integer(-3), [&ahead, &UNEXPECTED, &ahead, &refused]),
        (
            Reply::Integer(-4),
            [&held(1), &UNEXPECTED, &UNEXPECTED, &refused],
        ),
        (
            Reply::Integer(-5),
            [&held(2), &UNEXPECTED, &UNEXPECTED, &UNEXPECTED],
        ),
        (
            Reply::Integer(i64::MIN),
            [
                &held(i64::MAX as u64 - 2),
                &UNEXPECTED,
                &UNEXPECTED,
                &UNEXPECTED,
            ],
        ),
        (
            Reply::Integer(2),
            [&UNEXPECTED, &UNEXPECTED, &UNEXPECTED, &granted],
        ),
        (Reply::Integer(5), all(&UNEXPECTED)),
        (Reply::Simple(b"OK"), all(&UNEXPECTED)),
        (
            Reply::Error(b"ERR unknown command 'EVAL', with args beginning with: 'l' "),
            all(&no_scripts),
        ),
        (
            Reply::Error(b"ERR Could not find scripting engine 'lua'"),
            all(&no_scripts),
        ),
        (
            Reply::Error(b"NOPERM this user has no permissions to run the 'eval' command"),
            all(&no_scripts),
        ),
        (
            Reply::Error(b"NOPERM No permissions to access a key"),
            all(&denied),
        ),
        (
            Reply::Error(b"ERR The user executing the script can't run this command or subcommand"),
            all(&denied),
        ),
        (
            Reply::Error(b"OOM command not allowed when used memory > 'maxmemory'."),
            all(&full),
        ),
    ];
    for (bytes, meanings) in table {
        for (verb, expected) in [ACQUIRE, EXTEND, Verb::Raise, Verb::Release(None)]
            .into_iter()
            .zip(meanings)
        {
            let actual = meaning(verb, FencingToken::MAX, bytes);
            assert_eq!(&actual, expected, "{bytes:?} to {verb:?}");
        }
    }
}

#[test]
fn a_value_is_read_as_it_is_written() {
    let token = "a7".repeat(20);
    let held = format!("7 1000 {token} host7");
    for text in [
        "7 0 ",
        "7 0  host7",
        &held,
        &format!("9007199254740991 9007199254740991 {token}"),
        &format!("7 1000 {token} host7 more"),
        &format!("7 1000 {token}  more"),
    ] {
        assert_eq!(
            FencedValue::parse(text.as_bytes()).unwrap().text(),
            text.as_bytes()
        );
    }
    let value = FencedValue::parse(held.as_bytes()).unwrap();
    assert_eq!(
        (value.fence, value.deadline, value.owner.label().as_str()),
        (7, 1000, Some("host7"))
    );
    assert_eq!(
        [400, 1000, 1001, 9000].map(|now| value.left(now)),
        [601, 1, 0, 0]
    );
    assert_eq!(
        FencedValue::parse(b"7 1000 ").unwrap().left(0),
        0,
        "no client holds it"
    );
    for text in [
        "",
        "7",
        "7 0",
        "0 0 ",
        "07 0 ",
        "7 00 ",
        "7 x ",
        "7 0 word",
        &token,
        &format!("7 0 {token} h\u{7f}"),
    ] {
        assert!(FencedValue::parse(text.as_bytes()).is_none(), "{text:?}");
    }
}
