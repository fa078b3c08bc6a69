//! What each node has under which key.

use super::content::Content;
use super::kind::Kind;
use super::token::Token;
use crate::connection::{Connection, Trouble, Value};
use crate::deployment::Deployment;
use quorumlock::Cause;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How many keys a node looks at for one part of its answer.
const SCAN_COUNT: &[u8] = b"1000";
/// How many keys are read in one flight.
const BATCH: usize = 500;

/// How long a key lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    For(Duration),
    /// It has no expiry.
    Forever,
}

/// What one node has under one key.
#[derive(Clone)]
pub(crate) struct Sighting {
    pub(crate) content: Content,
    pub(crate) lifetime: Lifetime,
    /// Each holder, and for how long it is one, as this node has it.
    pub(crate) holders: Vec<(Token, Duration)>,
    /// For how long the lock is held by any of them.
    pub(crate) remaining: Duration,
    /// The last number, as long as this node keeps it.
    pub(crate) fence: Option<u64>,
    /// How many wait for it, of a queue.
    pub(crate) waiting: usize,
    /// Whether a writer waits for it, of a read-write lock.
    pub(crate) has_waiting_writer: bool,
    /// The value itself; none if it is no string. Not to be shown.
    pub(crate) value: Option<Vec<u8>>,
}

impl Sighting {
    /// What this value means under a key whose name behind the prefix is this, when the server's clock shows that.
    pub(crate) fn of(name: &str, value: Option<Vec<u8>>, lifetime: Lifetime, server_ms: u64) -> Sighting {
        let content = value.as_deref().map_or(Content::Foreign, |value| Content::of(name, value));
        let lives = if let Lifetime::For(time) = lifetime { time } else { Duration::MAX };
        let holders = content.holders(lives, server_ms);
        let remaining = holders.iter().map(|(_, left)| *left).max().unwrap_or_default();
        let waiting = match &content {
            Content::Queue { deadlines_ms } => deadlines_ms.iter().filter(|&&deadline| deadline >= server_ms).count(),
            _ => 0,
        };
        let (fence, has_waiting_writer) = (content.fence(server_ms), content.has_waiting_writer(server_ms));
        Sighting { content, lifetime, holders, remaining, fence, waiting, has_waiting_writer, value }
    }

    /// The holder that stays longest.
    pub(crate) fn token(&self) -> Option<&Token> {
        self.holders.iter().max_by_key(|(_, left)| *left).map(|(token, _)| token)
    }
}

/// The keys of one node, by the name behind the prefix, with the mark of its kind.
pub(crate) type Keys = BTreeMap<String, Sighting>;

/// What all nodes have: of each its keys, or why it could not be asked.
pub(crate) struct Survey {
    pub(crate) nodes: Vec<Result<Keys, Trouble>>,
    pub(crate) quorum: usize,
}

impl Survey {
    /// Reads the keys of one lock: one for each kind that it may be of, and their queues.
    pub(crate) fn of_lock(deployment: &Deployment, name: &str) -> Survey {
        Survey::of_keys(deployment, &Kind::marks().map(|mark| mark + name).collect::<Vec<_>>())
    }

    /// Reads these keys, given without the prefix.
    pub(crate) fn of_keys(deployment: &Deployment, names: &[String]) -> Survey {
        Survey::read(deployment, |_| Ok(names.to_vec()))
    }

    /// Reads all keys whose names match the pattern, by `SCAN`.
    pub(crate) fn of_pattern(deployment: &Deployment, pattern: &str) -> Survey {
        let prefix = deployment.settings.prefix();
        // What the prefix has of a pattern's signs is meant as it stands.
        let escaped: String = prefix.chars().flat_map(escaped).collect();
        // A star in front stands for each mark as well.
        let count = if pattern.starts_with('*') { 1 } else { usize::MAX };
        let patterns: Vec<String> = Kind::marks().take(count).map(|mark| format!("{escaped}{mark}{pattern}")).collect();
        Survey::read(deployment, |connection| {
            let mut names = BTreeSet::new();
            for pattern in &patterns {
                scan(connection, pattern, prefix, &mut names)?;
            }
            Ok(names.into_iter().collect())
        })
    }

    /// Names of all keys that any node has.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        self.nodes.iter().flatten().flat_map(BTreeMap::keys).map(String::as_str).collect()
    }

    /// What each node has under a name, in the order of the nodes.
    pub(crate) fn sightings<'s>(
        &'s self,
        name: &'s str,
    ) -> impl Iterator<Item = Result<Option<&'s Sighting>, &'s Trouble>> {
        self.nodes.iter().map(move |node| node.as_ref().map(|keys| keys.get(name)))
    }

    /// How many wait for the fair lock with this key, given without the prefix, by the node that knows of most.
    pub(crate) fn waiting(&self, name: &str) -> usize {
        let queue = format!("{}{name}", Kind::Queue.mark());
        self.sightings(&queue).flatten().flatten().map(|seen| seen.waiting).max().unwrap_or_default()
    }

    fn read(deployment: &Deployment, names: impl Fn(&mut Connection) -> Result<Vec<String>, Trouble> + Sync) -> Survey {
        let prefix = deployment.settings.prefix();
        let nodes = deployment.ask(|connection| {
            let mut keys = Keys::new();
            for names in names(connection)?.chunks(BATCH) {
                read_keys(connection, prefix, names, &mut keys)?;
            }
            Ok(keys)
        });
        Survey { nodes, quorum: deployment.quorum() }
    }
}

fn escaped(letter: char) -> impl Iterator<Item = char> {
    let mark = matches!(letter, '*' | '?' | '[' | ']' | '\\' | '^').then_some('\\');
    mark.into_iter().chain([letter])
}

/// Goes through a node's keys in parts, so that it answers others in between.
fn scan(connection: &mut Connection, pattern: &str, prefix: &str, names: &mut BTreeSet<String>) -> Result<(), Trouble> {
    let mut cursor = b"0".to_vec();
    loop {
        let reply = connection.ask(&[b"SCAN", &cursor, b"MATCH", pattern.as_bytes(), b"COUNT", SCAN_COUNT])?;
        let parts = match reply {
            Value::Error(refusal) => return Err(Trouble::refused("SCAN", refusal.cause)),
            reply => reply.array().unwrap_or_default(),
        };
        let mut parts = parts.into_iter();
        let (Some(Value::Bulk(next)), Some(keys)) = (parts.next(), parts.next().and_then(Value::array)) else {
            return Err(Trouble::unexpected("SCAN"));
        };
        // A key that is no text belongs to another program.
        let texts = keys.iter().filter_map(|key| match key {
            Value::Bulk(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        });
        names.extend(texts.filter_map(|key| key.strip_prefix(prefix)).map(str::to_owned));
        if next == b"0" {
            return Ok(());
        }
        cursor = next;
    }
}

/// The clock of the node, and value and lifetime of each key.
fn read_keys(connection: &mut Connection, prefix: &str, names: &[String], keys: &mut Keys) -> Result<(), Trouble> {
    let stored: Vec<String> = names.iter().map(|name| format!("{prefix}{name}")).collect();
    let questions: Vec<[&[u8]; 2]> =
        stored.iter().flat_map(|key| [[b"GET".as_slice(), key.as_bytes()], [b"PTTL", key.as_bytes()]]).collect();
    let mut commands: Vec<&[&[u8]]> = vec![&[b"TIME"]];
    commands.extend(questions.iter().map(<[&[u8]; 2]>::as_slice));
    let mut replies = connection.ask_all(&commands)?.into_iter();
    let server_ms = replies.next().and_then(time_ms).unwrap_or_else(wall_ms);
    for name in names {
        let (Some(value), Some(lifetime)) = (replies.next(), replies.next()) else {
            return Err(Trouble::unexpected("GET"));
        };
        // A user that takes no fair locks may have no right to their queues.
        if Kind::of(name).0 == Kind::Queue && [&value, &lifetime].into_iter().any(is_denied) {
            continue;
        }
        let lifetime = match lifetime {
            Value::Integer(-1) => Lifetime::Forever,
            Value::Integer(left @ 0..) => Lifetime::For(Duration::from_millis(left.unsigned_abs())),
            Value::Error(refusal) => return Err(Trouble::refused("PTTL", refusal.cause)),
            // It has gone meanwhile.
            _ => continue,
        };
        let value = match value {
            Value::Bulk(value) => Some(value),
            Value::Error(refusal) if refusal.is_wrong_type => None,
            Value::Error(refusal) => return Err(Trouble::refused("GET", refusal.cause)),
            _ => continue,
        };
        keys.insert(name.clone(), Sighting::of(name, value, lifetime, server_ms));
    }
    Ok(())
}

fn is_denied(reply: &Value) -> bool {
    matches!(reply, Value::Error(refusal) if refusal.cause == Cause::NoPermission)
}

/// The milliseconds of a reply to `TIME`.
fn time_ms(reply: Value) -> Option<u64> {
    let parts = reply.array()?;
    let number = |index: usize| parts.get(index).and_then(Value::text)?.parse::<u64>().ok();
    Some(number(0)? * 1000 + number(1)? / 1000)
}

/// The wall clock of this machine, for a node that does not show its own.
fn wall_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
