//! The requests of a run, and what is sent for each of them.

use quorumlock::algorithm::kind::EntryKind;
use quorumlock::algorithm::lease::OwnerToken;
use quorumlock::algorithm::queue::{Entry, TakeRequest, TicketRequest};
use quorumlock::algorithm::time::Timestamp;
use quorumlock::protocol::kinds;
use quorumlock::protocol::lock_key::LockKey;
use quorumlock::protocol::operation::Verb;
use quorumlock::protocol::resp::{self, Reply};
use quorumlock::protocol::session::Ticket;

/// What a single lock is of, and sets are of more of.
pub(super) const NAMES: [&str; 4] = ["orders/42", "orders/43", "orders/44", "orders/45"];

/// A reply that is expected.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) request: Request,
    pub(super) at: Timestamp,
    /// Which key of how many it is about.
    pub(super) part: usize,
    pub(super) keys: usize,
}

impl Asked {
    /// Whether this is the last reply to a lock's request.
    pub(super) fn is_last(self) -> bool {
        self.part + 1 == self.keys
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Acquire(Ticket),
    Auth,
    /// What the cluster is, asked of a server in cluster mode.
    Cluster,
    Extend(Ticket),
    InfoPersistence,
    InfoReplication,
    InfoServer,
    /// Removes an entry. Whether it went by the hash.
    Leave(Ticket, bool),
    /// Ends the lock. Whether it went by the hash.
    Release(Ticket, bool),
    Select,
    /// Takes the lock in turn.
    Take(Ticket, Way),
}

/// How a take is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Hash,
    Set,
    Text,
}

pub(super) fn take(ticket: Ticket) -> Verb {
    let proposed = TicketRequest::Proposed(ticket.slot.into());
    let request = TakeRequest {
        entry: Some(entry(ticket)),
        ticket: proposed,
        ..TakeRequest::WITHOUT_ENTRY
    };
    Verb::Take {
        ttl_millis: ticket.generation.into(),
        request,
    }
}

pub(super) fn entry(ticket: Ticket) -> Entry {
    Entry {
        client: 0xab,
        kind: EntryKind::Mutex,
        number: ticket.generation.into(),
    }
}

/// Another token for each request, so that it shows when one is sent for another.
pub(super) fn token(ticket: Ticket) -> OwnerToken {
    let mut entropy = [0; OwnerToken::ENTROPY];
    entropy[..4].copy_from_slice(&ticket.generation.to_le_bytes());
    OwnerToken::from_entropy(entropy)
}

/// The key of so many names.
pub(super) fn key(keys: usize) -> LockKey {
    LockKey::of("", &NAMES[..keys])
}

/// The command and the script in it, by its hash or its text.
fn called(by_hash: bool) -> [&'static [u8]; 2] {
    if by_hash {
        [b"EVALSHA", kinds::plain::SCRIPT.sha1.as_bytes()]
    } else {
        [b"EVAL", kinds::plain::SCRIPT.text.as_bytes()]
    }
}

/// All that was sent, sent or not yet: one command for each request.
pub(super) fn check_commands(mut bytes: &[u8], asked: &[Asked]) {
    let mut releases: Vec<(Ticket, usize, bool)> = Vec::new();
    for asked in asked {
        let Ok(Some((Reply::Array(Some(words)), length))) = resp::decode(bytes) else {
            panic!("not a command: {}", bytes.escape_ascii());
        };
        bytes = &bytes[length..];
        let words: Vec<&[u8]> = words
            .map(|word| {
                if let Reply::Bulk(Some(word)) = word {
                    word
                } else {
                    b"?"
                }
            })
            .collect();
        let key = NAMES[asked.part].as_bytes();
        let fits = match (asked.request, words.as_slice()) {
            (
                Request::Acquire(ticket) | Request::Take(ticket, Way::Set),
                [b"SET", name, owner, b"NX", b"PX", ttl],
            ) => {
                (*name, *owner) == (key, &token(ticket).digits()[..])
                    && *ttl == ticket.generation.to_string().as_bytes()
            }
            (Request::Auth, [b"AUTH", b"hunter2"] | [b"AUTH", b"alice", b"hunter2"]) => true,
            (Request::Cluster, [b"CLUSTER", b"INFO"]) => true,
            (Request::Extend(ticket), words) => {
                let token = token(ticket).digits();
                let ttl = ticket.generation.to_string();
                *words
                    == [
                        b"EVAL",
                        kinds::plain::EXTEND.as_bytes(),
                        b"1",
                        key,
                        &token,
                        ttl.as_bytes(),
                    ]
            }
            (Request::Take(ticket, way), words) => {
                let [call, text] = called(way == Way::Hash);
                let (token, ttl, clock) = (
                    token(ticket).digits(),
                    ticket.generation.to_string(),
                    ticket.slot.to_string(),
                );
                let member = entry(ticket).member();
                let ttl = ttl.as_bytes();
                let clock = clock.as_bytes();
                *words
                    == [
                        call,
                        text,
                        b"1",
                        key,
                        b"take",
                        &token,
                        ttl,
                        member.text(),
                        clock,
                        b"p",
                        b"",
                    ]
            }
            (Request::Leave(ticket, by_hash), words) => {
                let [call, text] = called(by_hash);
                *words
                    == [
                        call,
                        text,
                        b"1",
                        key,
                        b"leave",
                        entry(ticket).member().text(),
                    ]
            }
            (Request::InfoPersistence, words) => *words == [b"INFO".as_slice(), b"persistence"],
            (Request::InfoReplication, words) => *words == [b"INFO".as_slice(), b"replication"],
            (Request::InfoServer, words) => *words == [b"INFO".as_slice(), b"server"],
            (Request::Release(ticket, by_hash), words) => {
                let sent = (ticket, asked.part, by_hash);
                assert!(
                    !releases.contains(&sent),
                    "a release in the same form again"
                );
                releases.push(sent);
                let [call, text] = called(by_hash);
                *words == [call, text, b"1", key, b"release", &token(ticket).digits()]
            }
            (Request::Select, words) => *words == [b"SELECT".as_slice(), b"3"],
            _ => false,
        };
        assert!(
            fits,
            "sent at {:?}: {}",
            asked.at,
            words.join(&b' ').escape_ascii()
        );
    }
    assert!(
        bytes.is_empty(),
        "sent without being asked: {}",
        bytes.escape_ascii()
    );
}
