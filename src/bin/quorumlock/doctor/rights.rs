//! What the user may do: everything that a lock does, done to a key of a random name, on one node.
//!
//! Each command is tried by itself, so that the answer is a rule to add and not a guess.

use crate::connection::{Connection, Trouble, Value};
use quorumlock::protocol::error_reply::{Denied, Subject};
use quorumlock::protocol::{key_space, kinds, node_note};
use std::collections::{BTreeMap, BTreeSet};

/// How long what is left behind lasts at most, in milliseconds.
const TTL: &[u8] = b"10000";
/// A token of no holder.
const TOKEN: &[u8] = b"00000000000000000000000000000000000000ff";

/// An entry of a queue, of no client.
const ENTRY: &[u8] = b"0000000000000000m0";
/// The channel of no client.
const CHANNEL: &[u8] = b"quorumlock:0000000000000000";

/// What rights are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    /// To take, extend and release a lock.
    Locking,
    /// To wait for a lock in its queue, and to receive messages.
    Waiting,
    /// For the kind of lock at this index of [`kinds::KEYS`].
    Kind(usize),
    /// To read and write what a node remembers.
    Remembering,
    /// To look at locks by this program.
    Showing,
}

impl Purpose {
    /// What does not work without such a right.
    pub(super) fn lack(self) -> String {
        let text = match self {
            Purpose::Locking => "the user lacks rights",
            Purpose::Waiting => {
                "the user lacks rights that waiting needs: calls poll, and fair locks and the order of readers and \
                 writers do not work"
            }
            Purpose::Kind(index) => {
                let title = kinds::KEYS[index].title;
                return format!("the user lacks rights that {title}s need: they do not work, other locks do");
            }
            Purpose::Remembering => {
                "the user lacks rights that restart protection needs: a program that has just started does not see \
                 that the node has lost its keys"
            }
            Purpose::Showing => "the user lacks rights that quorumlock show and run -n need: locks work",
        };
        text.to_owned()
    }
}

/// What is missing.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// Rules to add, such as `+publish`, by what needs them.
    pub(super) rules: BTreeMap<Purpose, BTreeSet<String>>,
    /// Whether a plain lock cannot be taken, or not be released.
    pub(super) is_locking_denied: bool,
    /// Whether the user has no right to a key of the trial, and it is not known to which it has: no rule follows from
    /// that, because the one to all keys would be more than the user needs.
    pub(super) are_keys_unknown: bool,
}

/// Which names the user has a right to, as far as is known.
pub(super) struct Names {
    /// What is in front of names.
    pub(super) prefix: String,
    /// What names begin with.
    pub(super) begin: String,
}

impl Names {
    /// What the full names of locks begin with.
    fn locks(&self) -> String {
        format!("{}{}", self.prefix, self.begin)
    }

    /// What the keys begin with that have a marker: one pattern for all of them.
    fn marked(&self) -> String {
        key_space::PATTERN.to_owned() + &self.locks()
    }
}

/// What the names of locks begin with that a user has a right to, by its own patterns. None if it may not read them, or
/// if none is of that form.
pub(super) fn own_names(connection: &mut Connection, user: &str) -> Result<Option<String>, Trouble> {
    let fields = connection.ask(&[b"ACL", b"GETUSER", user.as_bytes()])?.array().unwrap_or_default();
    let mut fields = fields.into_iter().skip_while(|field| field.text().as_deref() != Some("keys"));
    // Redis 6 lists the patterns, and Redis 7 writes them in one line.
    let patterns = match fields.nth(1) {
        Some(Value::Array(patterns)) => patterns.iter().filter_map(Value::text).collect::<Vec<_>>().join(" "),
        Some(line) => line.text().unwrap_or_default(),
        None => String::new(),
    };
    let begins = patterns.split_whitespace().filter_map(|pattern| {
        let begin = pattern.trim_start_matches("%RW").trim_start_matches('~').strip_suffix('*')?;
        let is_plain = !begin.contains(['*', '?', '[', '\\']) && key_space::reserved(begin).is_none();
        is_plain.then(|| begin.to_owned())
    });
    Ok(begins.min_by_key(String::len))
}

/// Tries everything, and deletes what it made. The name begins as these do.
pub(super) fn missing(connection: &mut Connection, names: &Names, name: &str) -> Result<Missing, Trouble> {
    let keys = kinds::KEYS.map(|kind| kind.key(&names.prefix, name));
    let plain = kinds::plain::KEYS.key(&names.prefix, name);
    let (queue, node) = (key_space::queue(&plain), key_space::node(&names.prefix));
    let queues =
        keys.iter().chain([&key_space::semaphore(&plain)]).map(|key| key_space::queue(key)).collect::<Vec<_>>();
    let [key, queue_key, node_key] = [&plain, &queue, &node].map(|key| key.as_bytes());
    let release = kinds::plain::SCRIPT.text.as_bytes();
    let (locks, marked) = (names.locks(), names.marked());
    let mut tester = Tester { connection, missing: Missing::default(), has_names: !locks.is_empty() };

    let is_taken = tester.allows(Purpose::Locking, &locks, &[b"SET", key, TOKEN, b"NX", b"PX", TTL])?;
    let extend: &[&[u8]] = &[b"EVAL", kinds::plain::EXTEND.as_bytes(), b"1", key, TOKEN, TTL];
    tester.allows_all(Purpose::Locking, &locks, &[&[b"GET", key], &[b"PEXPIRE", key, TTL], extend])?;
    let releasing: [&[&[u8]]; 3] = [&[b"EVAL", release, b"1", key, b"release", TOKEN], &[b"GET", key], &[b"DEL", key]];
    let is_released = tester.allows_all(Purpose::Locking, &locks, &releasing)?;
    if is_released {
        // A hash that the server does not know is an error of another kind than one that is denied.
        let by_hash: &[&[u8]] = &[b"EVALSHA", kinds::plain::SCRIPT.sha1.as_bytes(), b"1", key, b"release", TOKEN];
        tester.allows(Purpose::Locking, &locks, by_hash)?;
    }
    tester.missing.is_locking_denied = !is_taken || !is_released;

    // The queue, and what wakes those that wait. Nothing is stored: an entry is set only where it exists.
    let in_queue: [&[&[u8]]; 10] = [
        &[b"ZADD", queue_key, b"XX", b"1", ENTRY],
        &[b"PEXPIRE", queue_key, TTL],
        &[b"ZRANGE", queue_key, b"0", b"0"],
        &[b"ZREVRANGE", queue_key, b"0", b"0"],
        &[b"ZSCORE", queue_key, ENTRY],
        &[b"ZRANK", queue_key, ENTRY],
        &[b"ZCARD", queue_key],
        &[b"ZREM", queue_key, ENTRY],
        &[b"ZREMRANGEBYSCORE", queue_key, b"1", b"1"],
        &[b"EVAL", b"return 0", b"1", key],
    ];
    tester.allows_all(Purpose::Waiting, &marked, &in_queue)?;
    for queue in &queues {
        tester.allows(Purpose::Waiting, &marked, &[b"EXISTS", queue.as_bytes()])?;
    }
    let telling: [&[&[u8]]; 3] = [&[b"PTTL", key], &[b"TIME"], &[b"PUBLISH", CHANNEL, b"?"]];
    tester.allows_all(Purpose::Waiting, &locks, &telling)?;
    // In RESP2, a connection that is subscribed only unsubscribes.
    if tester.allows(Purpose::Waiting, &locks, &[b"SUBSCRIBE", CHANNEL])? {
        tester.allows(Purpose::Waiting, &locks, &[b"UNSUBSCRIBE", CHANNEL])?;
    }

    // What a kind does that no other trial has done.
    for (index, (kind, key)) in kinds::KEYS.iter().zip(&keys).enumerate() {
        for command in kind.trial {
            let words: Vec<&[u8]> = command.split(' ').map(|word| trial_word(word, key, kind.script.text)).collect();
            tester.allows(Purpose::Kind(index), &marked, &words)?;
        }
    }

    // The key of the node. Nothing is stored: no such option of `SET` exists, and the node does not have that value.
    let store: [&[u8]; 9] = [b"EVAL", node_note::STORE.as_bytes(), b"1", node_key, TOKEN, b"0", b"", b"", b""];
    let remembering: [&[&[u8]]; 4] = [&[b"GET", node_key], &[b"SET", node_key, TOKEN, b"?"], &[b"TIME"], &store];
    tester.allows_all(Purpose::Remembering, &node, &remembering)?;

    tester.allows(Purpose::Showing, &locks, &[b"GETRANGE", key, b"0", b"0"])?;
    // A key of a user that may not delete ends by itself.
    for key in &keys {
        tester.connection.ask(&[b"DEL", key.as_bytes()])?;
    }
    Ok(tester.missing)
}

/// A word of the trial of a kind, as it is sent.
fn trial_word<'w>(word: &'w str, key: &'w str, script: &'w str) -> &'w [u8] {
    match word {
        "KEY" => key.as_bytes(),
        "NONE" => b"",
        "NOTHING" => b"return 0",
        "SCRIPT" => script.as_bytes(),
        "TOKEN" => TOKEN,
        "TTL" => TTL,
        word => word.as_bytes(),
    }
}

/// The trial on one node.
struct Tester<'c> {
    connection: &'c mut Connection,
    missing: Missing,
    /// Whether it is known what names of locks begin with.
    has_names: bool,
}

impl Tester<'_> {
    /// Whether the user may do this; keeps the rule if not. `keys` is what the names of its keys and channels have in
    /// front.
    fn allows(&mut self, purpose: Purpose, keys: &str, words: &[&[u8]]) -> Result<bool, Trouble> {
        let Value::Error(refusal) = self.connection.ask(words)? else {
            return Ok(true);
        };
        let Subject::Denied(denied) = refusal.subject else {
            return Ok(refusal.subject != Subject::UnknownCommand);
        };
        let is_of_a_lock = purpose != Purpose::Remembering;
        if denied == Denied::Key && is_of_a_lock && !self.has_names {
            self.missing.are_keys_unknown = true;
            return Ok(false);
        }
        let rule = match denied {
            Denied::Channel => "&quorumlock:*".to_owned(),
            Denied::Command | Denied::Scripts => format!("+{}", String::from_utf8_lossy(words[0]).to_lowercase()),
            Denied::Key if is_of_a_lock => format!("~{keys}*"),
            Denied::Key => format!("~{keys}"),
        };
        self.missing.rules.entry(purpose).or_default().insert(rule);
        Ok(false)
    }

    /// Whether the user may do all of this.
    fn allows_all(&mut self, purpose: Purpose, keys: &str, commands: &[&[&[u8]]]) -> Result<bool, Trouble> {
        commands.iter().try_fold(true, |are_allowed, words| Ok(self.allows(purpose, keys, words)? && are_allowed))
    }
}
