//! Requests about queues: what they report, and how they are sent.

use super::*;
use crate::algorithm::kind::EntryKind;
use crate::algorithm::queue::{Entry, QueueReply, Slots, Storage, TakeRequest, TicketRequest};

const ENTRY: Entry = Entry {
    client: 0xab,
    kind: EntryKind::Mutex,
    number: 7,
};

const REQUEST: TakeRequest = TakeRequest {
    entry: Some(ENTRY),
    ticket: TicketRequest::Fixed(5),
    ..TakeRequest::WITHOUT_ENTRY
};
/// The call takes the lock if it can.
const TAKE: Verb = Verb::Take {
    ttl_millis: 1000,
    request: REQUEST,
};
/// The call only stores its entry.
const STORE: Verb = Verb::Take {
    ttl_millis: 1000,
    request: TakeRequest {
        stores_only: true,
        ..REQUEST
    },
};

#[test]
fn releases_and_leaves_report_who_was_told() {
    let mut session = member(INFO);
    for verb in [
        Verb::Release(None),
        Verb::Leave(Some(ENTRY)),
        Verb::Leave(None),
    ] {
        for (reply, vote, told, more, is_denied) in [
            (":0\r\n", Vote::Refused, 0, 0, false),
            (":1\r\n", Vote::Granted, 0, 0, false),
            (":2\r\n", Vote::Granted, 1, 0, false),
            (":-3\r\n", Vote::Refused, 0, 1, false),
            (":4\r\n", Vote::Granted, 0, 0, true),
        ] {
            let wakes = Wakes {
                told,
                more,
                is_denied,
            };
            queue(&mut session, ticket(1), verb, "k", &token(1));
            assert_eq!(events(&mut session, reply), [voted(1, vote)], "{verb:?}");
            assert_eq!(
                (session.take_wakes(), session.take_wakes()),
                (wakes, Wakes::default()),
                "{verb:?}, {reply:?}"
            );
        }
    }
    // An extension has the same numbers for something else.
    extend(&mut session, ticket(1), &token(1), 1000);
    receives(&mut session, ":-1\r\n", [voted(1, Vote::Refused)]);
    assert_eq!(session.take_wakes(), Wakes::default());
}

/// A take of a plain lock is sent in these ways, one after the other, and ends with this event.
#[track_caller]
fn takes(session: &mut Session, take: Verb, replies: &[&str], ways: &str, last: Event) {
    queue(session, ticket(1), take, "k", &token(1));
    let mut seen = Vec::new();
    let mut reported = Vec::new();
    for reply in replies {
        let command = sent(session);
        let mut words = ["EVALSHA", "EVAL", "SET"].into_iter();
        seen.extend(words.find(|word| command.contains(&format!("\r\n{word}\r\n"))));
        reported = events(session, reply);
        if let [Event::Answered(again, Answer::WrongForm)] = reported[..] {
            ask_again(session, again, take);
        }
    }
    assert_eq!(seen.join(" "), ways);
    assert_eq!(reported.last(), Some(&last));
}

#[test]
fn a_call_that_is_queued_learns_where() {
    let mut session = member(INFO);
    let reply = QueueReply {
        storage: Storage::Now,
        ticket: 5,
        rank: 0,
        held: Some(Duration::ZERO),
        holder: None,
        is_other_library: false,
        slots: Slots::default(),
        head: None,
    };
    let waits = "$12\r\nn 5 0 0 - - \r\n";
    let queued = Event::Answered(ticket(1), Answer::Queued(Box::new(reply)));
    takes(&mut session, STORE, &[waits], "EVAL", queued.clone());
    // It was run.
    takes(&mut session, TAKE, &[waits], "EVALSHA", queued);
    takes(&mut session, TAKE, &[":1\r\n"], "EVALSHA", granted(1));
    // What other programs have stored does not end the connection.
    let unexpected = Vote::Fault(Fault::new(Phase::Reply, Cause::UnexpectedValue));
    let damage = "$12\r\nn x 0 0 - - \r\n";
    takes(
        &mut session,
        TAKE,
        &[damage],
        "EVALSHA",
        voted(1, unexpected),
    );
    takes(&mut session, TAKE, &[":1\r\n"], "EVALSHA", granted(1));
    let replica = Fault::new(Phase::Handshake, Cause::NotMaster);
    session.reject(replica);
    let rejected = voted(1, Vote::Fault(replica));
    takes(&mut session, TAKE, &[waits], "EVALSHA", rejected);
}

#[test]
fn a_take_goes_by_hash_then_by_text_then_by_set_which_is_remembered() {
    let no_script = "-NOSCRIPT No matching script.\r\n";
    let no_eval = "-NOPERM this user has no permissions to run the 'eval' command\r\n";
    let mut session = member(INFO);
    takes(&mut session, TAKE, &[":1\r\n"], "EVAL", granted(1));
    let forgotten = [no_script, ":1\r\n"];
    takes(&mut session, TAKE, &forgotten, "EVALSHA EVAL", granted(1));
    let denied = [no_script, no_eval, "+OK\r\n"];
    takes(&mut session, TAKE, &denied, "EVALSHA EVAL SET", granted(1));
    let refused = voted(1, Vote::Refused);
    takes(&mut session, TAKE, &["$-1\r\n"], "SET", refused);
    // SET stores no entry.
    let no_scripts = Vote::Fault(Fault::new(Phase::Reply, Cause::NoScripts));
    takes(
        &mut session,
        STORE,
        &[no_eval],
        "EVAL",
        voted(1, no_scripts),
    );
}
