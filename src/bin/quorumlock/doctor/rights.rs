//! What the user may do: everything that a lock does, done to a key of a random name, on one node.
//!
//! Each command is tried by itself, so that the answer is a rule to add and not a guess.

use crate::connection::{Connection, Trouble, Value};
use quorumlock::protocol::error_reply::{Denied, Subject};
use quorumlock::protocol::key_space::{self, KeyKind};
use quorumlock::protocol::{kinds, node_note};
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
    Fencing,
    ReadWrite,
    /// To read and write what a node remembers.
    Remembering,
    /// To look at locks by this program.
    Showing,
}

impl Purpose {
    /// What does not work without such a right.
    pub(super) fn lack(self) -> &'static str {
        match self {
            Purpose::Locking => "the user lacks rights",
            Purpose::Waiting => {
                "the user lacks rights that waiting needs: calls poll, and fair locks and the order of readers and \
                 writers do not work"
            }
            Purpose::Fencing => "the user lacks rights that fenced locks need: they do not work, other locks do",
            Purpose::ReadWrite => "the user lacks rights that read-write locks need: they do not work, other locks do",
            Purpose::Remembering => {
                "the user lacks rights that restart protection needs: a program that has just started does not see \
                 that the node has lost its keys"
            }
            Purpose::Showing => "the user lacks rights that quorumlock show and run -n need: locks work",
        }
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

/// The trial on one node.
struct Tester<'c> {
    connection: &'c mut Connection,
    names: &'c Names,
    /// What the commands that are tried are for.
    purpose: Purpose,
    missing: Missing,
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
    let plain = format!("{}{name}", names.prefix);
    let fenced = KeyKind::Fenced.key(&names.prefix, name);
    let mut tester = Tester { connection, names, purpose: Purpose::Locking, missing: Missing::default() };
    let is_taken = tester.allows(&[b"SET", plain.as_bytes(), TOKEN, b"NX", b"PX", TTL], &names.locks())?;
    tester.extension(&plain)?;
    let is_released = tester.release(&plain)?;
    tester.waiting(&plain, name)?;
    tester.fencing(&fenced)?;
    tester.reading_and_writing(name)?;
    tester.remembering()?;
    tester.purpose = Purpose::Showing;
    tester.allows(&[b"GETRANGE", plain.as_bytes(), b"0", b"0"], &names.locks())?;
    tester.missing.is_locking_denied = !is_taken || !is_released;
    // A key of a user that may not delete ends by itself.
    for key in [&plain, &fenced] {
        tester.connection.ask(&[b"DEL", key.as_bytes()])?;
    }
    Ok(tester.missing)
}

impl Tester<'_> {
    /// Whether the user may do this; notes the rule if not. `keys` is what the names of its keys and channels have in
    /// front.
    fn allows(&mut self, words: &[&[u8]], keys: &str) -> Result<bool, Trouble> {
        let reply = self.connection.ask(words)?;
        let Value::Error(refusal) = reply else {
            return Ok(true);
        };
        let Subject::Denied(denied) = refusal.subject else {
            return Ok(refusal.subject != Subject::UnknownCommand);
        };
        let command = String::from_utf8_lossy(words.first().copied().unwrap_or_default()).to_lowercase();
        let is_of_a_lock = self.purpose != Purpose::Remembering;
        if denied == Denied::Key && is_of_a_lock && self.names.locks().is_empty() {
            self.missing.are_keys_unknown = true;
            return Ok(false);
        }
        let rule = match denied {
            Denied::Channel => "&quorumlock:*".to_owned(),
            Denied::Command | Denied::Scripts => format!("+{command}"),
            Denied::Key if is_of_a_lock => format!("~{keys}*"),
            Denied::Key => format!("~{keys}"),
        };
        self.missing.rules.entry(self.purpose).or_default().insert(rule);
        Ok(false)
    }

    /// Whether the user may do all of this.
    fn allows_all(&mut self, commands: &[&[&[u8]]], keys: &str) -> Result<bool, Trouble> {
        let mut are_allowed = true;
        for words in commands {
            are_allowed &= self.allows(words, keys)?;
        }
        Ok(are_allowed)
    }

    fn extension(&mut self, key: &str) -> Result<(), Trouble> {
        let key = key.as_bytes();
        let commands: [&[&[u8]]; 3] = [
            &[b"GET", key],
            &[b"PEXPIRE", key, TTL],
            &[b"EVAL", kinds::plain::EXTEND.as_bytes(), b"1", key, TOKEN, TTL],
        ];
        self.allows_all(&commands, &self.names.locks()).map(drop)
    }

    /// True if the user may release.
    fn release(&mut self, key: &str) -> Result<bool, Trouble> {
        let (key, keys) = (key.as_bytes(), self.names.locks());
        let commands: [&[&[u8]]; 3] = [
            &[b"EVAL", kinds::plain::SCRIPT.text.as_bytes(), b"1", key, b"release", TOKEN],
            &[b"GET", key],
            &[b"DEL", key],
        ];
        let is_allowed = self.allows_all(&commands, &keys)?;
        if is_allowed {
            // A hash that the server does not know is an error of another kind than one that is denied.
            self.allows(&[b"EVALSHA", kinds::plain::SCRIPT.sha1.as_bytes(), b"1", key, b"release", TOKEN], &keys)?;
        }
        Ok(is_allowed)
    }

    /// The queue, and what wakes those that wait. Nothing is stored: an entry is set only where it exists.
    fn waiting(&mut self, plain: &str, name: &str) -> Result<(), Trouble> {
        self.purpose = Purpose::Waiting;
        let (locks, marked) = (self.names.locks(), self.names.marked());
        let (key, queue) = (plain.as_bytes(), key_space::queue(plain));
        let queue = queue.as_bytes();
        let commands: [&[&[u8]]; 10] = [
            &[b"ZADD", queue, b"XX", b"1", ENTRY],
            &[b"PEXPIRE", queue, TTL],
            &[b"ZRANGE", queue, b"0", b"0"],
            &[b"ZREVRANGE", queue, b"0", b"0"],
            &[b"ZSCORE", queue, ENTRY],
            &[b"ZRANK", queue, ENTRY],
            &[b"ZCARD", queue],
            &[b"ZREM", queue, ENTRY],
            &[b"ZREMRANGEBYSCORE", queue, b"1", b"1"],
            &[b"EVAL", b"return 0", b"1", key],
        ];
        self.allows_all(&commands, &marked)?;
        let [_, fenced, read_write] = KeyKind::ALL.map(|kind| kind.key(&self.names.prefix, name));
        for key in [plain, &fenced, &read_write, &key_space::semaphore(plain)] {
            self.allows(&[b"EXISTS", key_space::queue(key).as_bytes()], &marked)?;
        }
        self.allows(&[b"PTTL", key], &locks)?;
        self.allows(&[b"TIME"], &locks)?;
        self.allows(&[b"PUBLISH", CHANNEL, b"?"], &locks)?;
        // In RESP2, a connection that is subscribed only unsubscribes.
        if self.allows(&[b"SUBSCRIBE", CHANNEL], &locks)? {
            self.allows(&[b"UNSUBSCRIBE", CHANNEL], &locks)?;
        }
        Ok(())
    }

    fn fencing(&mut self, key: &str) -> Result<(), Trouble> {
        self.purpose = Purpose::Fencing;
        let marked = self.names.marked();
        let (script, name) = (kinds::fenced::SCRIPT.text.as_bytes(), key.as_bytes());
        self.allows(&[b"TIME"], &marked)?;
        let allowed = self.allows(&[b"EVAL", script, b"1", name, b"acquire", TOKEN, TTL, TTL, b"1"], &marked)?;
        if allowed {
            self.allows(&[b"EVAL", script, b"1", name, b"release", TOKEN, b"", b"", TTL], &marked)?;
        }
        Ok(())
    }

    /// The key of a read-write lock, and what its script does that no other trial has done.
    fn reading_and_writing(&mut self, name: &str) -> Result<(), Trouble> {
        self.purpose = Purpose::ReadWrite;
        let (key, marked) = (KeyKind::ReadWrite.key(&self.names.prefix, name), self.names.marked());
        let key = key.as_bytes();
        let commands: [&[&[u8]]; 5] =
            [&[b"TIME"], &[b"GET", key], &[b"DEL", key], &[b"PEXPIRE", key, TTL], &[b"EVAL", b"return 0", b"1", key]];
        self.allows_all(&commands, &marked).map(drop)
    }

    /// The key of the node. Nothing is stored: no such option of `SET` exists, and the node does not have that value.
    fn remembering(&mut self) -> Result<(), Trouble> {
        self.purpose = Purpose::Remembering;
        let name = key_space::node(&self.names.prefix);
        let key = name.as_bytes();
        let store: [&[u8]; 9] = [b"EVAL", node_note::STORE.as_bytes(), b"1", key, TOKEN, b"0", b"", b"", b""];
        self.allows_all(&[&[b"GET", key], &[b"SET", key, TOKEN, b"?"], &[b"TIME"], &store], &name).map(drop)
    }
}
