//! What the judge knows of the queues of those that wait: whose entry is whose, which call has one,
//! and which are left. It reads commands and keys by itself.
//!
//! ```text
//!   key of a queue    quorumlock-queue: and the key of the lock; of permits, quorumlock-queue:quorumlock-permits:NAME
//!   entry             16 digits of a client, and the call: a letter, of permits their number and ":", a number
//!   channel           quorumlock: and the 16 digits
//!   message           "" or "?" or ".", the call, a space, and the key of the lock
//! ```

use crate::judge::Command;
use crate::keys;
use crate::machine::run;
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};

/// What the key of a queue begins with.
const QUEUE: &[u8] = b"quorumlock-queue:";
/// What a channel begins with.
pub(crate) const CHANNEL: &[u8] = b"quorumlock:";
/// Digits of a client, at the beginning of an entry.
const DIGITS: usize = 16;
/// Entries that a stranger may forge messages for.
const MOST_FORGED: usize = 64;

/// What is known of entries.
#[derive(Default)]
pub(crate) struct Queues {
    /// Clients, by the digits of their channels.
    owners: BTreeMap<Vec<u8>, usize>,
    /// The last entries that nodes were sent, with the lock's key.
    seen: Vec<(Vec<u8>, Vec<u8>)>,
    /// Those that a node has once more, as it has older data.
    pub(crate) restored: BTreeSet<Vec<u8>>,
}

/// A take, a release or a leave, as it is sent.
#[derive(Default)]
pub(crate) struct Request<'c> {
    pub(crate) verb: &'c [u8],
    /// The entry that it is about, or nothing.
    pub(crate) member: &'c [u8],
    /// Whether it may grant the lock.
    pub(crate) grants: bool,
    /// Whether it has the entry stored.
    pub(crate) stores: bool,
    /// Whether the call has no ticket.
    pub(crate) proposes: bool,
    /// Whether it removes what is in front of the entry.
    pub(crate) challenges: bool,
}

impl<'c> Request<'c> {
    /// Reads the words of a script with a queue.
    pub(crate) fn of(words: &[&'c [u8]]) -> Option<Request<'c>> {
        let [b"EVAL" | b"EVALSHA", _, b"1", _, verb, rest @ ..] = words else {
            return None;
        };
        Some(match (*verb, rest) {
            (b"take", [_, _, member, _, mode, challenged, ..]) => {
                let (grants, stores) = (!matches!(*mode, b"q" | b"s"), *mode != b"n");
                let (proposes, challenges) = (matches!(*mode, b"p" | b"q"), !challenged.is_empty());
                Request {
                    verb,
                    member,
                    grants,
                    stores,
                    proposes,
                    challenges,
                }
            }
            (b"release", [_, member, ..]) => {
                let stores = rest.get(2).is_some_and(|ticket| !ticket.is_empty());
                Request {
                    verb,
                    member,
                    stores,
                    ..Request::default()
                }
            }
            (b"leave", [member]) => Request {
                verb,
                member,
                ..Request::default()
            },
            _ => return None,
        })
    }
}

/// The client's digits in the name of a channel.
fn digits_of_channel(channel: &[u8]) -> Option<&[u8]> {
    channel
        .strip_prefix(CHANNEL)
        .filter(|digits| is_client(digits))
}

fn is_client(digits: &[u8]) -> bool {
    digits.len() == DIGITS
        && digits
            .iter()
            .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether this is an entry, as clients may write one.
fn is_entry(member: &[u8]) -> bool {
    let Some((digits, call)) = member.split_at_checked(DIGITS) else {
        return false;
    };
    let number = match call {
        [b'm' | b'f' | b'r' | b'w', number @ ..] => Some(number),
        [b's', rest @ ..] => rest.splitn(2, |byte| *byte == b':').nth(1),
        _ => None,
    };
    is_client(digits)
        && number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

impl World {
    /// A client subscribes: only to its own channel, and only to that.
    pub(crate) fn subscribed(&mut self, connection: usize, channel: &[u8]) {
        let client = self.connections[connection].client;
        self.connections[connection].is_subscriber = true;
        match digits_of_channel(channel) {
            Some(digits)
                if *self
                    .judge
                    .queues
                    .owners
                    .entry(digits.to_vec())
                    .or_insert(client)
                    == client => {}
            _ => {
                let channel = String::from_utf8_lossy(channel).into_owned();
                self.violate(
                    "protocol",
                    format!("client {client} subscribes to {channel:?}"),
                );
            }
        }
    }

    /// A node has run a script with a queue.
    pub(crate) fn queued(&mut self, command: &Command<'_>, request: &Request<'_>) {
        let client = self.connections[command.connection].client;
        let member = request.member;
        if member.is_empty() {
            return;
        }
        let is_own = is_entry(member)
            && *self
                .judge
                .queues
                .owners
                .entry(member[..DIGITS].to_vec())
                .or_insert(client)
                == client;
        if !is_own {
            let entry = String::from_utf8_lossy(member).into_owned();
            return self.violate(
                "protocol",
                format!("client {client} sends the entry {entry:?}"),
            );
        }
        if request.challenges {
            self.note_challenge(command);
        }
        let seen = &mut self.judge.queues.seen;
        if request.stores && !seen.iter().any(|(_, other)| other == member) {
            if seen.len() == MOST_FORGED {
                seen.remove(0);
            }
            seen.push((command.words[3].to_vec(), member.to_vec()));
        }
    }

    /// A node has run a script about an entry and not about the lock.
    pub(crate) fn note_entry(&mut self, command: &Command<'_>, reply: &[u8]) {
        let client = self.connections[command.connection].client;
        let node = command.node;
        self.record(|| {
            let words: Vec<_> = command.words[3..]
                .iter()
                .map(|word| String::from_utf8_lossy(word))
                .collect();
            format!(
                "client {client} → node {node}: {}: {}",
                words.join(" "),
                String::from_utf8_lossy(reply).trim_end()
            )
        });
    }

    /// A message that a stranger may forge: for a call that waits, holds the lock, or has ended,
    /// which is likelier.
    pub(crate) fn forged(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        let count = self.judge.queues.seen.len();
        let place = (count > 0).then(|| self.random.index(count))?;
        let mark: &[u8] = self.random.pick(&[b"", b"", b"?", b".", b"!"]);
        let (key, member) = &self.judge.queues.seen[place];
        let (client, call) = member.split_at(DIGITS);
        Some(([CHANNEL, client].concat(), [mark, call, b" ", key].concat()))
    }

    /// The queues of a node, each with its entries in order.
    pub(crate) fn queues_of(&self, node: usize) -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
        let present = &self.nodes[node];
        let millis = present.millis(self.now);
        let mut store = present.store.clone();
        store.set_condition(quorumlock::embedded::Condition::Serving);
        let keys: Vec<Vec<u8>> = store
            .keys(millis)
            .filter(|key| key.starts_with(QUEUE))
            .map(<[u8]>::to_vec)
            .collect();
        let entries = |key: Vec<u8>| {
            let reply = run(&mut store, &[b"ZRANGE", &key, b"0", b"-1"], millis);
            let lines = reply
                .split(|byte| *byte == b'\n')
                .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
            (
                key,
                lines
                    .filter(|line| is_entry(line))
                    .map(<[u8]>::to_vec)
                    .collect(),
            )
        };
        keys.into_iter().map(entries).collect()
    }

    /// Deletes all queues of a node.
    pub(crate) fn lose_queues(&mut self, node: usize) {
        let millis = self.nodes[node].millis(self.now);
        for (key, _) in self.queues_of(node) {
            run(&mut self.nodes[node].store, &[b"DEL", &key], millis);
        }
    }

    /// The client whose entry is the first of a queue of a node.
    pub(crate) fn first_in_a_queue(&mut self, node: usize) -> Option<usize> {
        let firsts: Vec<Vec<u8>> = self
            .queues_of(node)
            .into_iter()
            .filter_map(|(_, entries)| entries.into_iter().next())
            .collect();
        let first = (!firsts.is_empty()).then(|| &firsts[self.random.index(firsts.len())])?;
        self.judge.queues.owners.get(&first[..DIGITS]).copied()
    }

    /// Whether the client has a subscriber connection to the node.
    pub(crate) fn is_subscribed(&self, client: usize, node: usize) -> bool {
        let connections = self.live_connections(Some(client), Some(node));
        connections
            .into_iter()
            .any(|index| self.connections[index].is_subscriber)
    }

    /// When all calls have returned, a living client has no entry. One on a node where the client
    /// has no subscriber connection counts as dead: it may stay until a call finds it in front, or
    /// the queue ends.
    pub(crate) fn look_for_entries(&mut self) {
        let mut left = None;
        for node in 0..self.nodes.len() {
            for (key, entries) in self.queues_of(node) {
                for entry in entries {
                    let client = self.judge.queues.owners.get(&entry[..DIGITS]).copied();
                    let is_alive = |client: usize| {
                        !self.clients[client].is_gone && self.is_subscribed(client, node)
                    };
                    if client.is_some_and(is_alive) && !self.judge.queues.restored.contains(&entry)
                    {
                        left = Some((node, key.clone(), entry, client));
                    }
                }
            }
        }
        if let Some((node, key, entry, Some(client))) = left {
            let [key, entry] = [key, entry].map(|text| String::from_utf8_lossy(&text).into_owned());
            let text =
                format!("node {node} still has the entry {entry} of client {client} in {key}");
            self.violate("no entry left", text);
        }
    }
}

/// The judge's reading, and the library's.
#[test]
fn entries_and_keys_are_read_as_they_are_written() {
    use crate::protocol::key_space;
    use crate::protocol::kinds::{fenced, plain, read_write};
    use quorumlock::algorithm::kind::EntryKind;
    use quorumlock::algorithm::queue::Entry;
    for kind in [
        EntryKind::Mutex,
        EntryKind::Fenced,
        EntryKind::Read,
        EntryKind::Write,
        EntryKind::Permit(2),
    ] {
        assert!(
            is_entry(
                Entry {
                    client: 0xab,
                    kind,
                    number: 7
                }
                .member()
                .text()
            ),
            "{kind:?}"
        );
    }
    for (kind, first) in [
        (&plain::KEYS, 0),
        (&fenced::KEYS, keys::FENCED),
        (&read_write::KEYS, keys::READ_WRITE),
    ] {
        let key = kind.key("", "r3");
        assert_eq!(
            (keys::resource_of(key.as_bytes()), keys::key_of(first + 3)),
            (Some(first + 3), key.clone())
        );
        assert!(key_space::queue(&key).as_bytes().starts_with(QUEUE));
    }
    let slot = keys::SLOT + keys::SLOTS * 3 + 1;
    assert_eq!(
        (keys::key_of(slot), keys::resource_of(b"s3#1")),
        ("s3#1".to_owned(), Some(slot))
    );
}
