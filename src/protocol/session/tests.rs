//! Tests of one connection's conversation: a scripted server, no socket.

use super::{SessionEvent as Event, *};
use crate::algorithm::fence::FencingToken;
use crate::algorithm::kind::Kind;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::vote::Vote;
use crate::fault::{Cause, Phase};
use crate::protocol::lock_key::LockKey;
use crate::protocol::operation::{Operation, Verb};
use crate::protocol::reply_tests;

mod abandoned;
mod clusters;
mod logins;
mod long_values;
mod queues;

const INFO: &str = "redis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:0123456789012345678901234567890123456789";

pub(super) fn ticket(slot: u32) -> Ticket {
    Ticket {
        slot,
        generation: 0,
    }
}

pub(super) fn voted(slot: u32, vote: Vote) -> Event {
    Event::Answered(ticket(slot), Answer::Vote(vote))
}

pub(super) fn granted(slot: u32) -> Event {
    voted(slot, Vote::Granted)
}

/// An operation on a plain lock.
pub(super) fn operation(verb: Verb) -> Operation {
    Operation {
        verb,
        kind: Kind::Plain,
        retention_millis: 1,
    }
}

/// What arrives amounts to these events.
#[track_caller]
pub(super) fn receives(session: &mut Session, text: &str, expected: impl AsRef<[Event]>) {
    assert_eq!(events(session, text), expected.as_ref(), "{text:?}");
}

/// What arrives ends the conversation.
#[track_caller]
pub(super) fn fails(session: &mut Session, log: &Log, text: &str, error: ProtocolError) {
    feed(session, text.as_bytes());
    assert_eq!(session.next_event(log), Err(error), "{text:?}");
}

/// The conversation has ended, and leaves these unanswered.
#[track_caller]
pub(super) fn abandons(session: &mut Session, left: impl AsRef<[(Ticket, Abandoned)]>) {
    assert_eq!(session.abandon().collect::<Vec<_>>(), left.as_ref());
}

fn token(byte: u8) -> OwnerToken {
    OwnerToken::from_entropy([byte; 20])
}

fn queue(session: &mut Session, ticket: Ticket, verb: Verb, key: &str, token: &OwnerToken) {
    let key = &LockKey::One(key.into());
    let operation = &operation(verb);
    session.queue(&Command::new(ticket, operation, key, token), NOW);
}

/// Queues an operation on `k` once more, in another form.
fn ask_again(session: &mut Session, ticket: Ticket, verb: Verb) {
    let operation = &operation(verb);
    session.ask_again(
        &Command::new(ticket, operation, &LockKey::One("k".into()), &token(1)),
        NOW,
    );
}

fn acquire(session: &mut Session, ticket: Ticket, key: &str, token: &OwnerToken) {
    queue(
        session,
        ticket,
        Verb::Acquire { ttl_millis: 1000 },
        key,
        token,
    );
}

fn extend(session: &mut Session, ticket: Ticket, token: &OwnerToken, ttl_millis: u64) {
    queue(session, ticket, Verb::Extend { ttl_millis }, "k", token);
}

fn release(session: &mut Session, ticket: Ticket, token: &OwnerToken) {
    queue(session, ticket, Verb::Release(None), "k", token);
}

pub(super) fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// What it reports about itself, in two parts.
fn introduction(server: &str, replication: &str) -> String {
    bulk(server) + &bulk(replication)
}

pub(super) fn feed(session: &mut Session, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let space = session.incoming.space();
        let count = space.len().min(bytes.len());
        space[..count].copy_from_slice(&bytes[..count]);
        session.incoming.received(count);
        bytes = &bytes[count..];
    }
}

pub(super) fn events(session: &mut Session, text: &str) -> Vec<Event> {
    events_in(session, &Log::default(), text)
}

pub(super) fn events_in(session: &mut Session, log: &Log, text: &str) -> Vec<Event> {
    feed(session, text.as_bytes());
    std::iter::from_fn(|| session.next_event(log).unwrap()).collect()
}

/// A session whose handshake was accepted by a server that reports this about itself.
fn member(info: &str) -> Session {
    let mut session = Session::open(&Handshake::default(), Timestamp::ORIGIN);
    let accepted = events(&mut session, &introduction(info, "role:master"));
    assert_eq!(accepted, [Event::Accepted]);
    sent(&mut session);
    session
}

pub(super) fn sent(session: &mut Session) -> String {
    let text = String::from_utf8(session.pipeline.unsent(&Log::default()).to_vec()).unwrap();
    session.pipeline.sent(text.len());
    text
}

const NOW: Timestamp = Timestamp::ORIGIN;

#[test]
fn the_handshake_goes_out_in_one_flight_with_the_first_command() {
    let handshake = Handshake {
        credentials: Some(Credentials::new("pw").user("me")),
        database: 3,
        ..Handshake::default()
    };
    let mut session = Session::open(&handshake, NOW);
    acquire(&mut session, ticket(0), "k", &token(1));
    let flight = sent(&mut session);
    let order: Vec<usize> = ["AUTH", "SELECT", "server", "replication", "SET"]
        .iter()
        .map(|word| flight.find(&format!("\r\n{word}\r\n")).unwrap())
        .collect();
    assert!(order.is_sorted(), "{flight}");
    let replies = format!("+OK\r\n+OK\r\n{}+OK\r\n", introduction(INFO, "role:master"));
    receives(&mut session, &replies, [Event::Accepted, granted(0)]);
    assert_eq!(
        (
            session.pipeline.backlog().requests,
            session.pipeline.backlog().oldest
        ),
        (0, None)
    );
}

#[test]
fn a_refused_handshake_spoils_every_vote_and_is_reported_once() {
    let auth = Handshake {
        credentials: Some(Credentials::new("pw")),
        ..Handshake::default()
    };
    let select = Handshake {
        database: 99,
        ..Handshake::default()
    };
    let plain = Handshake::default();
    let master = introduction(INFO, "role:master");
    let table: [(&Handshake, String, Cause); 7] = [
        (&auth, format!("-WRONGPASS no\r\n{master}"), Cause::Auth),
        (
            &auth,
            "-ERR invalid password\r\n-NOAUTH x\r\n-NOAUTH x\r\n".into(),
            Cause::Auth,
        ),
        (
            &select,
            format!("-ERR DB index is out of range\r\n{master}"),
            Cause::Database,
        ),
        (&select, "-NOAUTH x\r\n".repeat(3), Cause::Auth),
        (&plain, "-NOAUTH x\r\n".repeat(2), Cause::Auth),
        (&plain, introduction(INFO, "role:slave"), Cause::NotMaster),
        (
            &plain,
            "-ERR max number of clients reached\r\n-x\r\n".into(),
            Cause::TooManyClients,
        ),
    ];
    for (handshake, replies, cause) in table {
        let fault = Fault::new(Phase::Handshake, cause);
        for reply in ["+OK\r\n", "$-1\r\n", "-NOAUTH x\r\n"] {
            let mut session = Session::open(handshake, NOW);
            acquire(&mut session, ticket(0), "k", &token(1));
            let reported = events(&mut session, &format!("{replies}{reply}"));
            assert_eq!(
                reported,
                [Event::Rejected(fault), voted(0, Vote::Fault(fault))],
                "{replies}"
            );
            // What the SET may have done all the same is undone on the same connection, without a
            // vote.
            release(&mut session, ticket(1), &token(1));
            assert!(sent(&mut session).contains("EVAL"));
            receives(&mut session, ":1\r\n", [voted(1, Vote::Fault(fault))]);
        }
    }
}

#[test]
fn a_server_that_withholds_its_identity_may_still_vote() {
    let mut session = Session::open(&Handshake::default(), NOW);
    receives(&mut session, &"-NOPERM no\r\n".repeat(2), [Event::Accepted]);
    assert_eq!(session.identity(), &ServerInfo::default());
}

/// It is asked once on each connection: by a check, in which it is known first, and behind the
/// first look otherwise.
#[test]
fn the_memory_is_asked_for_when_no_lock_waits_and_decides_nothing() {
    const MEMORY: &str = "*2\r\n$4\r\nINFO\r\n$6\r\nmemory\r\n";
    let evicts = bulk("maxmemory:1000\r\nmaxmemory_policy:allkeys-lru");
    for (said, eviction) in [
        ("-NOPERM no\r\n", None),
        ("-ERR syntax error\r\n", None),
        ("-BUSY x\r\n", None),
        ("$0\r\n\r\n", None),
        (&evicts, Some("allkeys-lru")),
    ] {
        let mut session = Session::open(&Handshake::default(), NOW);
        acquire(&mut session, ticket(0), "k", &token(1));
        let master = bulk(&format!(
            "role:master\r\nmaster_replid:{0}\r\nmaster_replid2:{0}",
            "a".repeat(40)
        ));
        receives(
            &mut session,
            &format!("{}{master}+OK\r\n", bulk(INFO)),
            [Event::Accepted, granted(0)],
        );
        // While nodes are judged, a call may wait for the look.
        session.look(NOW);
        assert!(!sent(&mut session).contains(MEMORY), "a lock waits");
        receives(&mut session, &master, [Event::Rechecked]);
        let later = NOW.after(Duration::from_secs(2));
        session
            .looks
            .before_vote(&session.peer, &mut session.pipeline, later);
        assert!(sent(&mut session).ends_with(MEMORY));
        assert_eq!(
            events(&mut session, &(master + said)),
            [Event::Rechecked, Event::MemoryKnown],
            "{said}"
        );
        assert_eq!(
            (session.identity().eviction(), session.standing()),
            (eviction, HandshakeState::Accepted)
        );
        session.looks.before_vote(
            &session.peer,
            &mut session.pipeline,
            later.after(Duration::from_secs(2)),
        );
        session.check(ticket(1), NOW);
        assert!(!sent(&mut session).contains(MEMORY), "it was asked for");

        let mut session = Session::open(&Handshake::default(), NOW);
        session.check(ticket(1), NOW);
        assert_eq!(sent(&mut session).matches(MEMORY).count(), 1);
        let replies = introduction(INFO, "role:master") + said + &bulk("role:master");
        assert_eq!(
            events(&mut session, &replies),
            [Event::Accepted, Event::MemoryKnown, granted(1)],
            "{said}"
        );
        assert_eq!(session.identity().eviction(), eviction);
    }
}

#[test]
fn late_replies_go_to_the_requests_they_belong_to() {
    let mut session = member(INFO);
    acquire(&mut session, ticket(1), "a", &token(1));
    // No caller waits for ticket 1 any more; its reply is still the next one.
    extend(&mut session, ticket(2), &token(1), 1000);
    release(&mut session, ticket(3), &token(1));
    acquire(&mut session, ticket(4), "b", &token(3));
    receives(
        &mut session,
        "+OK\r\n:0\r\n:1\r\n$-1\r\n",
        [
            granted(1),
            voted(2, Vote::Absent),
            granted(3),
            voted(4, Vote::Refused),
        ],
    );
}

#[test]
fn replies_split_at_every_byte_mean_the_same() {
    let mut session = member(INFO);
    for slot in 0..3 {
        acquire(&mut session, ticket(slot), "k", &token(1));
    }
    let mut seen = Vec::new();
    for byte in b"+OK\r\n$-1\r\n-OOM x\r\n" {
        feed(&mut session, &[*byte]);
        while let Some(event) = session.next_event(&Log::default()).unwrap() {
            seen.push(event);
        }
    }
    let full = Vote::Fault(Fault::new(Phase::Reply, Cause::OutOfMemory));
    let votes = [Vote::Granted, Vote::Refused, full];
    assert_eq!(
        seen,
        [0, 1, 2].map(|slot| voted(slot, votes[slot as usize]))
    );
}

#[test]
fn a_reply_to_no_request_ends_the_conversation() {
    for unasked in ["+OK\r\n", "+", ">1\r\n"] {
        let mut session = member(INFO);
        let error = ProtocolError::Unrequested;
        fails(&mut session, &Log::default(), unasked, error);
    }
}

#[test]
fn a_reply_of_the_wrong_type_ends_the_conversation() {
    let mut asked = member(INFO);
    acquire(&mut asked, ticket(0), "k", &token(1));
    let handshake = Handshake {
        database: 3,
        ..Handshake::default()
    };
    for mut session in [asked, Session::open(&handshake, NOW)] {
        let error = ProtocolError::UnexpectedReply;
        fails(&mut session, &Log::default(), ":1\r\n", error);
    }
}

#[test]
fn without_scripts_a_release_is_not_run_and_an_extension_is_a_fault() {
    for denial in [
        "-NOPERM this user has no permissions to run the 'eval' command\r\n",
        "-ERR unknown command 'EVAL'\r\n",
    ] {
        let mut session = member(INFO);
        release(&mut session, ticket(0), &token(1));
        extend(&mut session, ticket(1), &token(1), 30_000);
        let fault = Fault::new(Phase::Reply, Cause::NoScripts);
        receives(
            &mut session,
            &denial.repeat(2),
            [
                Event::NotRun(ticket(0), fault),
                voted(1, Vote::Fault(fault)),
            ],
        );
    }
}

#[test]
fn what_was_received_is_an_event_until_it_is_taken() {
    let mut session = member(INFO);
    acquire(&mut session, ticket(0), "k", &token(1));
    assert!(!session.has_event());
    feed(&mut session, b"+OK\r\n");
    assert!(session.has_event());
    assert_eq!(session.latency.count(), 0);
    assert_eq!(events(&mut session, "").len(), 1);
    assert!(!session.has_event());
    assert_eq!(session.latency.count(), 1);
}

#[test]
fn a_server_has_had_no_time_before_it_was_connected() {
    let later = NOW.after(std::time::Duration::from_secs(1));
    let mut session = Session::open(&Handshake::default(), NOW);
    assert_eq!(session.pipeline.backlog().oldest, Some(NOW));
    session.pipeline.connected(later);
    assert_eq!(session.pipeline.backlog().oldest, Some(later));
}

#[test]
fn partly_sent_bytes_are_sent_once() {
    let mut session = member(INFO);
    for slot in 0..50 {
        acquire(&mut session, ticket(slot), "k", &token(1));
    }
    let whole = session.pipeline.unsent(&Log::default()).to_vec();
    let mut pieces = Vec::new();
    while !session.pipeline.unsent(&Log::default()).is_empty() {
        let count = session.pipeline.unsent(&Log::default()).len().min(7);
        pieces.extend_from_slice(&session.pipeline.unsent(&Log::default())[..count]);
        session.pipeline.sent(count);
    }
    assert_eq!(pieces, whole);
}

#[test]
fn the_receive_buffer_grows_for_one_long_reply_and_shrinks_again() {
    let mut session = Session::open(&Handshake::default(), NOW);
    let long = bulk(&format!(
        "{}run_id:{}",
        "x:y\r\n".repeat(20_000),
        "a".repeat(40)
    ));
    assert!(events(&mut session, &long).is_empty());
    assert!(session.identity().run_id().is_some());
    receives(&mut session, &bulk("role:master"), [Event::Accepted]);
    assert_eq!(session.incoming.space().len(), RECEIVE_BUFFER);
}

#[test]
fn secrets_do_not_show() {
    let handshake = Handshake {
        credentials: Some(Credentials::new("hunter2").user("alice")),
        database: 0,
        ..Handshake::default()
    };
    let session = Session::open(&handshake, NOW);
    let shown = format!("{handshake:?} {session:?}");
    assert!(
        !shown.contains("hunter2") && !shown.contains("alice"),
        "{shown}"
    );
}

/// The release tells those that wait.
#[test]
fn an_extension_and_a_release_go_by_script_to_every_server() {
    for version in [
        "redis_version:7.0.15",
        "redis_version:8.4.0",
        "redis_version:7.2.4\r\nvalkey_version:9.0.1",
        "x:y",
    ] {
        let mut session = member(version);
        for (slot, reply, vote) in [
            (0, ":1\r\n", Vote::Granted),
            (1, ":0\r\n", Vote::Absent),
            (2, ":-1\r\n", Vote::Refused),
        ] {
            extend(&mut session, ticket(slot), &token(1), 30_000);
            let command = sent(&mut session);
            let is_script = command.contains("\r\nEVAL\r\n");
            assert!(is_script && command.ends_with("\r\n30000\r\n"), "{command}");
            receives(&mut session, reply, [voted(slot, vote)]);
        }
        release(&mut session, ticket(0), &token(1));
        assert!(sent(&mut session).contains("\r\nEVAL\r\n"), "{version}");
    }
}

#[test]
fn an_extension_counts_only_where_the_node_may_vote() {
    let fault = Fault::new(Phase::Handshake, Cause::NotMaster);
    for reply in [
        ":1\r\n",
        ":0\r\n",
        ":-1\r\n",
        "-READONLY x\r\n",
        "-NOPERM x\r\n",
        "-ERR unknown command x\r\n",
    ] {
        let mut session = member(INFO);
        extend(&mut session, ticket(0), &token(1), 30_000);
        session.reject(fault);
        assert_eq!(
            events(&mut session, reply),
            [voted(0, Vote::Fault(fault))],
            "{reply}"
        );
    }
}

#[test]
fn an_extension_of_a_fenced_lock_always_goes_by_text() {
    let mut session = member(INFO);
    let kind = Kind::Fenced(FencingToken::saturating(1));
    let mut asked = |verb, reply: &str| {
        let operation = &reply_tests::operation(verb, kind);
        session.queue(
            &Command::new(ticket(1), operation, &LockKey::One("k".into()), &token(1)),
            NOW,
        );
        events(&mut session, reply);
        sent(&mut session).lines().nth(2).unwrap().to_owned()
    };
    let acquire = Verb::Acquire { ttl_millis: 10 };
    assert_eq!(asked(acquire, "$1\r\n7\r\n"), "EVAL");
    assert_eq!(asked(acquire, "$1\r\n7\r\n"), "EVALSHA");
    assert_eq!(asked(Verb::Extend { ttl_millis: 10 }, ":1\r\n"), "EVAL");
    assert_eq!(asked(Verb::Release(None), ":1\r\n"), "EVALSHA");
}

#[test]
fn a_script_that_was_run_is_called_by_its_hash_until_it_is_forgotten_too_often() {
    let mut session = member(INFO);
    let mut release_with = |answers: &[&str]| {
        release(&mut session, ticket(0), &token(1));
        let mut ways = Vec::new();
        for answer in answers {
            ways.push(if sent(&mut session).contains("EVALSHA") {
                "hash"
            } else {
                "text"
            });
            if let [Event::Answered(again, Answer::WrongForm)] = events(&mut session, answer)[..] {
                ask_again(&mut session, again, Verb::Release(None));
            }
        }
        ways
    };
    assert_eq!(release_with(&["-OOM none left\r\n"]), ["text"]);
    assert_eq!(
        release_with(&[":0\r\n"]),
        ["text"],
        "a fault says nothing of scripts"
    );
    for _ in 0..3 {
        assert_eq!(release_with(&[":1\r\n"]), ["hash"]);
        assert_eq!(
            release_with(&["-NOSCRIPT No matching script.\r\n", ":1\r\n"]),
            ["hash", "text"]
        );
    }
    assert_eq!(release_with(&[":1\r\n"]), ["text"]);
}
