//! The rules about the keys of read-write locks: a command changes the entry of its own attempt,
//! and no other one before its end. It makes no reader a writer, and extends nothing that has
//! ended. The last number that a writer was given stays for as long as it was to be kept, and never
//! becomes smaller; so long lasts the key.

use crate::judge::{self, Action, Command};
use crate::keys::{Content, Entry};
use crate::locks::Access;
use crate::protocol::kinds;
use crate::protocol::script::Script;
use crate::queues::Request;
use crate::world::World;
use std::collections::BTreeMap;

/// The words of an extension, with the time to keep the number. A raise has the number as one more.
const RAISE: usize = 9;

/// By node and key: what it held after the last command.
#[derive(Default)]
pub(crate) struct Entries(BTreeMap<(usize, Vec<u8>), Content>);

impl Entries {
    /// A node has lost its data.
    pub(crate) fn forget(&mut self, node: usize) {
        self.0.retain(|&(other, _), _| other != node);
    }

    /// A node has older data.
    pub(crate) fn restore(&mut self, node: usize, key: &[u8], content: Content) {
        self.0.insert((node, key.to_vec()), content);
    }
}

/// Whether these are the text or the hash of the script for read-write locks.
pub(crate) fn is_script(text: &[u8]) -> bool {
    is_of(text, &kinds::read_write::SCRIPT)
}

/// Whether these are the text or the hash of this script.
pub(crate) fn is_of(text: &[u8], script: &Script) -> bool {
    [script.text, script.sha1]
        .map(str::as_bytes)
        .contains(&text)
}

/// What a command of a read-write lock does. A raise is an extension to a number.
pub(crate) fn action(deed: &[u8], words: &[&[u8]]) -> Action {
    match deed {
        b"acquire" | b"take" => Action::Set,
        b"extend" if words.len() > RAISE => Action::Raise,
        b"extend" => Action::Extend,
        _ => Action::Release,
    }
}

/// What it asks for, if it asks to hold the lock: "r" or "w".
fn access<'c>(words: &[&'c [u8]]) -> &'c [u8] {
    let place = if words.get(4) == Some(&&b"take"[..]) {
        11
    } else {
        7
    };
    words.get(place).copied().unwrap_or_default()
}

/// What a command of a read-write lock and its reply are an example of.
pub(crate) fn sight(words: &[&[u8]], reply: &[u8]) -> Option<&'static str> {
    let [b"EVAL" | b"EVALSHA", text, _, _, deed, ..] = words else {
        return None;
    };
    let to_read = access(words) == b"r";
    let asks = *deed == b"acquire" || Request::of(words).is_some_and(|request| request.grants);
    is_script(text).then_some(match (*deed, reply) {
        (_, [b'-', ..]) => "a read-write lock's script that is answered with an error",
        _ if asks && judge::is_granted(reply) => match reply {
            [b'$', ..] => "a number of a writer that is given",
            _ if to_read => "a read lock that is granted",
            _ => "a write lock that is granted",
        },
        _ if asks && to_read => "a read lock that is refused",
        _ if asks => "a write lock that is refused",
        (b"extend", b":1\r\n") if words.len() > RAISE => "a number of a writer that is raised",
        (b"extend", _) if words.len() > RAISE => "a number of a writer that is not raised",
        (b"extend", b":1\r\n") if to_read => "a read lock that is extended",
        (b"extend", b":1\r\n") => "a write lock that is extended",
        (b"extend", b":-1\r\n") => "an extension of a read-write lock that is refused",
        (b"extend", _) => "an extension of an entry that is gone",
        (b"release", _) => "a release of a read-write lock",
        _ => "an entry of a read-write lock that is stored or removed",
    })
}

impl World {
    /// The clock of a node is set: a key that had ended, and was not deleted yet, exists again if
    /// it is set back.
    pub(crate) fn read_entries_again(&mut self, node: usize) {
        for ((_, key), before) in self
            .judge
            .entries
            .0
            .iter_mut()
            .filter(|((other, _), _)| *other == node)
        {
            if before.entries.is_empty() {
                *before = self.nodes[node].content(key, self.now);
            }
        }
    }

    /// A node has run a command for the key of a read-write lock, of this attempt.
    pub(crate) fn check_entries(
        &mut self,
        command: &Command<'_>,
        (key, own): (&[u8], usize),
        (action, is_granted): (Action, bool),
    ) {
        let after = self.nodes[command.node].content(key, self.now);
        let before = self
            .judge
            .entries
            .0
            .insert((command.node, key.to_vec()), after.clone())
            .unwrap_or_default();
        let mut others = before
            .live(command.millis)
            .filter(|entry| entry.attempt != own);
        let changed = others.find(|entry| after.entry(entry.attempt) != Some(entry));
        let was_own = before
            .live(command.millis)
            .find(|entry| entry.attempt == own);
        let asks_to_write = access(command.words) == b"w";
        let is_writer = |entry: &Entry| entry.access == Access::Write;
        let node = command.node;
        // What a clock that was set back has left to live longer may stay.
        let ends = |content: &Content| content.entry(own).and_then(|entry| entry.until);
        let limit = Some(command.millis + self.judge.longest_ttl);
        let entry = ends(&after);
        let entry_before = ends(&before);
        if entry > limit.max(entry_before) {
            let text = format!("on node {node} an entry would live until {entry:?}");
            self.violate("bounded key", text);
        }
        self.check_number(command, key, (&before, &after));
        let wrong = match (changed, was_own, after.entry(own)) {
            (Some(other), ..) => format!("changed that of attempt {}", other.attempt),
            (None, Some(before), Some(after)) if !is_writer(before) && is_writer(after) => {
                "made a reader a writer".to_owned()
            }
            (None, None, Some(after))
                if action == Action::Extend && after.until >= Some(command.millis) =>
            {
                "set again what had ended".to_owned()
            }
            (_, _, Some(after))
                if is_granted && action != Action::Release && is_writer(after) != asks_to_write =>
            {
                "is not what it asked for".to_owned()
            }
            _ => return,
        };
        self.violate(
            "own entry",
            format!("on node {node} a command of attempt {own} {wrong}: {action:?}"),
        );
    }

    fn check_number(
        &mut self,
        command: &Command<'_>,
        key: &[u8],
        (before, after): (&Content, &Content),
    ) {
        let Some((last, until)) = before.fence.filter(|&(_, until)| until >= command.millis) else {
            return;
        };
        let node = command.node;
        let millis = command.millis;
        let key_ends = self.nodes[node].store.deadline(key, millis).flatten();
        let is_kept = after
            .fence
            .is_some_and(|(fence, kept)| fence >= last && kept >= until)
            && key_ends >= Some(until);
        if !is_kept {
            let then = after.fence;
            let text = format!(
                "node {node} had {last} until {until}, and has {then:?} in a key until {key_ends:?}"
            );
            self.violate("kept number", text);
        }
    }
}
