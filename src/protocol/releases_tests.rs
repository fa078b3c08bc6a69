//! What each release stores, sends and is replied, read by the code of this one. The folder
//! `releases` has a file for each release, which is never changed.

use super::asked::Asked;
use super::form::{Answer, Form};
use super::key_space;
use super::kinds::key_kind::StoredLock;
use super::kinds::{self, fenced, plain, read_write};
use super::node_note::NodeLook;
use super::operation::{Operation, Verb};
use super::reply;
use super::resp::Reply;
use super::subscription::{Subscription, SubscriptionEvent};
use crate::algorithm::fence::FencingToken;
use crate::algorithm::incarnation::run_id::{ReplicationIds, RunId};
use crate::algorithm::incarnation::{Found, Incarnation, Origin, Seen};
use crate::algorithm::kind::{EntryKind, Kind};
use crate::algorithm::queue::{Entry, Message, TakeRequest, TicketRequest};
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use std::path::Path;

const CLIENT: u64 = 0xab;
const PREFIX: &str = "app:";
const NAME: &str = "app:orders/42";

#[test]
fn what_each_release_has_written_means_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/protocol/releases");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
    assert!(!files.is_empty());
    for file in files {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
        {
            let parts: Vec<&str> = line.split(" | ").collect();
            let [form, kind, quoted, expected] = parts[..] else {
                panic!("{line}")
            };
            let text = quoted.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
            let meaning = match form {
                "key" => key(kind, text),
                "value" => value(kind, text),
                "entry" => entry(text),
                "message" => message(text),
                "note" => note(text),
                "reply" => replied(kind, text),
                // tests/it/versions.rs has leases: they are read by no node.
                "lease" => continue,
                _ => panic!("{line}"),
            };
            assert_eq!(meaning, expected, "{}: {line}", path.display());
        }
    }
}

fn key(kind: &str, text: &str) -> String {
    let queue = key_space::queue(NAME);
    let permits = key_space::queue(&key_space::semaphore(NAME));
    let node = key_space::node(PREFIX);
    let stored = match kind {
        "queue" => Some("the queue").filter(|_| text == queue),
        "permits" => Some("the queue").filter(|_| text == permits),
        "node" => Some("the note").filter(|_| text == node),
        "slot" => {
            let slot = key_space::slot(text.as_bytes());
            let semaphore = key_space::semaphore_of_slot(text);
            return format!("slot {}", slot.filter(|_| semaphore == Some(NAME)).unwrap());
        }
        _ => key_space::lock(text).and_then(|(found, name)| {
            let is_same = found.word == kind && name == NAME;
            let is_made = found.key(PREFIX, "orders/42") == text;
            Some("the lock").filter(|_| is_same && is_made)
        }),
    };
    stored.unwrap_or("not read").to_owned()
}

fn value(kind: &str, text: &str) -> String {
    let keys = match kind {
        "plain" => &plain::KEYS,
        "fenced" => &fenced::KEYS,
        "rw" => &read_write::KEYS,
        _ => panic!("{kind}"),
    };
    let Some(StoredLock {
        holds,
        label,
        is_read,
        ..
    }) = (keys.parse)(text.as_bytes())
    else {
        // Whatever is under its key, a plain lock is held.
        let is_plain = *keys == plain::KEYS;
        return if is_plain {
            "held by another library"
        } else {
            "not read"
        }
        .to_owned();
    };
    match label.as_str() {
        _ if holds.is_empty() => "free".to_owned(),
        _ if is_read => "read".to_owned(),
        Some(label) => format!("held by {label}"),
        None => "held".to_owned(),
    }
}

fn entry(text: &str) -> String {
    let Some(entry) = Entry::parse(text.as_bytes()) else {
        return "not read".to_owned();
    };
    assert_eq!((entry.client, entry.number), (CLIENT, 7));
    assert_eq!(entry.member().text(), text.as_bytes());
    format!("waits for a {}", entry.kind.wants())
}

fn message(text: &str) -> String {
    let mut subscription = Subscription::open(None, CLIENT, Timestamp::ORIGIN);
    let channel = format!("$27\r\nquorumlock:{CLIENT:016x}\r\n");
    let bytes = format!(
        "*3\r\n$9\r\nsubscribe\r\n{channel}:1\r\n*3\r\n$7\r\nmessage\r\n{channel}${}\r\n{text}\r\n",
        text.len()
    );
    subscription.incoming.space()[..bytes.len()].copy_from_slice(bytes.as_bytes());
    subscription.incoming.received(bytes.len());
    assert_eq!(
        subscription.next_event(),
        Ok(Some(SubscriptionEvent::Confirmed))
    );
    match subscription.next_event().unwrap() {
        None => "ignored".to_owned(),
        Some(SubscriptionEvent::Received(notice)) => {
            assert!(text.ends_with(&format!(" {}", notice.key)));
            match notice.message {
                Message::Turn(None) => "turn".to_owned(),
                Message::Turn(Some(slot)) => format!("turn, slot {slot}"),
                Message::Next => "next".to_owned(),
                Message::Confirmed => panic!("{text}"),
            }
        }
        Some(other) => panic!("{other:?}"),
    }
}

fn note(text: &str) -> String {
    let mut look = NodeLook::default();
    look.learn_value(Reply::Bulk(Some(text.as_bytes())))
        .unwrap();
    let (time, _) = super::resp::decode(b"*2\r\n$1\r\n9\r\n$1\r\n5\r\n")
        .unwrap()
        .unwrap();
    look.learn_time(time).unwrap();
    let incarnation = Incarnation {
        run_id: RunId::new("a".repeat(40).as_bytes()).unwrap(),
        replication: ReplicationIds::new("b".repeat(40).as_bytes(), "0".repeat(40).as_bytes())
            .unwrap(),
    };
    let Seen::Look(seen) = look.seen(Some(incarnation), 0) else {
        panic!("{look:?}")
    };
    let Found::Note(note) = seen.found else {
        return "not read".to_owned();
    };
    assert_eq!(
        (note.incarnation, note.time, note.nodes),
        (incarnation, 5_000_000, 3)
    );
    assert_eq!(
        (note.wall, note.max_ttl.as_secs()),
        (1_700_000_000_000_000, 60)
    );
    match note.origin {
        Origin::Founder => "founder",
        Origin::Since => "since",
    }
    .to_owned()
}

fn replied(asked: &str, text: &str) -> String {
    let (verb, kind) = asked.split_once(' ').unwrap();
    let kind = match kind {
        "plain" => Kind::Plain,
        "fenced" => Kind::Fenced(FencingToken::MAX),
        "write" => Kind::Write(None),
        _ => panic!("{kind}"),
    };
    let entry = Entry {
        client: CLIENT,
        kind: EntryKind::Mutex,
        number: 7,
    };
    let ttl_millis = 30_000;
    let request = TakeRequest {
        entry: Some(entry),
        ticket: TicketRequest::Fixed(6),
        ..TakeRequest::WITHOUT_ENTRY
    };
    let verb = match verb {
        "acquire" => Verb::Acquire { ttl_millis },
        "extend" => Verb::Extend { ttl_millis },
        "take" => Verb::Take {
            ttl_millis,
            request,
        },
        "release" => Verb::Release(None),
        _ => panic!("{verb}"),
    };
    let operation = Operation {
        verb,
        kind,
        retention_millis: ttl_millis,
    };
    let bytes = match text.strip_prefix(':') {
        Some(number) => Reply::Integer(number.parse().unwrap()),
        None => Reply::Bulk(Some(text.as_bytes())),
    };
    match reply::meaning(Form::Text, Asked::of(&operation), bytes).unwrap() {
        Answer::Fence(number) => format!("number {number}"),
        Answer::Held(time) => format!("held for {} ms", time.as_millis()),
        Answer::Queued(reply) => format!("queued with {} in front", reply.rank),
        Answer::Vote(Vote::Granted) => "granted".to_owned(),
        Answer::Vote(Vote::Refused) => "refused".to_owned(),
        Answer::Vote(Vote::Absent) => "absent".to_owned(),
        Answer::Vote(Vote::Fault(_)) => "no vote".to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_kind_of_key_has_values_of_the_present_release() {
    let text = include_str!("releases/0.1.0.txt");
    for kind in kinds::KEYS {
        assert!(text.contains(&format!("\nvalue | {} | ", kind.word)));
    }
}
