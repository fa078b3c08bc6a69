//! What the user may do: everything that a lock does, done to a key of a random name, on one node.
//!
//! Each command is tried by itself, so that the answer is a rule to add and not a guess. Where a server compares and
//! deletes by a command of its own, scripts are not missed.

use crate::connection::{Connection, Denied, Trouble, Value};
use crate::locks::kind::Kind;
use quorumlock::protocol::fair::QUEUE_KEY_PREFIX;
use quorumlock::protocol::fenced::FENCED_KEY_PREFIX;
use quorumlock::protocol::read_write::READ_WRITE_KEY_PREFIX;
use quorumlock::protocol::script;
use std::collections::BTreeSet;

/// How long what is left behind lasts at most, in milliseconds.
const TTL: &[u8] = b"10000";
/// A token of no holder.
const TOKEN: &[u8] = b"00000000000000000000000000000000000000ff";

/// What is missing.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// Rules to add, such as `+publish`.
    pub(super) rules: BTreeSet<String>,
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
    missing: Missing,
}

/// Which names the user has a right to, as far as is known.
pub(super) struct Names {
    /// What stands in front of names and marks.
    pub(super) prefix: String,
    /// What names begin with.
    pub(super) begin: String,
}

impl Names {
    /// What the keys begin with that have this mark.
    fn keys(&self, mark: &str) -> String {
        format!("{}{mark}{}", self.prefix, self.begin)
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
        let is_plain = !begin.contains(['*', '?', '[', '\\']) && Kind::of(begin).0 == Kind::Plain;
        is_plain.then(|| begin.to_owned())
    });
    Ok(begins.min_by_key(String::len))
}

/// Tries everything, and deletes what it made. The name begins as these do.
pub(super) fn missing(connection: &mut Connection, names: &Names, name: &str) -> Result<Missing, Trouble> {
    let plain = format!("{}{name}", names.prefix);
    let fenced = format!("{}{FENCED_KEY_PREFIX}{name}", names.prefix);
    let mut tester = Tester { connection, names, missing: Missing::default() };
    let is_taken = tester.allows(&[b"SET", plain.as_bytes(), TOKEN, b"NX", b"PX", TTL], &names.keys(""))?;
    tester.notifications(&plain)?;
    tester.extension(&plain)?;
    let is_released = tester.release(&plain)?;
    tester.fencing(&fenced)?;
    tester.other_keys(name)?;
    tester.missing.is_locking_denied = !is_taken || !is_released;
    // A key of a user that may not delete ends by itself.
    tester.connection.ask(&[b"DEL", plain.as_bytes(), fenced.as_bytes()])?;
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
        let Some(denied) = refusal.denied else {
            return Ok(!refusal.is_unknown_command);
        };
        let command = String::from_utf8_lossy(words.first().copied().unwrap_or_default()).to_lowercase();
        if denied == Denied::Key && self.names.keys("").is_empty() {
            self.missing.are_keys_unknown = true;
            return Ok(false);
        }
        let rule = match denied {
            Denied::Channel => format!("&quorumlock:{keys}*"),
            Denied::Command => format!("+{command}"),
            Denied::Key => format!("~{keys}*"),
        };
        self.missing.rules.insert(rule);
        Ok(false)
    }

    fn notifications(&mut self, key: &str) -> Result<(), Trouble> {
        let (key, channel, keys) = (key.as_bytes(), format!("quorumlock:{key}"), self.names.keys(""));
        self.allows(&[b"PTTL", key], &keys)?;
        self.allows(&[b"GETRANGE", key, b"0", b"0"], &keys)?;
        self.allows(&[b"PUBLISH", channel.as_bytes(), b"1"], &keys)?;
        // In RESP2, a connection that is subscribed only unsubscribes.
        if self.allows(&[b"SUBSCRIBE", channel.as_bytes()], &keys)? {
            self.allows(&[b"UNSUBSCRIBE", channel.as_bytes()], &keys)?;
        }
        Ok(())
    }

    /// By a script, or by `SET IFEQ` where the server has that.
    fn extension(&mut self, key: &str) -> Result<(), Trouble> {
        let key = key.as_bytes();
        let by_script: [&[&[u8]]; 3] =
            [&[b"GET", key], &[b"PEXPIRE", key, TTL], &[b"EVAL", script::EXTEND.as_bytes(), b"1", key, TOKEN, TTL]];
        let otherwise: &[&[u8]] = &[b"SET", key, TOKEN, b"IFEQ", TOKEN, b"PX", TTL];
        self.any_of(&by_script, &[otherwise])?;
        Ok(())
    }

    /// By a script, or by a command that compares and deletes. True if one of them is allowed.
    fn release(&mut self, key: &str) -> Result<bool, Trouble> {
        let key = key.as_bytes();
        let by_script: [&[&[u8]]; 3] =
            [&[b"EVAL", script::RELEASE.as_bytes(), b"1", key, TOKEN], &[b"GET", key], &[b"DEL", key]];
        let otherwise: [&[&[u8]]; 2] = [&[b"DELIFEQ", key, TOKEN], &[b"DELEX", key, b"IFEQ", TOKEN]];
        let is_allowed = self.any_of(&by_script, &otherwise)?;
        if is_allowed && !self.missing.rules.contains("+eval") {
            // A hash that the server does not know is an error of another kind than one that is denied.
            let keys = self.names.keys("");
            self.allows(&[b"EVALSHA", script::RELEASE_SHA1.as_bytes(), b"1", key, TOKEN], &keys)?;
        }
        Ok(is_allowed)
    }

    /// Whether all of the first, or one of the others, are allowed. Only then are the first not missed.
    fn any_of(&mut self, all: &[&[&[u8]]], others: &[&[&[u8]]]) -> Result<bool, Trouble> {
        let keys = self.names.keys("");
        let before = self.missing.rules.clone();
        let mut are_allowed = true;
        for words in all {
            are_allowed &= self.allows(words, &keys)?;
        }
        if are_allowed {
            return Ok(true);
        }
        for words in others {
            if !matches!(self.connection.ask(words)?, Value::Error(_)) {
                self.missing.rules = before;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn fencing(&mut self, key: &str) -> Result<(), Trouble> {
        let prefix = self.names.keys(FENCED_KEY_PREFIX);
        let (script, name) = (script::FENCE.as_bytes(), key.as_bytes());
        self.allows(&[b"TIME"], &prefix)?;
        let allowed = self.allows(&[b"EVAL", script, b"1", name, b"acquire", TOKEN, TTL, TTL, b"1"], &prefix)?;
        if allowed {
            self.allows(&[b"EVAL", script, b"1", name, b"release", TOKEN, TTL], &prefix)?;
        }
        self.channel(key, &prefix)
    }

    /// The keys of read-write locks, and of the queues of fair locks. What is done to them is in the other trials.
    fn other_keys(&mut self, name: &str) -> Result<(), Trouble> {
        let (own, fair_fenced) = (&self.names.prefix, format!("{QUEUE_KEY_PREFIX}{FENCED_KEY_PREFIX}"));
        for mark in [READ_WRITE_KEY_PREFIX, QUEUE_KEY_PREFIX, &fair_fenced] {
            self.allows(&[b"GET", format!("{own}{mark}{name}").as_bytes()], &self.names.keys(mark))?;
        }
        self.channel(&format!("{own}{READ_WRITE_KEY_PREFIX}{name}"), &self.names.keys(READ_WRITE_KEY_PREFIX))
    }

    fn channel(&mut self, key: &str, keys: &str) -> Result<(), Trouble> {
        let channel = format!("quorumlock:{key}");
        self.allows(&[b"PUBLISH", channel.as_bytes(), b"1"], keys).map(drop)
    }
}
