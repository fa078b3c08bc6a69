//! Requests about queues: what they report, and how they are sent.

use super::*;
use crate::algorithm::kind::EntryKind;
use crate::algorithm::queue::{Entry, QueueReply, Slots, Storage, TakeRequest, TicketRequest};

#[test]
fn releases_and_leaves_report_who_was_told() {
    let mut session = member(INFO);
    let entry = Entry {
        client: 0xab,
        kind: EntryKind::Mutex,
        number: 7,
    };
    for verb in [
        Verb::Release(None),
        Verb::Leave(Some(entry)),
        Verb::Leave(None),
    ] {
        for (reply, vote, wakes) in [
            (":0\r\n", Vote::Refused, Wakes::default()),
            (":1\r\n", Vote::Granted, Wakes::default()),
            (
                ":2\r\n",
                Vote::Granted,
                Wakes {
                    told: 1,
                    ..Wakes::default()
                },
            ),
            (
                ":-3\r\n",
                Vote::Refused,
                Wakes {
                    more: 1,
                    ..Wakes::default()
                },
            ),
            (
                ":4\r\n",
                Vote::Granted,
                Wakes {
                    is_denied: true,
                    ..Wakes::default()
                },
            ),
        ] {
            queue(&mut session, ticket(1), verb, "k", &token(1));
            assert_eq!(
                events(&mut session, reply),
                [Event::Answered(ticket(1), Answer::Vote(vote))],
                "{verb:?}"
            );
            assert_eq!(
                (session.take_wakes(), session.take_wakes()),
                (wakes, Wakes::default()),
                "{verb:?}, {reply:?}"
            );
        }
    }
    // An extension has the same numbers for something else.
    extend(&mut session, ticket(1), &token(1), 1000);
    assert_eq!(
        events(&mut session, ":-1\r\n"),
        [Event::Answered(ticket(1), Answer::Vote(Vote::Refused))]
    );
    assert_eq!(session.take_wakes(), Wakes::default());
}

fn take(stores_only: bool) -> Verb {
    let entry = Entry {
        client: 0xab,
        kind: EntryKind::Mutex,
        number: 7,
    };
    let ticket = TicketRequest::Fixed(5);
    let request = TakeRequest {
        entry: Some(entry),
        ticket,
        stores_only,
        ..TakeRequest::WITHOUT_ENTRY
    };
    Verb::Take {
        ttl_millis: 1000,
        request,
    }
}

/// What is sent for a take of a plain lock that is answered so, and the last event.
fn taken(session: &mut Session, stores_only: bool, replies: &[&str]) -> (Vec<&'static str>, Event) {
    queue(session, ticket(1), take(stores_only), "k", &token(1));
    let mut ways = Vec::new();
    let mut last = None;
    for reply in replies {
        let command = sent(session);
        let way = ["EVALSHA", "EVAL", "SET"]
            .into_iter()
            .find(|word| command.contains(&format!("\r\n{word}\r\n")));
        ways.push(way.unwrap());
        let reported = events(session, reply);
        if let [Event::Answered(again, Answer::WrongForm)] = reported[..] {
            ask_again(session, again, take(stores_only));
        }
        last = reported.last().cloned();
    }
    (ways, last.unwrap())
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
    let queued = Event::Answered(ticket(1), Answer::Queued(Box::new(reply)));
    assert_eq!(
        taken(&mut session, true, &["$12\r\nn 5 0 0 - - \r\n"]),
        (vec!["EVAL"], queued.clone())
    );
    assert_eq!(
        taken(&mut session, false, &["$12\r\nn 5 0 0 - - \r\n"]),
        (vec!["EVALSHA"], queued),
        "it was run"
    );
    let granted = Event::Answered(ticket(1), Answer::Vote(Vote::Granted));
    assert_eq!(
        taken(&mut session, false, &[":1\r\n"]),
        (vec!["EVALSHA"], granted.clone())
    );
    // What other programs have stored does not end the connection.
    let damage = Event::Answered(
        ticket(1),
        Answer::Vote(Vote::Fault(Fault::new(
            Phase::Reply,
            Cause::UnexpectedValue,
        ))),
    );
    assert_eq!(
        taken(&mut session, false, &["$12\r\nn x 0 0 - - \r\n"]).1,
        damage
    );
    assert_eq!(taken(&mut session, false, &[":1\r\n"]).1, granted);
    session.reject(Fault::new(Phase::Handshake, Cause::NotMaster));
    let rejected = Event::Answered(
        ticket(1),
        Answer::Vote(Vote::Fault(Fault::new(Phase::Handshake, Cause::NotMaster))),
    );
    assert_eq!(
        taken(&mut session, false, &["$12\r\nn 5 0 0 - - \r\n"]).1,
        rejected
    );
}

#[test]
fn a_take_goes_by_hash_then_by_text_then_by_set_which_is_remembered() {
    let no_script = "-NOSCRIPT No matching script.\r\n";
    let no_eval = "-NOPERM this user has no permissions to run the 'eval' command\r\n";
    let granted = Event::Answered(ticket(1), Answer::Vote(Vote::Granted));
    let mut session = member(INFO);
    assert_eq!(
        taken(&mut session, false, &[":1\r\n"]),
        (vec!["EVAL"], granted.clone())
    );
    assert_eq!(
        taken(&mut session, false, &[no_script, ":1\r\n"]),
        (vec!["EVALSHA", "EVAL"], granted.clone())
    );
    let all = (vec!["EVALSHA", "EVAL", "SET"], granted);
    assert_eq!(
        taken(&mut session, false, &[no_script, no_eval, "+OK\r\n"]),
        all
    );
    let refused = Event::Answered(ticket(1), Answer::Vote(Vote::Refused));
    assert_eq!(
        taken(&mut session, false, &["$-1\r\n"]),
        (vec!["SET"], refused.clone())
    );
    // SET stores no entry.
    let fault = Event::Answered(
        ticket(1),
        Answer::Vote(Vote::Fault(Fault::new(Phase::Reply, Cause::NoScripts))),
    );
    assert_eq!(taken(&mut session, true, &[no_eval]), (vec!["EVAL"], fault));
}
