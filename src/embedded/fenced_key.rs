//! The key of a fenced lock, as `fence_key.lua` reads and writes it.

use super::calls::{Answer, Calls, Failure, ScriptValue, ScriptValue::Integer};
use super::keyspace::Millis;
use super::numbers::{TOKEN, is_ahead, is_token, latest_floor, number};

/// Bytes of the longest label, with the space before it.
const LONGEST_LABEL: usize = 65;

/// The value of the key. The label begins with its space.
#[derive(Default)]
pub(super) struct FencedKey {
    pub(super) fence: u64,
    pub(super) deadline: Millis,
    pub(super) owner: Vec<u8>,
    label: Vec<u8>,
}

impl FencedKey {
    /// What is stored under the key. None: no fenced lock.
    pub(super) fn read(calls: &Calls<'_>) -> Option<FencedKey> {
        calls.get(calls.key).ok()?.map_or_else(|| Some(FencedKey::default()), FencedKey::parse)
    }

    /// The value that was written so, if there is one.
    fn parse(bytes: &[u8]) -> Option<FencedKey> {
        let mut fields = bytes.splitn(3, |&byte| byte == b' ');
        let fence = number(fields.next()?).filter(|fence| *fence > 0)?;
        let deadline = number(fields.next()?)?;
        let rest = fields.next()?;
        let (owner, label) = rest.split_at(rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len()));
        let is_label = (2..=LONGEST_LABEL).contains(&label.len()) && label[1..].iter().all(u8::is_ascii_graphic);
        let is_valid = (owner.is_empty() || is_token(owner)) && (label.is_empty() || is_label);
        is_valid.then(|| FencedKey { fence, deadline, owner: owner.to_vec(), label: label.to_vec() })
    }

    /// For how long it is held, and zero if it is free.
    pub(super) fn left(&self, now: Millis) -> Millis {
        if self.owner.is_empty() { 0 } else { self.deadline.saturating_add(1).saturating_sub(now) }
    }

    /// Grants the key to the caller, with a new fence that is no less than this one, if no clock shows that it is too
    /// far ahead. `ARGV[retention]` is for how long the key is kept, and the one after it the fence to be had at least.
    ///
    /// # Errors
    /// An argument is no number, or the node does not write.
    pub(super) fn acquire(&mut self, calls: &mut Calls<'_>, retention: usize) -> Answer {
        let (ttl, least, clock) = (calls.number(3)?, calls.number(retention + 1)?, calls.clock());
        self.fence = self.fence.saturating_add(1).max(least.min(latest_floor(clock)));
        if is_ahead(self.fence, clock) {
            return Ok(Integer(-3));
        }
        let signature = calls.text(2);
        let (token, label) = signature.split_at(signature.len().min(TOKEN));
        self.deadline = calls.now.saturating_add(ttl);
        (self.owner, self.label) = (token.to_vec(), label.to_vec());
        calls.set(&self.written(), calls.text(retention))?;
        Ok(ScriptValue::fence(self.fence))
    }

    /// Frees the key.
    ///
    /// # Errors
    /// The node does not write.
    pub(super) fn release(&mut self, calls: &mut Calls<'_>) -> Result<(), Failure> {
        (self.deadline, self.owner) = (0, Vec::new());
        calls.set_again(&self.written(), calls.text(5))
    }

    /// The value, as it is stored.
    pub(super) fn written(&self) -> Vec<u8> {
        let mut value = format!("{} {} ", self.fence, self.deadline).into_bytes();
        value.extend_from_slice(&self.owner);
        value.extend_from_slice(&self.label);
        value
    }
}
