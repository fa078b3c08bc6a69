//! The key of a fenced lock as the script [`FENCE`](crate::protocol::script::FENCE) leaves it, written out in Rust, and
//! what other scripts do with such a key.
//!
//! Step for step what the script does, in its order, so that the two can be read side by side.

use super::config::Condition;
use super::failure::ScriptFailure;
use super::keyspace::{Keyspace, Millis};
use super::reply::{NO_ARGUMENT, OUT_OF_MEMORY, READ_ONLY, ScriptValue};
use crate::protocol::script::FENCE;

/// The greatest number that a server counts exactly.
const MOST: u64 = (1 << 53) - 1;
/// A minute, in microseconds: how far before a server's clock a floor may be.
const MINUTE: u64 = 60_000_000;
/// A day, in microseconds: how far beyond the latest floor a fence may be.
const DAY: u64 = 86_400_000_000;

/// Bytes of an owner token.
const TOKEN: usize = 40;
/// Bytes of the longest label, with the space before it.
const LONGEST_LABEL: usize = 65;

/// The key of a fenced lock, as its scripts read and write it. The label begins with its space.
#[derive(Clone, Default)]
pub(super) struct FencedKey {
    pub(super) fence: u64,
    pub(super) deadline: Millis,
    pub(super) owner: Vec<u8>,
    label: Vec<u8>,
}

impl FencedKey {
    /// What stands under the key. None: no fenced lock.
    pub(super) fn read(database: &Keyspace, key: &[u8], now: Millis) -> Option<FencedKey> {
        database.value(key, now).map_or_else(|| Some(FencedKey::default()), FencedKey::parse)
    }

    /// The value that was written so, if there is one.
    fn parse(bytes: &[u8]) -> Option<FencedKey> {
        let mut fields = bytes.splitn(3, |&byte| byte == b' ');
        let fence = number(fields.next()?).filter(|fence| *fence > 0)?;
        let deadline = number(fields.next()?)?;
        let rest = fields.next()?;
        let (owner, label) = rest.split_at(rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len()));
        let is_token = owner.len() == TOKEN && owner.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_label = (2..=LONGEST_LABEL).contains(&label.len()) && label[1..].iter().all(u8::is_ascii_graphic);
        let is_valid = (owner.is_empty() || is_token) && (label.is_empty() || is_label);
        is_valid.then(|| FencedKey { fence, deadline, owner: owner.to_vec(), label: label.to_vec() })
    }

    /// Whether the owner is the one of this signature: a token, and perhaps a label.
    pub(super) fn is_of(&self, signature: &[u8]) -> bool {
        self.owner == signature[..signature.len().min(TOKEN)]
    }

    /// For how long it is held, and zero if it is free.
    pub(super) fn left(&self, now: Millis) -> Millis {
        if self.owner.is_empty() { 0 } else { (self.deadline + 1).saturating_sub(now) }
    }

    /// Gives the key to the owner of this signature, with a new fence that is no less than this one, if no clock says
    /// that it is too far ahead.
    pub(super) fn acquire(
        mut self,
        storing: Storing<'_>,
        signature: &[u8],
        ttl: Millis,
        least: u64,
    ) -> Result<ScriptValue, ScriptFailure> {
        self.fence = (self.fence + 1).max(least.min(latest_floor(storing.now)));
        if is_ahead(self.fence, storing.now) {
            return Ok(ScriptValue::Integer(-3));
        }
        let (token, label) = signature.split_at(signature.len().min(TOKEN));
        (self.deadline, self.owner, self.label) = (storing.now + ttl, token.to_vec(), label.to_vec());
        self.store(storing).map(|()| ScriptValue::Fence(self.fence))
    }

    /// Frees the key.
    pub(super) fn release(mut self, storing: Storing<'_>) -> Result<(), ScriptFailure> {
        (self.deadline, self.owner) = (0, Vec::new());
        self.rewrite(storing)
    }

    /// Stores what a key that is held holds now.
    fn rewrite(&self, storing: Storing<'_>) -> Result<(), ScriptFailure> {
        // It writes something first that needs no memory.
        let condition =
            if storing.condition == Condition::OutOfMemory { Condition::Serving } else { storing.condition };
        self.store(Storing { condition, ..storing })
    }

    fn store(&self, storing: Storing<'_>) -> Result<(), ScriptFailure> {
        let Storing { database, key, retention, script, condition, now } = storing;
        let refusal = match condition {
            Condition::OutOfMemory => Some(OUT_OF_MEMORY),
            Condition::Replica => Some(READ_ONLY),
            Condition::Loading | Condition::Serving => None,
        };
        if let Some(error) = refusal {
            return Err(ScriptFailure::of_call(error, script, "redis.pcall('SET', KEYS[1]"));
        }
        let lasts = number(retention).filter(|time| *time > 0).and_then(|time| now.checked_add(time));
        let mut value = format!("{} {} ", self.fence, self.deadline).into_bytes();
        value.extend_from_slice(&self.owner);
        value.extend_from_slice(&self.label);
        database.set(key, &value, Some(lasts.ok_or(NO_ARGUMENT)?), now);
        Ok(())
    }
}

/// What it takes to store a key: for how long from now on, in which script, and what keeps the node from it.
pub(super) struct Storing<'s> {
    pub(super) database: &'s mut Keyspace,
    pub(super) key: &'s [u8],
    pub(super) retention: &'s [u8],
    pub(super) script: &'static str,
    pub(super) condition: Condition,
    pub(super) now: Millis,
}

/// The latest floor that counts.
pub(super) fn latest_floor(now: Millis) -> u64 {
    now * 1000 + MINUTE
}

/// Whether a fence is too far ahead of the clock to be given out.
pub(super) fn is_ahead(fence: u64, now: Millis) -> bool {
    fence > (latest_floor(now) + DAY).min(MOST)
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
    let [what, signature, retention, rest @ ..] = values else { return Err(NO_ARGUMENT.into()) };
    let Some(mut stored) = FencedKey::read(database, key, now) else { return Ok(ScriptValue::Integer(-2)) };
    let argument = |index: usize| rest.get(index).and_then(|text| number(text)).ok_or(NO_ARGUMENT);
    let is_ours = stored.is_of(signature);
    let storing = Storing { database, key, retention, script: FENCE, condition, now };
    match *what {
        b"release" | b"raise" if !is_ours => {
            return Ok(ScriptValue::Integer(if stored.owner.is_empty() { 0 } else { -1 }));
        }
        b"release" => return stored.release(storing).map(|()| ScriptValue::Integer(1)),
        b"raise" => {
            stored.fence = stored.fence.max(argument(0)?);
            if is_ahead(stored.fence, now) {
                return Ok(ScriptValue::Integer(-3));
            }
        }
        _ => {
            let left = stored.left(now);
            let is_acquire = *what == b"acquire";
            if left > 0 && !is_ours {
                let left = i64::try_from(left - 1).unwrap_or(i64::MAX - 4);
                return Ok(ScriptValue::Integer(if is_acquire { -4 - left } else { -1 }));
            }
            match (is_acquire, left) {
                (true, 0) => return stored.acquire(storing, signature, argument(0)?, argument(1)?),
                (true, _) => return Ok(ScriptValue::Fence(stored.fence)),
                (false, 0) => return Ok(ScriptValue::Integer(0)),
                (false, _) => stored.deadline = now + argument(0)?,
            }
        }
    }
    stored.rewrite(storing).map(|()| ScriptValue::Integer(1))
}

/// A number that counts exactly, written without leading zeros.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    let is_canonical = matches!(text, [b'1'..=b'9', ..] | b"0") && text.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(text).ok().filter(|_| is_canonical)?.parse().ok()?;
    (number <= MOST).then_some(number)
}
