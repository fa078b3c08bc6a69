//! The key of a read-write lock as the script [`READ_WRITE`](crate::protocol::script::READ_WRITE) leaves it, written
//! out in Rust.
//!
//! Step for step what the script does, in its order, so that the two can be read side by side.

use super::config::Condition;
use super::failure::ScriptFailure;
use super::fencing::{is_ahead, latest_floor, number};
use super::keyspace::{Keyspace, Millis};
use super::reply::{NO_ARGUMENT, OUT_OF_MEMORY, READ_ONLY, ScriptValue};
use crate::protocol::script::READ_WRITE;

/// Most entries of a key.
const ROOM: usize = 64;
/// Bytes of an owner token.
const TOKEN: usize = 40;

/// What a key says.
#[derive(Default)]
struct Value {
    is_write: bool,
    entries: Vec<Entry>,
    /// Until when a writer that waits keeps new readers out; 0 if none waits.
    mark: Millis,
    /// The last number that was given to a writer, and until when it is kept; 0 if there is none.
    fence: u64,
    kept: Millis,
}

struct Entry {
    deadline: Millis,
    token: Vec<u8>,
}

impl Value {
    /// The value that was written so, if there is one.
    fn read(bytes: &[u8]) -> Option<Value> {
        let mut words: Vec<&[u8]> = bytes.split(|&byte| byte == b' ').collect();
        let [mut fence, mut kept, mut mark] = [0; 3];
        if let [b"f", last, deadline, ..] = words[..] {
            (fence, kept) = (number(last).filter(|fence| *fence > 0)?, number(deadline)?);
            words.drain(..3);
        }
        if let [.., b"q", deadline] = words[..] {
            mark = number(deadline).filter(|mark| *mark > 0)?;
            words.truncate(words.len() - 2);
        }
        let entry = |deadline: &[u8], token: &[u8]| {
            let is_token = token.len() == TOKEN && token.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            is_token.then_some(Entry { deadline: number(deadline)?, token: token.to_vec() })
        };
        let (is_write, entries) = match words[..] {
            [] if mark > 0 || fence > 0 => (false, Vec::new()),
            [b"w", deadline, token] => (true, vec![entry(deadline, token)?]),
            [b"r", ref readers @ ..] if !readers.is_empty() => {
                let read = |word: &&[u8]| {
                    let at = word.iter().position(|&byte| byte == b':')?;
                    entry(&word[..at], &word[at + 1..])
                };
                (false, readers.iter().map(read).collect::<Option<_>>()?)
            }
            _ => return None,
        };
        Some(Value { is_write, entries, mark, fence, kept })
    }

    fn written(&self) -> Vec<u8> {
        let mut words = Vec::new();
        let separator = if self.is_write { ' ' } else { ':' };
        if self.fence > 0 {
            words.push(format!("f {} {}", self.fence, self.kept));
        }
        if !self.entries.is_empty() {
            words.push(if self.is_write { "w" } else { "r" }.to_owned());
        }
        for Entry { deadline, token } in &self.entries {
            words.push(format!("{deadline}{separator}{}", String::from_utf8_lossy(token)));
        }
        if self.mark > 0 {
            words.push(format!("q {}", self.mark));
        }
        words.join(" ").into_bytes()
    }

    /// The end of what lasts longest, or zero.
    fn latest(&self) -> Millis {
        let entries = self.entries.iter().map(|entry| entry.deadline);
        entries.chain([self.mark, self.kept]).max().unwrap_or(0)
    }

    /// Writes the value, or deletes the key if nothing is left of it.
    fn store(&self, database: &mut Keyspace, key: &[u8], now: Millis) {
        let latest = self.latest();
        if latest == 0 {
            database.remove(key, now);
        } else {
            database.set(key, &self.written(), Some(latest + 1), now);
        }
    }
}

/// Runs the script.
///
/// # Errors
/// What keeps it from an answer.
pub(super) fn run(
    database: &mut Keyspace,
    key: &[u8],
    values: &[&[u8]],
    condition: Condition,
    now: Millis,
) -> Result<ScriptValue, ScriptFailure> {
    let [what, token, rest @ ..] = values else { return Err(NO_ARGUMENT.into()) };
    let mut value = match database.value(key, now).map(Value::read) {
        None => Value::default(),
        Some(None) => return Ok(ScriptValue::Integer(-2)),
        Some(Some(value)) => value,
    };
    value.entries.retain(|entry| entry.deadline >= now);
    if value.entries.is_empty() {
        value.is_write = false;
    }
    if value.mark < now {
        value.mark = 0;
    }
    if value.kept < now {
        (value.fence, value.kept) = (0, 0);
    }
    let entries_before = value.entries.len();
    let own = value.entries.iter().position(|entry| entry.token == *token);
    let asks_to_write = rest.first() == Some(&&b"w"[..]);
    let argument = |index: usize| rest.get(index).and_then(|text| number(text)).ok_or(NO_ARGUMENT);
    let refusal = match condition {
        // What is not granted anew writes something first that needs no memory.
        Condition::OutOfMemory if *what == b"acquire" => Some(OUT_OF_MEMORY),
        Condition::Replica => Some(READ_ONLY),
        Condition::Loading | Condition::OutOfMemory | Condition::Serving => None,
    };
    if *what == b"acquire" {
        let ends = || value.entries.iter().map(|entry| entry.deadline);
        let (first, last) = (ends().min().unwrap_or(0), ends().max().unwrap_or(0));
        let mut refused_until = 0;
        if asks_to_write {
            if !(value.entries.is_empty() || own.is_some() && value.is_write) {
                refused_until = last;
                let mark = argument(2)?;
                if mark > 0 {
                    value.mark = value.mark.max(now + mark);
                    if refusal.is_none() {
                        value.store(database, key, now);
                    }
                }
            } else if own.is_none() {
                value.mark = 0;
            }
        } else {
            if value.is_write && own.is_none() {
                refused_until = last;
            } else if value.entries.len() >= ROOM && own.is_none() {
                refused_until = first;
            }
            refused_until = refused_until.max(value.mark);
        }
        if refused_until > 0 {
            let left = i64::try_from(refused_until - now).unwrap_or(i64::MAX - 4);
            return Ok(ScriptValue::Integer(-4 - left));
        }
    } else if own.is_none() {
        let may_be_acquired = value.entries.is_empty() || !value.is_write && !asks_to_write;
        return Ok(ScriptValue::Integer(if *what == b"release" || may_be_acquired { 0 } else { -1 }));
    } else if *what == b"extend" && !value.is_write && asks_to_write {
        return Ok(ScriptValue::Integer(-1));
    }
    if rest.len() > 4 {
        let least = argument(4)?;
        if *what == b"extend" {
            value.fence = value.fence.max(least);
        } else if own.is_none() || value.fence == 0 {
            value.fence = (value.fence + 1).max(least.min(latest_floor(now)));
        }
        if is_ahead(value.fence, now) {
            return Ok(ScriptValue::Integer(-3));
        }
    }
    if rest.len() > 3 && value.fence > 0 {
        value.kept = value.kept.max(now + argument(3)?);
    }
    match own {
        Some(own) if *what == b"release" => _ = value.entries.remove(own),
        _ => {
            value.is_write = asks_to_write;
            let deadline = now + argument(1)?;
            match own {
                Some(own) => value.entries[own].deadline = value.entries[own].deadline.max(deadline),
                None => value.entries.push(Entry { deadline, token: token.to_vec() }),
            }
        }
    }
    if let Some(error) = refusal {
        let call = if value.latest() == 0 { "redis.pcall('DEL'" } else { "redis.pcall('SET'" };
        return Err(ScriptFailure::of_call(error, READ_WRITE, call));
    }
    value.store(database, key, now);
    if *what == b"acquire" && rest.len() > 4 {
        return Ok(ScriptValue::Fence(value.fence));
    }
    let may_be_awaited = value.entries.is_empty() || entries_before >= ROOM;
    Ok(if may_be_awaited { ScriptValue::Integer(1) } else { ScriptValue::Unpublished(1) })
}
