//! A read-write lock, as the script [`READ_WRITE`](crate::protocol::script::READ_WRITE) leaves it, written out in Rust.
//! Its key is [`ReadWriteKey`], the part about the queue [`queue`].
//!
//! Step for step what the script does, in its order, so that the two can be read side by side.

use super::calls::{Arguments, Calls};
use super::failure::ScriptFailure;
use super::keyspace::Millis;
use super::numbers::{is_ahead, latest_floor, number, signed};
use super::queue::{self, CHANNEL, CLIENT, ENTRY_SIZES, Lock, LockKind, QUEUE};
use super::read_write_key::{Hold, ReadWriteKey};
use super::reply::{NO_ARGUMENT, ScriptValue};

/// Most holds of a key.
const ROOM: usize = 64;

struct ReadWrite<'a> {
    key: &'a [u8],
    arguments: Arguments<'a>,
    stored: ReadWriteKey,
    /// The index of the caller's hold.
    own: Option<usize>,
    /// Whether the entry that the caller has or would have is a writer's.
    asks_to_write: bool,
}

/// Runs the script.
///
/// # Errors
/// What keeps it from an answer.
pub(super) fn run(calls: &mut Calls<'_>, key: &[u8], arguments: Arguments<'_>) -> Result<ScriptValue, ScriptFailure> {
    let verb = arguments.or_empty(1);
    let stored = match calls.get(key) {
        Ok(None) => Some(ReadWriteKey::default()),
        Ok(Some(value)) => ReadWriteKey::parse(value),
        Err(_) => None,
    };
    let Some(mut stored) = stored else {
        return Ok(ScriptValue::Integer(if verb == b"release" { 0 } else { -2 }));
    };
    stored.expire(calls.now);
    let is_own = |hold: &Hold| verb != b"leave" && Some(&*hold.token) == arguments.at(2);
    let own = stored.holds.iter().rposition(is_own);
    let asks_to_write = verb == b"take" && arguments.at(8) == Some(b"w");
    let mut lock = ReadWrite { key, arguments, stored, own, asks_to_write };
    match verb {
        b"acquire" => return lock.acquire(calls),
        b"extend" => return lock.extend(calls),
        _ => {}
    }
    // A reader that holds the lock asks again for another thread, as a new one.
    let ours = own.is_some() && (verb != b"take" || asks_to_write && lock.stored.is_write);
    let queue = [QUEUE, key].concat();
    if verb == b"release" {
        if let Some(own) = own {
            lock.stored.holds.remove(own);
            lock.own = None;
            lock.store(calls)?;
        }
        if arguments.or_empty(3).is_empty() && !calls.exists(&queue) {
            return Ok(ScriptValue::Integer(i64::from(ours)));
        }
    }
    let holder = lock.stored.holds.first().map(|hold| hold.token.clone()).unwrap_or_default();
    queue::run(calls, lock, Lock { key, queue: &queue, ours, holder }, arguments)
}

impl ReadWrite<'_> {
    /// The verb that takes the lock if no hold is in the way.
    fn acquire(&mut self, calls: &mut Calls<'_>) -> Result<ScriptValue, ScriptFailure> {
        let asks_to_write = self.arguments.at(4) == Some(b"w");
        match self.refused_for(asks_to_write, calls.now) {
            0 => self.hold(calls, asks_to_write, 5),
            left => Ok(ScriptValue::Integer(-3 - signed(left).min(i64::MAX - 3))),
        }
    }

    /// The verb that lets a hold last longer.
    fn extend(&mut self, calls: &mut Calls<'_>) -> Result<ScriptValue, ScriptFailure> {
        let asks_to_write = self.arguments.at(4) == Some(b"w");
        let ReadWriteKey { is_write, holds, .. } = &self.stored;
        if self.own.is_none() {
            let may_be_acquired = holds.is_empty() || !is_write && self.arguments.at(4) == Some(b"r");
            return Ok(ScriptValue::Integer(-i64::from(!may_be_acquired)));
        }
        if !is_write && asks_to_write {
            return Ok(ScriptValue::Integer(-1));
        }
        self.hold(calls, asks_to_write, 5)
    }

    /// For how long another hold keeps the caller from the lock.
    fn refused_for(&self, asks_to_write: bool, now: Millis) -> Millis {
        let ReadWriteKey { is_write, holds, .. } = &self.stored;
        let left = |end: Option<Millis>| end.map_or(0, |end| end.saturating_add(1) - now);
        let is_writer = self.own.is_some() && *is_write;
        if asks_to_write {
            return if is_writer { 0 } else { left(self.stored.ends().max()) };
        }
        match self.own {
            Some(_) => 0,
            None if *is_write => left(self.stored.ends().max()),
            None if holds.len() >= ROOM => left(self.stored.ends().min()),
            None => 0,
        }
    }

    /// Grants the lock or lets the hold last longer. `ARGV[retention]` and the one after it are those of the number.
    fn hold(&mut self, calls: &mut Calls<'_>, is_write: bool, retention: usize) -> Result<ScriptValue, ScriptFailure> {
        let (now, clock, stored) = (calls.now, calls.clock(), &mut self.stored);
        let is_extension = self.arguments.at(1) == Some(b"extend");
        let mut answer = ScriptValue::Integer(1);
        if self.arguments.at(retention).is_some() {
            let least = self.arguments.at(retention + 1);
            let floor = least.map_or(Some(0), number).ok_or(NO_ARGUMENT)?;
            if is_extension {
                stored.fence = stored.fence.max(floor);
            } else if self.own.is_none() || stored.fence == 0 {
                stored.fence = stored.fence.saturating_add(1).max(floor.min(latest_floor(clock)));
            }
            if least.is_some() && is_ahead(stored.fence, clock) {
                return Ok(ScriptValue::Integer(-3));
            }
            let kept = now.saturating_add(self.arguments.number(retention)?);
            stored.kept = if stored.fence > 0 { stored.kept.max(kept) } else { 0 };
            if !is_extension {
                answer = ScriptValue::Bulk(stored.fence.to_string().into_bytes());
            }
        }
        let deadline = now.saturating_add(self.arguments.number(3)?);
        let own = self.own.unwrap_or_else(|| {
            stored.holds.push(Hold { deadline: 0, token: self.arguments.or_empty(2).to_vec() });
            stored.holds.len() - 1
        });
        self.own = Some(own);
        stored.is_write = is_write;
        stored.holds[own].deadline = stored.holds[own].deadline.max(deadline);
        self.store(calls)?;
        Ok(answer)
    }

    /// Writes the value, or deletes the key if nothing is left of it.
    fn store(&self, calls: &mut Calls<'_>) -> Result<(), ScriptFailure> {
        let latest = self.stored.latest();
        if latest == 0 {
            return calls.del(self.key).map(|_| ());
        }
        let left = (latest.saturating_add(1) - calls.now).to_string();
        let value = self.stored.written();
        let done = calls.set(self.key, &value, left.as_bytes());
        let needs_no_memory = matches!(self.arguments.at(1), Some(b"extend" | b"release"));
        if done.is_err() && needs_no_memory && calls.pexpire(self.key, left.as_bytes()) == Ok(true) {
            return calls.set(self.key, &value, left.as_bytes());
        }
        done
    }
}

impl LockKind for ReadWrite<'_> {
    /// Whether it is a writer's.
    type Entry = bool;

    fn asked(&self) -> bool {
        self.asks_to_write
    }

    fn kind_of(&self, member: &[u8]) -> bool {
        member.get(CLIENT) == Some(&b'w')
    }

    fn fits(&mut self, _: &Calls<'_>, is_writer: bool, rank: usize, first: Option<bool>) -> bool {
        let ReadWriteKey { is_write, holds, .. } = &self.stored;
        if is_writer {
            return rank == 0 && holds.is_empty();
        }
        let is_written = *is_write && !holds.is_empty();
        first != Some(true) && !is_written && holds.len() - usize::from(self.own.is_some()) + rank < ROOM
    }

    fn blocker(&self, calls: &mut Calls<'_>, queue: &[u8], rank: usize) -> Option<bool> {
        if self.asks_to_write || rank == 0 {
            return None;
        }
        let members = calls.members(queue).unwrap_or_default();
        let members: Vec<_> = members.iter().take(rank).map(|member| member.name.clone()).collect();
        let mut in_front = self.stored.holds.len();
        for member in members {
            if !self.kind_of(&member) {
                in_front += 1;
                continue;
            }
            let (client, entry) = member.split_at(member.len().min(CLIENT));
            // The first one may have the lock, if no call holds it.
            let is_turn = in_front == 0 && self.arguments.at(6) != Some(b"n");
            let message = if is_turn { [entry, b" ", self.key].concat() } else { b".".to_vec() };
            let is_entry = ENTRY_SIZES.contains(&member.len());
            if is_entry && calls.publish([CHANNEL, client].concat(), &message) != 0 {
                return Some(true);
            }
            let _ = calls.zrem(queue, &member);
        }
        None
    }

    fn has_key(&self) -> ScriptValue {
        match self.arguments.at(9) {
            Some(_) => ScriptValue::Bulk(self.stored.fence.to_string().into_bytes()),
            None => ScriptValue::Integer(1),
        }
    }

    fn grant(&mut self, calls: &mut Calls<'_>) -> Result<Option<ScriptValue>, ScriptFailure> {
        self.hold(calls, self.asks_to_write, 9).map(Some)
    }

    fn keeps_entry(&self) -> bool {
        self.asks_to_write
    }

    fn has_one_holder(&self) -> bool {
        false
    }

    fn held_for(&self, calls: &Calls<'_>) -> i64 {
        signed(self.refused_for(self.asks_to_write, calls.now))
    }
}
