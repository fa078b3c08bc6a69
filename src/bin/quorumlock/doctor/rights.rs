//! What the user may do: everything that a lock does, done to a key of a random name, on one node.
//!
//! Each command is tried by itself, so that the answer is a rule to add and not a guess.

use super::plan::Plan;
use crate::connection::{Connection, Trouble, Value};
use quorumlock::protocol::error_reply::{Denied, Subject};
use quorumlock::protocol::{key_space, kinds, node_note};
use std::collections::{BTreeMap, BTreeSet};

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
                return format!(
                    "the user lacks rights that {title}s need: they do not work, other locks do"
                );
            }
            Purpose::Remembering => {
                "the user lacks rights that restart protection needs: a program that has just started does not see \
                 that the node has lost its keys"
            }
            Purpose::Showing => {
                "the user lacks rights that quorumlock show and run -n need: locks work"
            }
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
    /// Whether the user has no right to a key of the trial, and it is not known to which it has: no
    /// rule follows from that, because the one to all keys would be more than the user needs.
    pub(super) are_keys_unknown: bool,
}

/// What the names of locks begin with that a user has a right to, by its own patterns. None if it
/// may not read them, or if none is of that form.
pub(super) fn own_names(
    connection: &mut Connection,
    user: &str,
) -> Result<Option<String>, Trouble> {
    let fields = connection
        .ask(&[b"ACL", b"GETUSER", user.as_bytes()])?
        .array()
        .unwrap_or_default();
    let mut fields = fields
        .into_iter()
        .skip_while(|field| field.text().as_deref() != Some("keys"));
    // Redis 6 lists the patterns, and Redis 7 writes them in one line.
    let patterns = match fields.nth(1) {
        Some(Value::Array(patterns)) => patterns
            .iter()
            .filter_map(Value::text)
            .collect::<Vec<_>>()
            .join(" "),
        Some(line) => line.text().unwrap_or_default(),
        None => String::new(),
    };
    let begins = patterns.split_whitespace().filter_map(|pattern| {
        let begin = pattern
            .trim_start_matches("%RW")
            .trim_start_matches('~')
            .strip_suffix('*')?;
        let is_plain =
            !begin.contains(['*', '?', '[', '\\']) && key_space::reserved(begin).is_none();
        is_plain.then(|| begin.to_owned())
    });
    Ok(begins.min_by_key(String::len))
}

/// Tries everything, and deletes what it made. The last that is asked on the connection.
pub(super) fn missing(connection: &mut Connection, plan: &Plan<'_>) -> Result<Missing, Trouble> {
    let prefix = &plan.settings.prefix;
    // A name of its own, so that the trial of the whole deployment meets no key of this one.
    let name = format!("{}-rights", plan.name);
    let keys = kinds::KEYS.map(|kind| kind.key(prefix, &name));
    let key = &kinds::plain::KEYS.key(prefix, &name);
    let queue = key_space::queue(key);
    let node = key_space::node(prefix);
    // What the full names of locks begin with, and one pattern for all keys that have a marker.
    let locks = &format!("{prefix}{}", plan.begin);
    let marked = &(key_space::PATTERN.to_owned() + locks);
    let mut tester = Tester {
        connection,
        missing: Missing::default(),
        has_names: !locks.is_empty(),
    };

    let is_taken = tester.allows(Purpose::Locking, locks, key, &["SET KEY TOKEN NX PX TTL"])?;
    let extending = ["GET KEY", "PEXPIRE KEY TTL", "EVAL EXTEND 1 KEY TOKEN TTL"];
    tester.allows(Purpose::Locking, locks, key, &extending)?;
    let releasing = ["EVAL SCRIPT 1 KEY release TOKEN", "GET KEY", "DEL KEY"];
    let is_released = tester.allows(Purpose::Locking, locks, key, &releasing)?;
    if is_released {
        // A hash that the server does not know is an error of another kind than one that is denied.
        tester.allows(
            Purpose::Locking,
            locks,
            key,
            &["EVALSHA HASH 1 KEY release TOKEN"],
        )?;
    }
    tester.missing.is_locking_denied = !is_taken || !is_released;

    // The queue, and what wakes those that wait. Nothing is stored: an entry is set only where it
    // exists.
    let in_queue = [
        "ZADD KEY XX 1 ENTRY",
        "PEXPIRE KEY TTL",
        "ZRANGE KEY 0 0",
        "ZREVRANGE KEY 0 0",
        "ZSCORE KEY ENTRY",
        "ZRANK KEY ENTRY",
        "ZCARD KEY",
        "ZREM KEY ENTRY",
        "ZREMRANGEBYSCORE KEY 1 1",
    ];
    tester.allows(Purpose::Waiting, marked, &queue, &in_queue)?;
    tester.allows(Purpose::Waiting, marked, key, &["EVAL NOTHING 1 KEY"])?;
    for key in keys.iter().chain([&key_space::semaphore(key)]) {
        tester.allows(
            Purpose::Waiting,
            marked,
            &key_space::queue(key),
            &["EXISTS KEY"],
        )?;
    }
    tester.allows(
        Purpose::Waiting,
        locks,
        key,
        &["PTTL KEY", "TIME", "PUBLISH CHANNEL ?"],
    )?;
    for (index, key) in keys.iter().enumerate() {
        tester.allows(Purpose::Kind(index), marked, key, kinds::KEYS[index].trial)?;
    }

    // The key of the node. Nothing is stored: no such option of `SET` exists, and the node does not
    // have that value.
    let remembering = [
        "GET KEY",
        "SET KEY TOKEN ?",
        "TIME",
        "EVAL STORE 1 KEY TOKEN 0 NONE NONE NONE",
    ];
    tester.allows(Purpose::Remembering, &node, &node, &remembering)?;

    tester.allows(Purpose::Showing, locks, key, &["GETRANGE KEY 0 0"])?;
    // A key of a user that may not delete ends by itself.
    for key in &keys {
        tester.connection.ask(&[b"DEL", key.as_bytes()])?;
    }
    // In RESP2, a connection that is subscribed only unsubscribes: nothing can be asked after it if
    // the user may not do that.
    if tester.allows(Purpose::Waiting, locks, key, &["SUBSCRIBE CHANNEL"])? {
        tester.allows(Purpose::Waiting, locks, key, &["UNSUBSCRIBE CHANNEL"])?;
    }
    Ok(tester.missing)
}

/// The trial on one node.
struct Tester<'c> {
    connection: &'c mut Connection,
    missing: Missing,
    /// Whether it is known what names of locks begin with.
    has_names: bool,
}

impl Tester<'_> {
    /// Whether the user may do all of this; keeps the rules if not. `names` is what the names of
    /// its keys and channels have in front. The commands have words in capitals in place of those
    /// that are sent.
    fn allows(
        &mut self,
        purpose: Purpose,
        names: &str,
        key: &str,
        commands: &[&str],
    ) -> Result<bool, Trouble> {
        let script = if let Purpose::Kind(index) = purpose {
            kinds::KEYS[index].script
        } else {
            kinds::plain::SCRIPT
        };
        let sent = |word| match word {
            // Of no client.
            "CHANNEL" => "quorumlock:0000000000000000",
            "ENTRY" => "0000000000000000m0",
            "EXTEND" => kinds::plain::EXTEND,
            "HASH" => script.sha1,
            "KEY" => key,
            "NONE" => "",
            "NOTHING" => "return 0",
            "SCRIPT" => script.text,
            "STORE" => node_note::STORE,
            // Of no holder.
            "TOKEN" => "00000000000000000000000000000000000000ff",
            // How long keys that the check leaves behind last at most.
            "TTL" => "10000",
            word => word,
        };
        commands.iter().try_fold(true, |are_allowed, command| {
            let words: Vec<&[u8]> = command
                .split(' ')
                .map(|word| sent(word).as_bytes())
                .collect();
            Ok(self.allows_one(purpose, names, &words)? && are_allowed)
        })
    }

    fn allows_one(
        &mut self,
        purpose: Purpose,
        names: &str,
        words: &[&[u8]],
    ) -> Result<bool, Trouble> {
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
            Denied::Command | Denied::Scripts => {
                format!("+{}", String::from_utf8_lossy(words[0]).to_lowercase())
            }
            Denied::Key if is_of_a_lock => format!("~{names}*"),
            Denied::Key => format!("~{names}"),
        };
        self.missing.rules.entry(purpose).or_default().insert(rule);
        Ok(false)
    }
}
