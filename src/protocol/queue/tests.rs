//! What the replies to the scripts mean. `words` is about requests, `errors` about error replies.

use super::super::asked::Asked;
use super::super::reply;
use super::super::reply_tests::{check, operation};
use super::super::resp::Reply;
use super::super::wake::Wakes;
use super::*;
use crate::algorithm::fence::{FencingToken, LEAD_LIMIT};
use crate::algorithm::kind::EntryKind;
use crate::algorithm::kind::Kind;
use crate::algorithm::queue::Entry;
use crate::algorithm::vote::Vote;
use crate::fault::detail::Detail;
use crate::fault::protocol_error::ProtocolError;

mod errors;
mod words;

const UNEXPECTED: Result<Answer, ProtocolError> = Err(ProtocolError::UnexpectedReply);
const FENCED: Kind = Kind::Fenced(FencingToken::MAX);
const WRITE_FENCED: Kind = Kind::Write(Some(FencingToken::MAX));
const KINDS: [Kind; 6] = [
    Kind::Plain,
    Kind::Permit(3),
    FENCED,
    Kind::Read,
    Kind::Write(None),
    WRITE_FENCED,
];

fn entry(kind: EntryKind) -> Entry {
    Entry {
        client: 0xab,
        kind,
        number: 7,
    }
}

fn take(ticket: TicketRequest) -> TakeRequest {
    TakeRequest {
        entry: Some(entry(EntryKind::Mutex)),
        ticket,
        ..TakeRequest::WITHOUT_ENTRY
    }
}

fn took(request: TakeRequest) -> Verb {
    Verb::Take {
        ttl_millis: 30_000,
        request,
    }
}

fn meaning(verb: Verb, kind: Kind, bytes: Reply<'_>) -> Result<Answer, ProtocolError> {
    reply::meaning(Form::Text, Asked::of(&operation(verb, kind)), bytes)
}

/// What this text means as the reply to a take that waits with a ticket.
fn taken(kind: Kind, text: &[u8]) -> Result<Answer, ProtocolError> {
    let verb = took(take(TicketRequest::Fixed(6)));
    meaning(verb, kind, Reply::Bulk(Some(text)))
}

fn failed(cause: Cause) -> Result<Answer, ProtocolError> {
    Ok(Answer::fault(cause))
}

#[test]
fn a_grant_is_one_or_the_number_of_a_lock_that_has_numbers() {
    let takes = KINDS.map(|kind| operation(took(take(TicketRequest::Fixed(6))), kind));
    let has_numbers = |take: &Operation| take.kind.fence().is_some();
    let (with, without): (Vec<_>, Vec<_>) = takes.into_iter().partition(has_numbers);
    for pair in without
        .iter()
        .flat_map(|take| with.iter().map(|with| [*take, *with]))
    {
        check(
            Form::Text,
            &pair,
            "
            :1 | granted | -
            $1700000000000000 | - | number 1700000000000000
            $9007199254740992 | - | UnexpectedValue
            $ | - | UnexpectedValue
            :-2 | UnexpectedValue
            :-3 | - | FenceAhead
            :-4 | -
            :0 | -
            :2 | -
            $-1 | -
            +OK | -
            *-1 | -
        ",
        );
    }
}

#[test]
fn a_user_without_a_right_learns_which_commands_an_operation_needs() {
    let refused = Reply::Error(b"NOPERM No permissions to access a key");
    let acquire = Verb::Acquire { ttl_millis: 30_000 };
    let extend = Verb::Extend { ttl_millis: 30_000 };
    let queues = "EVAL with GET, SET, DEL, EXISTS, PTTL, TIME and the commands of queues";
    for (verb, kind, needs) in [
        (acquire, Kind::Plain, "SET"),
        (extend, Kind::Plain, "EVAL with GET and PEXPIRE"),
        (Verb::Release(None), Kind::Plain, "EVAL with GET and DEL"),
        (Verb::Raise, FENCED, "EVAL with GET, SET and TIME"),
        (
            Verb::Release(None),
            Kind::Read,
            "EVAL with GET, SET, DEL, PEXPIRE and TIME",
        ),
        (took(take(TicketRequest::Fixed(6))), FENCED, queues),
        (Verb::Leave(None), Kind::Plain, queues),
    ] {
        let Ok(Answer::Vote(Vote::Fault(fault))) = meaning(verb, kind, refused) else {
            panic!("{verb:?} of {kind:?} is no fault");
        };
        assert_eq!(fault.detail, Detail::Key(needs), "{verb:?} {kind:?}");
    }
}

#[test]
fn a_number_that_is_far_ahead_of_what_was_asked_for_is_no_vote() {
    let number = FencingToken::saturating(1_700_000_000_000_000);
    let number = Ok(Answer::Fence(number));
    let ahead = failed(Cause::FenceAhead);
    let floor = 1_700_000_000_000_000 - LEAD_LIMIT;
    let kinds: [fn(FencingToken) -> Kind; 2] = [Kind::Fenced, |least| Kind::Write(Some(least))];
    for verb in [
        Verb::Acquire { ttl_millis: 30_000 },
        took(take(TicketRequest::Fixed(6))),
    ] {
        for kind in kinds {
            for (least, expected) in [(floor, &number), (floor - 1, &ahead), (1, &ahead)] {
                let kind = kind(FencingToken::saturating(least));
                assert_eq!(
                    &meaning(verb, kind, Reply::Bulk(Some(b"1700000000000000"))),
                    expected,
                    "{verb:?} {kind:?}"
                );
            }
        }
    }
}

#[test]
fn a_call_that_is_queued_learns_all_seven_fields() {
    let queued = |text: &str, kind| match taken(kind, text.as_bytes()) {
        Ok(Answer::Queued(reply)) => *reply,
        other => panic!("{other:?} to {text}"),
    };
    for kind in KINDS {
        let expected = QueueReply {
            storage: Storage::Now,
            ticket: 1_700_000_000_000_000,
            rank: 2,
            held: Some(Duration::from_millis(1500)),
            holder: Some(HolderTag::of(b"0123abcd")),
            is_other_library: false,
            slots: Slots::default(),
            head: Member::new(b"00000000000000cdm9"),
        };
        assert_eq!(
            queued(
                "n 1700000000000000 2 1500 0123abcd - 00000000000000cdm9",
                kind
            ),
            expected
        );
        let free = QueueReply {
            storage: Storage::Before,
            ticket: 5,
            rank: 0,
            held: Some(Duration::ZERO),
            holder: None,
            is_other_library: false,
            head: None,
            ..expected
        };
        assert_eq!(queued("y 5 0 0 - - ", kind), free);
        assert!(free.is_free() && !expected.is_free());
        assert_eq!(queued("y 5 0 -1 - - ", kind).held, None, "without an end");
        // What another program has written there may have spaces, and any length.
        assert_eq!(queued("y 5 0 0 - - a b", kind).head, Member::new(b"a b"));
        assert_eq!(
            queued(&format!("y 5 0 0 - - {}", "x".repeat(48)), kind).head,
            None
        );
    }
    assert_eq!(
        queued("y 5 0 0 - fte ", Kind::Permit(3)).slots,
        Slots::of(b"fte")
    );
}

#[test]
fn an_entry_that_could_not_be_stored_is_a_fault_only_where_it_is_needed() {
    for kind in KINDS {
        let by_take = |request, letter| {
            let text = format!("{letter} 5 0 0 - - ");
            meaning(took(request), kind, Reply::Bulk(Some(text.as_bytes())))
        };
        let with_entry = take(TicketRequest::Proposed(5));
        for (letter, storage) in [("o", Storage::NoMemory), ("d", Storage::Denied)] {
            let is_needed =
                storage == Storage::Denied && !matches!(kind, Kind::Plain | Kind::Permit(_));
            match by_take(with_entry, letter) {
                Ok(Answer::Queued(reply)) => {
                    assert_eq!((reply.storage, is_needed), (storage, false), "{kind:?}")
                }
                other => assert_eq!(
                    (other, is_needed),
                    (failed(Cause::NoPermission), true),
                    "{kind:?}"
                ),
            }
            assert!(
                matches!(
                    by_take(TakeRequest::WITHOUT_ENTRY, letter),
                    Ok(Answer::Queued(_))
                ),
                "{kind:?}"
            );
        }
    }
}

/// It is made of what is stored under the keys, which others may have written.
#[test]
fn a_damaged_reply_is_a_fault_of_the_lock_and_not_of_the_connection() {
    for kind in KINDS {
        for text in [
            "x 5 0 0 - - ",
            " 5 0 0 - - ",
            "yn 5 0 0 - - ",
            "y inf 0 0 - - ",
            "y -5 0 0 - - ",
            "y 1e+15 0 0 - - ",
            "y 18446744073709551616 0 0 - - ",
            "y 5 -1 0 - - ",
            "y 5 4294967296 0 - - ",
            "y 5 0 -2 - - ",
            "y 5 0 0.5 - - ",
            "y 5 0 0 - -",
            "y 5 0 0 -",
            "y 5 0",
            " ",
        ] {
            let reply = taken(kind, text.as_bytes());
            let unexpected = failed(Cause::UnexpectedValue);
            assert_eq!(reply, unexpected, "{text:?} to {kind:?}");
        }
        let bytes = taken(kind, b"y \xff 0 0 - - ");
        assert_eq!(bytes, failed(Cause::UnexpectedValue));
    }
}

#[test]
fn a_release_and_a_leave_report_whether_they_did_anything_and_who_was_told() {
    let wakes = |reply| {
        let mut wakes = Wakes::default();
        wakes.learn(3, reply);
        wakes
    };
    let [nobody, other, more] = [(0, 0), (1 << 3, 0), (0, 1 << 3)].map(|(told, more)| Wakes {
        told,
        more,
        is_denied: false,
    });
    let denied = Wakes {
        is_denied: true,
        ..nobody
    };
    let [granted, refused] = [Vote::Granted, Vote::Refused].map(|vote| Ok(Answer::Vote(vote)));
    for (number, vote, wake) in [
        (0, &refused, nobody),
        (1, &granted, nobody),
        (2, &granted, other),
        (3, &granted, more),
        (4, &granted, denied),
        (5, &UNEXPECTED, nobody),
        (-1, &UNEXPECTED, nobody),
        (-2, &refused, other),
        (-3, &refused, more),
        (-4, &refused, denied),
        (-5, &UNEXPECTED, nobody),
    ] {
        assert_eq!(wakes(Reply::Integer(number)), wake, "{number}");
        for kind in KINDS {
            for verb in [Verb::Leave(None), Verb::Release(None)] {
                assert_eq!(
                    &meaning(verb, kind, Reply::Integer(number)),
                    vote,
                    "{number} to {verb:?}, {kind:?}"
                );
            }
        }
    }
    for bytes in [
        Reply::Bulk(None),
        Reply::Bulk(Some(b"1")),
        Reply::Simple(b"OK"),
        Reply::Array(None),
    ] {
        let released = meaning(Verb::Release(None), Kind::Plain, bytes);
        assert_eq!((released, wakes(bytes)), (UNEXPECTED, nobody), "{bytes:?}");
    }
}
