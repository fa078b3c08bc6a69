//! Requests to the scripts word by word, and what their replies mean.

use super::super::asked::Asked;
use super::super::kinds::plain;
use super::super::operation::Departure;
use super::super::reply;
use super::super::resp::Reply;
use super::super::wake::Wakes;
use super::*;
use crate::algorithm::fence::{FencingToken, LEAD_LIMIT};
use crate::algorithm::kind::EntryKind;
use crate::algorithm::kind::Kind;
use crate::algorithm::label::HolderLabel;
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::queue::Entry;
use crate::algorithm::server_error::ServerError;
use crate::algorithm::vote::Vote;

const UNEXPECTED: Result<Answer, ProtocolError> = Err(ProtocolError::UnexpectedReply);
const FENCED: Kind = Kind::Fenced(FencingToken::MAX);
const WRITE_FENCED: Kind = Kind::Write(Some(FencingToken::MAX));
const KINDS: [Kind; 6] = [Kind::Plain, Kind::Permit(3), FENCED, Kind::Read, Kind::Write(None), WRITE_FENCED];

fn operation(verb: Verb, kind: Kind) -> Operation {
    Operation { verb, kind, retention_millis: 86_400_000 }
}

fn entry(kind: EntryKind) -> Entry {
    Entry { client: 0xab, kind, number: 7 }
}

fn take(ticket: TicketRequest) -> TakeRequest {
    TakeRequest { entry: Some(entry(EntryKind::Mutex)), ticket, ..TakeRequest::WITHOUT_ENTRY }
}

fn took(request: TakeRequest) -> Verb {
    Verb::Take { ttl_millis: 30_000, request }
}

fn release(ticket: Option<u64>) -> Verb {
    Verb::Release(Some(Departure { entry: entry(EntryKind::Mutex), ticket, key: 0 }))
}

/// The words of a request behind its one key.
fn words(verb: Verb, kind: Kind) -> String {
    let (mut out, token) = (Vec::new(), OwnerToken::from_entropy([0xab; OwnerToken::ENTROPY]));
    let token = token.labelled(HolderLabel::new(b"host7").unwrap());
    ask(&mut out, Form::Hash, b"k", &token, &operation(verb, kind));
    let text = String::from_utf8(out).unwrap().replace(&"ab".repeat(20), "TOKEN");
    let words: Vec<&str> = text.split("\r\n").skip(2).step_by(2).collect();
    assert!(text.starts_with(&format!("*{}\r\n", words.len())), "{text:?}");
    assert_eq!(words[..4], ["EVALSHA", kinds::wire(kind).script.sha1, "1", "k"]);
    words[4..].join("|")
}

fn meaning(verb: Verb, kind: Kind, bytes: Reply<'_>) -> Result<Answer, ProtocolError> {
    reply::meaning(Form::Text, Asked::of(&operation(verb, kind)), bytes)
}

fn failed(cause: Cause) -> Result<Answer, ProtocolError> {
    Ok(Answer::fault(cause))
}

#[test]
fn a_script_goes_out_by_its_text_and_then_by_its_hash() {
    let sent = |form| {
        let (mut out, token) = (Vec::new(), OwnerToken::from_entropy([0xab; OwnerToken::ENTROPY]));
        ask(&mut out, form, b"k", &token, &operation(Verb::Release(None), Kind::Plain));
        String::from_utf8(out).unwrap().replace("\r\n", " ")
    };
    let (digits, text) = ("ab".repeat(20), plain::SCRIPT.text);
    assert_eq!(
        sent(Form::Text),
        format!("*6 $4 EVAL ${} {text} $1 1 $1 k $7 release $40 {digits} ", plain::SCRIPT.text.len())
    );
    assert_eq!(
        sent(Form::Hash),
        format!("*6 $7 EVALSHA $40 {} $1 1 $1 k $7 release $40 {digits} ", plain::SCRIPT.sha1)
    );
}

#[test]
fn a_take_has_the_words_that_the_script_of_its_kind_expects() {
    let tails = ["", "|3", "|86400000|9007199254740991", "|r", "|w", "|w|86400000|9007199254740991"];
    for (kind, tail) in KINDS.into_iter().zip(tails) {
        let value = if kind.access().is_some() { "TOKEN" } else { "TOKEN host7" };
        let opening = format!("take|{value}|30000|00000000000000abm7");
        assert_eq!(words(took(take(TicketRequest::Proposed(5))), kind), format!("{opening}|5|p|{tail}"));
        let bare = words(took(TakeRequest::WITHOUT_ENTRY), kind);
        assert_eq!(bare, format!("take|{value}|30000||0|n|{tail}"));
    }
}

#[test]
fn a_take_names_its_ticket_whether_it_may_be_granted_and_the_head_that_it_challenges() {
    let [proposed, fixed] = [TicketRequest::Proposed(5), TicketRequest::Fixed(6)].map(take);
    let head = Member::new(b"another client's").unwrap();
    for (request, mode) in [
        (proposed, "5|p|"),
        (TakeRequest { stores_only: true, ..proposed }, "5|q|"),
        (fixed, "6|f|"),
        (TakeRequest { stores_only: true, ..fixed }, "6|s|"),
        (TakeRequest { challenged: Some(head), ..fixed }, "6|f|another client's"),
    ] {
        assert_eq!(
            words(took(request), Kind::Plain),
            format!("take|TOKEN host7|30000|00000000000000abm7|{mode}"),
            "{request:?}"
        );
    }
    let permit = TakeRequest { entry: Some(entry(EntryKind::Permit(3))), ..proposed };
    assert_eq!(words(took(permit), Kind::Permit(3)), "take|TOKEN host7|30000|00000000000000abs3:7|5|p||3");
}

#[test]
fn a_release_removes_the_entry_of_its_call_or_stores_its_ticket() {
    for kind in KINDS {
        let (value, retention) = match kind {
            Kind::Read | Kind::Write(_) => ("TOKEN", ""),
            Kind::Fenced(_) => ("TOKEN host7", "|86400000"),
            Kind::Permit(_) | Kind::Plain => ("TOKEN host7", ""),
        };
        // The script looks for the key's retention behind the entry and the ticket.
        let [no_entry, no_ticket] = if retention.is_empty() { ["", ""] } else { ["||", "|"] };
        let member = "00000000000000abm7";
        assert_eq!(words(Verb::Release(None), kind), format!("release|{value}{no_entry}{retention}"));
        assert_eq!(words(release(None), kind), format!("release|{value}|{member}{no_ticket}{retention}"));
        assert_eq!(words(release(Some(9)), kind), format!("release|{value}|{member}|9{retention}"));
    }
}

#[test]
fn a_leave_names_an_entry_or_none() {
    for kind in KINDS {
        assert_eq!(words(Verb::Leave(Some(entry(EntryKind::Read))), kind), "leave|00000000000000abr7");
        assert_eq!(words(Verb::Leave(None), kind), "leave|");
    }
}

#[test]
fn what_begins_extends_and_raises_a_hold_goes_out_as_the_script_expects_it() {
    let (acquire, extend) = (Verb::Acquire { ttl_millis: 30_000 }, Verb::Extend { ttl_millis: 30_000 });
    for (verb, kind, expected) in [
        (acquire, FENCED, "acquire|TOKEN host7|30000|86400000|9007199254740991"),
        (acquire, Kind::Read, "acquire|TOKEN|30000|r"),
        (acquire, WRITE_FENCED, "acquire|TOKEN|30000|w|86400000|9007199254740991"),
        (extend, FENCED, "extend|TOKEN host7|30000|86400000"),
        (extend, Kind::Read, "extend|TOKEN|30000|r"),
        (extend, Kind::Write(None), "extend|TOKEN|30000|w"),
        (extend, WRITE_FENCED, "extend|TOKEN|30000|w|86400000"),
        (Verb::Raise, FENCED, "raise|TOKEN host7|9007199254740991|86400000"),
        (Verb::Raise, WRITE_FENCED, "extend|TOKEN|0|w|86400000|9007199254740991"),
    ] {
        assert_eq!(words(verb, kind), expected);
    }
}

#[test]
fn a_grant_is_one_or_the_number_of_a_lock_that_has_numbers() {
    let granted = Ok(Answer::Vote(Vote::Granted));
    let number = Ok(Answer::Fence(FencingToken::saturating(1_700_000_000_000_000)));
    let [foreign, ahead] = [Cause::UnexpectedValue, Cause::FenceAhead].map(failed);
    for kind in KINDS {
        let take = took(take(TicketRequest::Fixed(6)));
        let has_numbers = kind.fence().is_some();
        for (bytes, without, with) in [
            (Reply::Integer(1), &granted, &UNEXPECTED),
            (Reply::Bulk(Some(b"1700000000000000")), &UNEXPECTED, &number),
            (Reply::Bulk(Some(b"9007199254740992")), &UNEXPECTED, &foreign),
            (Reply::Bulk(Some(b"")), &UNEXPECTED, &foreign),
            (Reply::Integer(-2), &foreign, &foreign),
            (Reply::Integer(-3), &UNEXPECTED, &ahead),
            (Reply::Integer(-4), &UNEXPECTED, &UNEXPECTED),
            (Reply::Integer(0), &UNEXPECTED, &UNEXPECTED),
            (Reply::Integer(2), &UNEXPECTED, &UNEXPECTED),
            (Reply::Bulk(None), &UNEXPECTED, &UNEXPECTED),
            (Reply::Simple(b"OK"), &UNEXPECTED, &UNEXPECTED),
            (Reply::Array(None), &UNEXPECTED, &UNEXPECTED),
        ] {
            let expected = if has_numbers { with } else { without };
            assert_eq!(&meaning(take, kind, bytes), expected, "{bytes:?} to {kind:?}");
        }
    }
}

#[test]
fn a_number_that_is_far_ahead_of_what_was_asked_for_is_no_vote() {
    let number = Ok(Answer::Fence(FencingToken::saturating(1_700_000_000_000_000)));
    let (ahead, floor) = (failed(Cause::FenceAhead), 1_700_000_000_000_000 - LEAD_LIMIT);
    let kinds: [fn(FencingToken) -> Kind; 2] = [Kind::Fenced, |least| Kind::Write(Some(least))];
    for verb in [Verb::Acquire { ttl_millis: 30_000 }, took(take(TicketRequest::Fixed(6)))] {
        for kind in kinds {
            for (least, expected) in [(floor, &number), (floor - 1, &ahead), (1, &ahead)] {
                let kind = kind(FencingToken::saturating(least));
                assert_eq!(&meaning(verb, kind, Reply::Bulk(Some(b"1700000000000000"))), expected, "{verb:?} {kind:?}");
            }
        }
    }
}

#[test]
fn a_call_that_is_queued_learns_all_seven_fields() {
    let queued =
        |text: &str, kind| match meaning(took(take(TicketRequest::Fixed(6))), kind, Reply::Bulk(Some(text.as_bytes())))
        {
            Ok(Answer::Queued(reply)) => *reply,
            other => panic!("{other:?} to {text}"),
        };
    for kind in KINDS {
        let expected = QueueReply {
            storage: Storage::Now,
            ticket: 1_700_000_000_000_000,
            rank: 2,
            held: Some(Duration::from_millis(1500)),
            holder: Some(HolderTag::exact(b"0123abcd")),
            is_other_library: false,
            slots: Slots::default(),
            head: Member::new(b"00000000000000cdm9"),
        };
        assert_eq!(queued("n 1700000000000000 2 1500 0123abcd - 00000000000000cdm9", kind), expected);
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
        assert_eq!(queued(&format!("y 5 0 0 - - {}", "x".repeat(48)), kind).head, None);
    }
    assert_eq!(queued("y 5 0 0 - fte ", Kind::Permit(3)).slots, Slots::of(b"fte"));
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
            let is_needed = storage == Storage::Denied && !matches!(kind, Kind::Plain | Kind::Permit(_));
            match by_take(with_entry, letter) {
                Ok(Answer::Queued(reply)) => assert_eq!((reply.storage, is_needed), (storage, false), "{kind:?}"),
                other => assert_eq!((other, is_needed), (failed(Cause::NoPermission), true), "{kind:?}"),
            }
            assert!(matches!(by_take(TakeRequest::WITHOUT_ENTRY, letter), Ok(Answer::Queued(_))), "{kind:?}");
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
            let reply = meaning(took(take(TicketRequest::Fixed(6))), kind, Reply::Bulk(Some(text.as_bytes())));
            assert_eq!(reply, failed(Cause::UnexpectedValue), "{text:?} to {kind:?}");
        }
        let bytes = meaning(took(take(TicketRequest::Fixed(6))), kind, Reply::Bulk(Some(b"y \xff 0 0 - - ")));
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
    let [nobody, other, more] =
        [(0, 0), (1 << 3, 0), (0, 1 << 3)].map(|(told, more)| Wakes { told, more, is_denied: false });
    let denied = Wakes { is_denied: true, ..nobody };
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
                assert_eq!(&meaning(verb, kind, Reply::Integer(number)), vote, "{number} to {verb:?}, {kind:?}");
            }
        }
    }
    for bytes in [Reply::Bulk(None), Reply::Bulk(Some(b"1")), Reply::Simple(b"OK"), Reply::Array(None)] {
        let released = meaning(Verb::Release(None), Kind::Plain, bytes);
        assert_eq!((released, wakes(bytes)), (UNEXPECTED, nobody), "{bytes:?}");
    }
}

#[test]
fn without_scripts_a_plain_lock_is_asked_for_by_set_and_other_locks_cannot_be_had() {
    let errors = [
        ("ERR unknown command 'EVAL', with args beginning with: 'l' ", Cause::NoScripts),
        ("ERR Could not find scripting engine 'lua'", Cause::NoScripts),
        ("NOPERM this user has no permissions to run the 'eval' command", Cause::NoScripts),
        ("NOPERM No permissions to access a key", Cause::NoPermission),
        ("ERR The user executing the script can't run this command or subcommand", Cause::NoPermission),
        ("OOM command not allowed when used memory > 'maxmemory'.", Cause::OutOfMemory),
        ("READONLY You can't write against a read only replica.", Cause::ReadOnly),
    ];
    let asks = took(take(TicketRequest::Fixed(6)));
    let stores = took(TakeRequest { stores_only: true, ..take(TicketRequest::Fixed(6)) });
    for (text, cause) in errors {
        for kind in KINDS {
            for (verb, grants) in
                [(asks, true), (stores, false), (Verb::Leave(None), false), (Verb::Release(None), false)]
            {
                let by_set = grants && matches!(kind, Kind::Plain | Kind::Permit(_)) && cause == Cause::NoScripts;
                let expected = if by_set { Ok(Answer::WrongForm) } else { failed(cause) };
                assert_eq!(
                    meaning(verb, kind, Reply::Error(text.as_bytes())),
                    expected,
                    "{text} to {verb:?}, {kind:?}"
                );
            }
        }
    }
}

#[test]
fn a_hash_that_is_not_known_or_not_permitted_is_worth_the_text() {
    for text in [
        "NOSCRIPT No matching script.",
        "ERR unknown command 'EVALSHA'",
        "NOPERM this user has no permissions to run the 'evalsha' command",
    ] {
        for kind in KINDS {
            for verb in [
                Verb::Acquire { ttl_millis: 30_000 },
                Verb::Extend { ttl_millis: 30_000 },
                took(take(TicketRequest::Fixed(6))),
                Verb::Leave(None),
                Verb::Raise,
                Verb::Release(None),
            ] {
                let by_hash =
                    reply::meaning(Form::Hash, Asked::of(&operation(verb, kind)), Reply::Error(text.as_bytes()));
                assert_eq!(by_hash, Ok(Answer::WrongForm), "{text} to {verb:?}, {kind:?}");
            }
        }
    }
}

#[test]
fn a_take_by_set_is_granted_or_refused() {
    let by_set = |bytes| {
        let asked = Asked::of(&operation(took(take(TicketRequest::Fixed(6))), Kind::Plain));
        reply::meaning(Form::Set, asked, bytes)
    };
    assert_eq!(by_set(Reply::Simple(b"OK")), Ok(Answer::Vote(Vote::Granted)));
    assert_eq!(by_set(Reply::Bulk(None)), Ok(Answer::Vote(Vote::Refused)));
    assert_eq!(by_set(Reply::Integer(1)), UNEXPECTED);
    assert_eq!(by_set(Reply::Bulk(Some(b"y 5 0 0 - - "))), UNEXPECTED);
    for (text, cause) in [
        ("ERR unknown command 'SET'", Cause::Server(ServerError::Err)),
        ("NOPERM this user has no permissions to run the 'set' command", Cause::NoPermission),
        ("NOPERM this user has no permissions to run the 'eval' command", Cause::NoPermission),
    ] {
        let answer = by_set(Reply::Error(text.as_bytes()));
        let Ok(Answer::Vote(Vote::Fault(fault))) = answer else { panic!("{answer:?} to {text}") };
        assert_eq!(fault.cause, cause, "{text}");
    }
}
