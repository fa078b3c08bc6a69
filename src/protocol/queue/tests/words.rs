//! Requests to the scripts, word by word.

use super::super::super::kinds::plain;
use super::super::super::operation::Departure;
use super::*;
use crate::algorithm::label::HolderLabel;

/// The words of a request behind its one key.
fn words(verb: Verb, kind: Kind) -> String {
    let mut out = Vec::new();
    let token = OwnerToken::from_entropy([0xab; OwnerToken::ENTROPY]);
    let token = token.labelled(HolderLabel::new(b"host7").unwrap());
    ask(&mut out, Form::Hash, b"k", &token, &operation(verb, kind));
    let text = String::from_utf8(out)
        .unwrap()
        .replace(&"ab".repeat(20), "TOKEN");
    let words: Vec<&str> = text.split("\r\n").skip(2).step_by(2).collect();
    assert!(
        text.starts_with(&format!("*{}\r\n", words.len())),
        "{text:?}"
    );
    assert_eq!(
        words[..4],
        ["EVALSHA", kinds::wire(kind).script.sha1, "1", "k"]
    );
    words[4..].join("|")
}

fn release(ticket: Option<u64>) -> Verb {
    Verb::Release(Some(Departure {
        entry: entry(EntryKind::Mutex),
        ticket,
        key: 0,
    }))
}

#[test]
fn a_script_goes_out_by_its_text_and_then_by_its_hash() {
    let sent = |form| {
        let mut out = Vec::new();
        let token = OwnerToken::from_entropy([0xab; OwnerToken::ENTROPY]);
        ask(
            &mut out,
            form,
            b"k",
            &token,
            &operation(Verb::Release(None), Kind::Plain),
        );
        String::from_utf8(out).unwrap().replace("\r\n", " ")
    };
    let digits = "ab".repeat(20);
    let text = plain::SCRIPT.text;
    assert_eq!(
        sent(Form::Text),
        format!(
            "*6 $4 EVAL ${} {text} $1 1 $1 k $7 release $40 {digits} ",
            plain::SCRIPT.text.len()
        )
    );
    assert_eq!(
        sent(Form::Hash),
        format!(
            "*6 $7 EVALSHA $40 {} $1 1 $1 k $7 release $40 {digits} ",
            plain::SCRIPT.sha1
        )
    );
}

#[test]
fn a_take_has_the_words_that_the_script_of_its_kind_expects() {
    let tails = [
        "",
        "|3",
        "|86400000|9007199254740991",
        "|r",
        "|w",
        "|w|86400000|9007199254740991",
    ];
    for (kind, tail) in KINDS.into_iter().zip(tails) {
        let value = if kind.is_read_write() {
            "TOKEN"
        } else {
            "TOKEN host7"
        };
        let opening = format!("take|{value}|30000|00000000000000abm7");
        assert_eq!(
            words(took(take(TicketRequest::Proposed(5))), kind),
            format!("{opening}|5|p|{tail}")
        );
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
        (
            TakeRequest {
                stores_only: true,
                ..proposed
            },
            "5|q|",
        ),
        (fixed, "6|f|"),
        (
            TakeRequest {
                stores_only: true,
                ..fixed
            },
            "6|s|",
        ),
        (
            TakeRequest {
                challenged: Some(head),
                ..fixed
            },
            "6|f|another client's",
        ),
    ] {
        assert_eq!(
            words(took(request), Kind::Plain),
            format!("take|TOKEN host7|30000|00000000000000abm7|{mode}"),
            "{request:?}"
        );
    }
    let permit = TakeRequest {
        entry: Some(entry(EntryKind::Permit(3))),
        ..proposed
    };
    assert_eq!(
        words(took(permit), Kind::Permit(3)),
        "take|TOKEN host7|30000|00000000000000abs3:7|5|p||3"
    );
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
        let [no_entry, no_ticket] = if retention.is_empty() {
            ["", ""]
        } else {
            ["||", "|"]
        };
        let member = "00000000000000abm7";
        assert_eq!(
            words(Verb::Release(None), kind),
            format!("release|{value}{no_entry}{retention}")
        );
        assert_eq!(
            words(release(None), kind),
            format!("release|{value}|{member}{no_ticket}{retention}")
        );
        assert_eq!(
            words(release(Some(9)), kind),
            format!("release|{value}|{member}|9{retention}")
        );
    }
}

#[test]
fn a_leave_names_an_entry_or_none() {
    for kind in KINDS {
        assert_eq!(
            words(Verb::Leave(Some(entry(EntryKind::Read))), kind),
            "leave|00000000000000abr7"
        );
        assert_eq!(words(Verb::Leave(None), kind), "leave|");
    }
}

#[test]
fn what_begins_extends_and_raises_a_hold_goes_out_as_the_script_expects_it() {
    let acquire = Verb::Acquire { ttl_millis: 30_000 };
    let extend = Verb::Extend { ttl_millis: 30_000 };
    for (verb, kind, expected) in [
        (
            acquire,
            FENCED,
            "acquire|TOKEN host7|30000|86400000|9007199254740991",
        ),
        (acquire, Kind::Read, "acquire|TOKEN|30000|r"),
        (
            acquire,
            WRITE_FENCED,
            "acquire|TOKEN|30000|w|86400000|9007199254740991",
        ),
        (extend, FENCED, "extend|TOKEN host7|30000|86400000"),
        (extend, Kind::Read, "extend|TOKEN|30000|r"),
        (extend, Kind::Write(None), "extend|TOKEN|30000|w"),
        (extend, WRITE_FENCED, "extend|TOKEN|30000|w|86400000"),
        (
            Verb::Raise,
            FENCED,
            "raise|TOKEN host7|9007199254740991|86400000",
        ),
        (
            Verb::Raise,
            WRITE_FENCED,
            "extend|TOKEN|0|w|86400000|9007199254740991",
        ),
    ] {
        assert_eq!(words(verb, kind), expected);
    }
}
