//! What the user may do: everything that a lock does, done to a key of a random name, on one node.
//!
//! Each command is tried by itself, so that the answer is a rule to add and not a guess. Where a server compares and
//! deletes by a command of its own, scripts are not missed.

use crate::connection::{Connection, Denied, Trouble, Value};
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
}

/// The trial on one node.
struct Tester<'c> {
    connection: &'c mut Connection,
    prefix: &'c str,
    missing: Missing,
}

/// Tries everything, and deletes what it made.
pub(super) fn missing(connection: &mut Connection, prefix: &str, name: &str) -> Result<Missing, Trouble> {
    let plain = format!("{prefix}{name}");
    let fenced = format!("{prefix}{FENCED_KEY_PREFIX}{name}");
    let mut tester = Tester { connection, prefix, missing: Missing::default() };
    let is_taken = tester.allows(&[b"SET", plain.as_bytes(), TOKEN, b"NX", b"PX", TTL], prefix)?;
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
        let rule = match denied {
            Denied::Channel => format!("&quorumlock:{keys}*"),
            Denied::Command => format!("+{command}"),
            Denied::Key => format!("~{keys}*"),
        };
        self.missing.rules.insert(rule);
        Ok(false)
    }

    fn notifications(&mut self, key: &str) -> Result<(), Trouble> {
        let (key, channel, prefix) = (key.as_bytes(), format!("quorumlock:{key}"), self.prefix);
        self.allows(&[b"PTTL", key], prefix)?;
        self.allows(&[b"GETRANGE", key, b"0", b"0"], prefix)?;
        self.allows(&[b"PUBLISH", channel.as_bytes(), b"1"], prefix)?;
        // In RESP2, a connection that is subscribed only unsubscribes.
        if self.allows(&[b"SUBSCRIBE", channel.as_bytes()], prefix)? {
            self.allows(&[b"UNSUBSCRIBE", channel.as_bytes()], prefix)?;
        }
        Ok(())
    }

    /// By a script, or by `SET IFEQ` where the server has that.
    fn extension(&mut self, key: &str) -> Result<(), Trouble> {
        let (key, prefix) = (key.as_bytes(), self.prefix);
        let by_script: [&[&[u8]]; 3] =
            [&[b"GET", key], &[b"PEXPIRE", key, TTL], &[b"EVAL", script::EXTEND.as_bytes(), b"1", key, TOKEN, TTL]];
        let otherwise: &[&[u8]] = &[b"SET", key, TOKEN, b"IFEQ", TOKEN, b"PX", TTL];
        self.any_of(&by_script, &[otherwise], prefix)?;
        Ok(())
    }

    /// By a script, or by a command that compares and deletes. True if one of them is allowed.
    fn release(&mut self, key: &str) -> Result<bool, Trouble> {
        let (key, prefix) = (key.as_bytes(), self.prefix);
        let by_script: [&[&[u8]]; 3] =
            [&[b"EVAL", script::RELEASE.as_bytes(), b"1", key, TOKEN], &[b"GET", key], &[b"DEL", key]];
        let otherwise: [&[&[u8]]; 2] = [&[b"DELIFEQ", key, TOKEN], &[b"DELEX", key, b"IFEQ", TOKEN]];
        let is_allowed = self.any_of(&by_script, &otherwise, prefix)?;
        if is_allowed && !self.missing.rules.contains("+eval") {
            // A hash that the server does not know is an error of another kind than one that is denied.
            self.allows(&[b"EVALSHA", script::RELEASE_SHA1.as_bytes(), b"1", key, TOKEN], prefix)?;
        }
        Ok(is_allowed)
    }

    /// Whether all of the first, or one of the others, are allowed. Only then are the first not missed.
    fn any_of(&mut self, all: &[&[&[u8]]], others: &[&[&[u8]]], keys: &str) -> Result<bool, Trouble> {
        let before = self.missing.rules.clone();
        let mut are_allowed = true;
        for words in all {
            are_allowed &= self.allows(words, keys)?;
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
        let prefix = format!("{}{FENCED_KEY_PREFIX}", self.prefix);
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
        let own = self.prefix;
        let [read_write, queue] = [READ_WRITE_KEY_PREFIX, QUEUE_KEY_PREFIX].map(|mark| format!("{own}{mark}"));
        for prefix in [&read_write, &queue] {
            self.allows(&[b"GET", format!("{prefix}{name}").as_bytes()], prefix)?;
        }
        self.channel(&format!("{read_write}{name}"), &read_write)
    }

    fn channel(&mut self, key: &str, keys: &str) -> Result<(), Trouble> {
        let channel = format!("quorumlock:{key}");
        self.allows(&[b"PUBLISH", channel.as_bytes(), b"1"], keys).map(drop)
    }
}
