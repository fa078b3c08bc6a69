//! A fenced lock, as the script [`FENCED`](crate::protocol::script::FENCED) leaves it, written out in Rust. Its key is
//! [`FencedKey`], the part about the queue [`queue`].
//!
//! Step for step what the script does, in its order, so that the two can be read side by side.

use super::calls::{Arguments, Calls};
use super::failure::ScriptFailure;
use super::fenced_key::FencedKey;
use super::numbers::{is_ahead, signed};
use super::queue::{self, Lock, LockKind, QUEUE};
use super::reply::ScriptValue;

/// Bytes of an owner token, at the beginning of a signature.
const TOKEN: usize = 40;

struct Fenced<'a> {
    key: &'a [u8],
    arguments: Arguments<'a>,
    /// None: the value cannot be read.
    stored: Option<FencedKey>,
    /// For how long it is held.
    left: u64,
}

/// Runs the script.
///
/// # Errors
/// What keeps it from an answer.
pub(super) fn run(calls: &mut Calls<'_>, key: &[u8], arguments: Arguments<'_>) -> Result<ScriptValue, ScriptFailure> {
    let mut stored = FencedKey::read(calls, key);
    let (verb, signature) = (arguments.or_empty(1), arguments.or_empty(2));
    let queue = [QUEUE, key].concat();
    let is_owner = |stored: &FencedKey| stored.owner == signature[..signature.len().min(TOKEN)];
    let mut ours = verb != b"leave" && stored.as_ref().is_some_and(is_owner);
    match (verb, &mut stored) {
        (b"release", stored) => {
            if let Some(stored) = stored
                && ours
            {
                stored.release(calls, key, arguments.or_empty(5))?;
            }
            if arguments.or_empty(3).is_empty() && !calls.exists(&queue) {
                return Ok(ScriptValue::Integer(i64::from(ours)));
            }
        }
        (b"leave", _) => {}
        (_, None) => return Ok(ScriptValue::Integer(-2)),
        (b"acquire", Some(stored)) => return acquire(calls, key, arguments, stored, ours),
        (b"raise" | b"extend", Some(stored)) => return renew(calls, key, arguments, stored, ours),
        (_, Some(_)) => {}
    }
    let left = stored.as_ref().map_or(0, |stored| stored.left(calls.now));
    ours = ours && (verb == b"release" || left > 0);
    let holder = stored.as_ref().filter(|stored| stored.left(calls.now) > 0);
    let holder = holder.map(|stored| stored.owner.clone()).unwrap_or_default();
    let kind = Fenced { key, arguments, stored, left };
    queue::run(calls, kind, Lock { key, queue: &queue, ours, holder }, arguments)
}

/// The verb that takes the lock if it is free.
fn acquire(
    calls: &mut Calls<'_>,
    key: &[u8],
    arguments: Arguments<'_>,
    stored: &mut FencedKey,
    ours: bool,
) -> Result<ScriptValue, ScriptFailure> {
    match stored.left(calls.now) {
        0 => {
            let (ttl, least) = (arguments.number(3)?, arguments.number(5)?);
            stored.acquire(calls, key, arguments.or_empty(2), ttl, least, arguments.or_empty(4))
        }
        _ if ours => Ok(stored.fence()),
        left => Ok(ScriptValue::Integer(-3 - signed(left).min(i64::MAX - 3))),
    }
}

/// The verbs of a holder: to hold the lock for longer, and to raise its fence.
fn renew(
    calls: &mut Calls<'_>,
    key: &[u8],
    arguments: Arguments<'_>,
    stored: &mut FencedKey,
    ours: bool,
) -> Result<ScriptValue, ScriptFailure> {
    let (is_raise, left) = (arguments.at(1) == Some(b"raise"), stored.left(calls.now));
    if !ours {
        let is_held = !stored.owner.is_empty() && (is_raise || left > 0);
        return Ok(ScriptValue::Integer(-i64::from(is_held)));
    }
    if is_raise {
        stored.fence = stored.fence.max(arguments.number(3)?);
        if is_ahead(stored.fence, calls.clock()) {
            return Ok(ScriptValue::Integer(-3));
        }
    } else if left == 0 {
        return Ok(ScriptValue::Integer(0));
    } else {
        stored.deadline = calls.now.saturating_add(arguments.number(3)?);
    }
    stored.rewrite(calls, key, arguments.or_empty(4))?;
    Ok(ScriptValue::Integer(1))
}

impl LockKind for Fenced<'_> {
    type Entry = ();

    fn asked(&self) {}

    fn kind_of(&self, _: &[u8]) {}

    fn fits(&mut self, _: &Calls<'_>, (): (), rank: usize, _: Option<()>) -> bool {
        self.stored.is_some() && self.left == 0 && rank == 0
    }

    fn has_key(&self) -> ScriptValue {
        self.stored.as_ref().map_or(ScriptValue::Integer(-2), FencedKey::fence)
    }

    fn grant(&mut self, calls: &mut Calls<'_>) -> Result<Option<ScriptValue>, ScriptFailure> {
        let Some(stored) = &mut self.stored else { return Ok(None) };
        let (ttl, least) = (self.arguments.number(3)?, self.arguments.number(9)?);
        let (signature, retention) = (self.arguments.or_empty(2), self.arguments.or_empty(8));
        stored.acquire(calls, self.key, signature, ttl, least, retention).map(Some)
    }

    fn held_for(&self, _: &Calls<'_>) -> i64 {
        signed(self.left)
    }
}
