//! The key of a fenced lock, as `fence_key.lua` reads and writes it.

use super::calls::Calls;
use super::failure::ScriptFailure;
use super::keyspace::Millis;
use super::numbers::{is_ahead, latest_floor, number};
use super::reply::ScriptValue;

/// Bytes of an owner token.
const TOKEN: usize = 40;
/// Bytes of the longest label, with the space before it.
const LONGEST_LABEL: usize = 65;

/// The value of the key. The label begins with its space.
#[derive(Clone, Default)]
pub(super) struct FencedKey {
    pub(super) fence: u64,
    pub(super) deadline: Millis,
    pub(super) owner: Vec<u8>,
    label: Vec<u8>,
}

impl FencedKey {
    /// What is stored under the key. None: no fenced lock.
    pub(super) fn read(calls: &Calls<'_>, key: &[u8]) -> Option<FencedKey> {
        calls.get(key).ok()?.map_or_else(|| Some(FencedKey::default()), FencedKey::parse)
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

    /// For how long it is held, and zero if it is free.
    pub(super) fn left(&self, now: Millis) -> Millis {
        if self.owner.is_empty() { 0 } else { self.deadline.saturating_add(1).saturating_sub(now) }
    }

    /// The fence as scripts return it.
    pub(super) fn fence(&self) -> ScriptValue {
        ScriptValue::Bulk(self.fence.to_string().into_bytes())
    }

    /// Grants the key to the owner of this signature, with a new fence that is no less than this one, if no clock
    /// shows that it is too far ahead.
    ///
    /// # Errors
    /// The node does not write.
    pub(super) fn acquire(
        &mut self,
        calls: &mut Calls<'_>,
        key: &[u8],
        signature: &[u8],
        ttl: Millis,
        least: u64,
        retention: &[u8],
    ) -> Result<ScriptValue, ScriptFailure> {
        let clock = calls.clock();
        self.fence = self.fence.saturating_add(1).max(least.min(latest_floor(clock)));
        if is_ahead(self.fence, clock) {
            return Ok(ScriptValue::Integer(-3));
        }
        let (token, label) = signature.split_at(signature.len().min(TOKEN));
        self.deadline = calls.now.saturating_add(ttl);
        (self.owner, self.label) = (token.to_vec(), label.to_vec());
        self.store(calls, key, retention)?;
        Ok(self.fence())
    }

    /// Frees the key.
    ///
    /// # Errors
    /// The node does not write.
    pub(super) fn release(&mut self, calls: &mut Calls<'_>, key: &[u8], retention: &[u8]) -> Result<(), ScriptFailure> {
        (self.deadline, self.owner) = (0, Vec::new());
        self.rewrite(calls, key, retention)
    }

    /// Stores what a key that is held holds now, also if the memory of the node is full.
    ///
    /// # Errors
    /// The node does not write.
    pub(super) fn rewrite(&self, calls: &mut Calls<'_>, key: &[u8], retention: &[u8]) -> Result<(), ScriptFailure> {
        let stored = self.store(calls, key, retention);
        if stored.is_err() && calls.pexpire(key, retention) == Ok(true) {
            return self.store(calls, key, retention);
        }
        stored
    }

    fn store(&self, calls: &mut Calls<'_>, key: &[u8], retention: &[u8]) -> Result<(), ScriptFailure> {
        let mut value = format!("{} {} ", self.fence, self.deadline).into_bytes();
        value.extend_from_slice(&self.owner);
        value.extend_from_slice(&self.label);
        calls.set(key, &value, retention)
    }
}
