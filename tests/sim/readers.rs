//! The rules about the keys of read-write locks: a command changes the entry of its own attempt, and no other one
//! before its end. It makes no reader a writer, and extends nothing that has ended. The last number that a writer was
//! given stays for as long as it was to be kept, and never becomes smaller; so long lasts the key.

use crate::algorithm::lock_kind::Access;
use crate::judge::{Action, Command};
use crate::keys::{Content, Entry};
use crate::plan::PLACE_LEASE;
use crate::protocol::script;
use crate::world::World;
use std::collections::BTreeMap;

/// The words of an extension. A raise has the number as one more.
const RAISE: usize = 10;

/// By node and key: what it said after the last command.
#[derive(Default)]
pub(crate) struct Entries(BTreeMap<(usize, Vec<u8>), Content>);

impl Entries {
    /// A node has lost its data.
    pub(crate) fn forget(&mut self, node: usize) {
        self.0.retain(|&(other, _), _| other != node);
    }
}

/// Whether these are the text or the hash of the script for read-write locks.
pub(crate) fn is_script(text: &[u8]) -> bool {
    text == script::READ_WRITE.as_bytes() || text == script::READ_WRITE_SHA1.as_bytes()
}

/// What a command of a read-write lock does. A raise is an extension to a number.
pub(crate) fn action(deed: &[u8], words: &[&[u8]]) -> Action {
    match deed {
        b"acquire" => Action::Set,
        b"extend" if words.len() > RAISE => Action::Raise,
        b"extend" => Action::Extend,
        _ => Action::Release,
    }
}

/// What a command of a read-write lock and its reply are an example of.
pub(crate) fn sight(words: &[&[u8]], reply: &[u8]) -> Option<&'static str> {
    let [b"EVAL" | b"EVALSHA", text, _, _, deed, _, rest @ ..] = words else { return None };
    let to_read = rest.first() == Some(&&b"r"[..]);
    is_script(text).then_some(match (*deed, reply) {
        (_, [b'-', ..]) => "a read-write lock's script that is answered with an error",
        (b"acquire", b":1\r\n") if to_read => "a read lock that is granted",
        (b"acquire", b":1\r\n") => "a write lock that is granted",
        (b"acquire", [b'$', ..]) => "a number of a writer that is given",
        (b"acquire", _) if to_read => "a read lock that is refused",
        (b"acquire", _) => "a write lock that is refused",
        (b"extend", b":1\r\n") if words.len() > RAISE => "a number of a writer that is raised",
        (b"extend", _) if words.len() > RAISE => "a number of a writer that is not raised",
        (b"extend", b":1\r\n") if to_read => "a read lock that is extended",
        (b"extend", b":1\r\n") => "a write lock that is extended",
        (b"extend", b":-1\r\n") => "an extension of a read-write lock that is refused",
        (b"extend", _) => "an extension of an entry that is gone",
        _ => "a release of a read-write lock",
    })
}

impl World {
    /// A node has run a command for the key of a read-write lock, of this attempt.
    pub(crate) fn check_entries(
        &mut self,
        command: &Command<'_>,
        (key, own): (&[u8], usize),
        (action, is_granted): (Action, bool),
    ) {
        let after = self.nodes[command.node].content(key, self.now);
        let before = self.judge.entries.0.insert((command.node, key.to_vec()), after.clone()).unwrap_or_default();
        let mut others = before.live(command.millis).filter(|entry| entry.attempt != own);
        let changed = others.find(|entry| after.entry(entry.attempt) != Some(entry));
        let was_own = before.live(command.millis).find(|entry| entry.attempt == own);
        let asks_to_write = command.words.get(6) == Some(&&b"w"[..]);
        let is_writer = |entry: &Entry| entry.access == Access::Write;
        let node = command.node;
        // What a clock that was set back has left to live longer may stay.
        let ends = |content: &Content| (content.entry(own).and_then(|entry| entry.until), content.mark);
        let limits = [self.judge.longest_ttl, PLACE_LEASE].map(|time| Some(command.millis + time));
        let ((entry, mark), (entry_before, mark_before)) = (ends(&after), ends(&before));
        if entry > limits[0].max(entry_before) || mark > limits[1].max(mark_before) {
            let text = format!("on node {node} an entry would live until {entry:?}, and a mark until {mark:?}");
            self.violate("bounded key", text);
        }
        self.check_number(command, key, (&before, &after));
        let wrong = match (changed, was_own, after.entry(own)) {
            (Some(other), ..) => format!("changed that of attempt {}", other.attempt),
            (None, Some(before), Some(after)) if !is_writer(before) && is_writer(after) => {
                "made a reader a writer".to_owned()
            }
            (None, None, Some(after)) if action == Action::Extend && after.until >= Some(command.millis) => {
                "set again what had ended".to_owned()
            }
            (_, _, Some(after)) if is_granted && action != Action::Release && is_writer(after) != asks_to_write => {
                "is not what it asked for".to_owned()
            }
            _ => return,
        };
        self.violate("own entry", format!("on node {node} a command of attempt {own} {wrong}: {action:?}"));
    }

    fn check_number(&mut self, command: &Command<'_>, key: &[u8], (before, after): (&Content, &Content)) {
        let Some((last, until)) = before.fence.filter(|&(_, until)| until >= command.millis) else { return };
        let (node, millis) = (command.node, command.millis);
        let key_ends = self.nodes[node].store.deadline(key, millis).flatten();
        let is_kept =
            after.fence.is_some_and(|(fence, kept)| fence >= last && kept >= until) && key_ends >= Some(until);
        if !is_kept {
            let then = after.fence;
            let text = format!("node {node} had {last} until {until}, and has {then:?} in a key until {key_ends:?}");
            self.violate("kept number", text);
        }
    }
}
