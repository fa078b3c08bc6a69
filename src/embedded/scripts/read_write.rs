//! A read-write lock, as its [script](crate::protocol::kinds::read_write::SCRIPT) leaves it,
//! written out in Rust. Its value is [`ReadWriteValue`], the part about the queue [`queue`].
//!
//! Step for step what the script does, in its order, so that the two can be read side by side.

use crate::embedded::calls::Calls;
use crate::embedded::keyspace::Millis;
use crate::embedded::numbers::{is_ahead, latest_floor, signed};
use crate::embedded::queue::{self, CLIENT, Held, LockKind, WRITER, send, turn};
use crate::embedded::reply::{Answer, Failure, NO_ARGUMENT, Reply, Reply::Integer};
use crate::protocol::kinds::key_kind::Hold;
use crate::protocol::kinds::number::number;
use crate::protocol::kinds::read_write::ReadWriteValue;

/// Most holds of a key.
const ROOM: usize = 64;

struct ReadWrite {
    stored: ReadWriteValue,
    /// The index of the caller's hold.
    own: Option<usize>,
    /// Whether the caller asks to write, and its entry in the queue is a writer's.
    asks_to_write: bool,
}

/// Runs the script.
///
/// # Errors
/// What keeps it from an answer.
pub(super) fn run(calls: &mut Calls<'_>) -> Answer {
    let verb = calls.text(1);
    let Some(mut stored) = calls.stored(ReadWriteValue::parse) else {
        return Ok(Integer(if verb == b"release" { 0 } else { -2 }));
    };
    stored.expire(calls.now);
    let is_own = |hold: &Hold| verb != b"leave" && Some(&*hold.signature) == calls.argument(2);
    let own = stored.holds.iter().rposition(is_own);
    let mode = match verb {
        b"take" => calls.argument(8),
        b"acquire" | b"extend" | b"keep" => calls.argument(4),
        _ => None,
    };
    let asks_to_write = mode == Some(b"w");
    let mut lock = ReadWrite {
        stored,
        own,
        asks_to_write,
    };
    match verb {
        b"acquire" => return lock.acquire(calls),
        b"extend" | b"keep" => return lock.extend(calls),
        _ => {}
    }
    // A reader that holds the lock asks again for another thread, as a new one.
    let is_ours = own.is_some() && (verb != b"take" || asks_to_write && lock.stored.is_write);
    if verb == b"release" {
        if let Some(own) = own {
            lock.stored.holds.remove(own);
            lock.own = None;
            lock.store(calls)?;
        }
        if calls.text(3).is_empty() && !calls.database.exists(&calls.queue) {
            return Ok(Integer(i64::from(is_ours)));
        }
    }
    let by = lock
        .stored
        .holds
        .first()
        .map(|hold| hold.signature.clone())
        .unwrap_or_default();
    queue::run(calls, lock, Held { is_ours, by })
}

impl ReadWrite {
    /// The verb that takes the lock if no hold is in the way.
    fn acquire(&mut self, calls: &mut Calls<'_>) -> Answer {
        match self.refused_for(calls.now) {
            0 => self.hold(calls, 5),
            left => Ok(Integer(-3 - signed(left))),
        }
    }

    /// The verb that lets a hold last longer, or that ends it after some time.
    fn extend(&mut self, calls: &mut Calls<'_>) -> Answer {
        let ReadWriteValue {
            is_write, holds, ..
        } = &self.stored;
        if self.own.is_none() {
            let may_be_acquired = holds.is_empty() || !is_write && calls.argument(4) == Some(b"r");
            return Ok(Integer(-i64::from(!may_be_acquired)));
        }
        if !is_write && self.asks_to_write {
            return Ok(Integer(-1));
        }
        self.hold(calls, 5)
    }

    /// For how long another hold keeps the caller from the lock.
    fn refused_for(&self, now: Millis) -> Millis {
        let ReadWriteValue {
            is_write, holds, ..
        } = &self.stored;
        let left = |end: Option<Millis>| end.map_or(0, |end| end.saturating_add(1) - now);
        let is_writer = self.own.is_some() && *is_write;
        if self.asks_to_write {
            return if is_writer {
                0
            } else {
                left(self.stored.ends().max())
            };
        }
        match self.own {
            Some(_) => 0,
            None if *is_write => left(self.stored.ends().max()),
            None if holds.len() >= ROOM => left(self.stored.ends().min()),
            None => 0,
        }
    }

    /// Grants the lock or lets the hold last longer. `ARGV[retention]` and the one after it belong
    /// to the number.
    fn hold(&mut self, calls: &mut Calls<'_>, retention: usize) -> Answer {
        let now = calls.now;
        let clock = calls.clock();
        let is_write = self.asks_to_write;
        let stored = &mut self.stored;
        let (is_extension, keeps) = (
            matches!(calls.text(1), b"extend" | b"keep"),
            calls.text(1) == b"keep",
        );
        let mut answer = Integer(1);
        if calls.argument(retention).is_some() {
            let least = calls.argument(retention + 1);
            let floor = least.map_or(Some(0), number).ok_or(NO_ARGUMENT)?;
            if is_extension {
                stored.fence = stored.fence.max(floor);
            } else if self.own.is_none() || stored.fence == 0 {
                stored.fence = stored
                    .fence
                    .saturating_add(1)
                    .max(floor.min(latest_floor(clock)));
            }
            if least.is_some() && is_ahead(stored.fence, clock) {
                return Ok(Integer(-3));
            }
            let kept = now.saturating_add(calls.number(retention)?);
            stored.kept = if stored.fence > 0 {
                stored.kept.max(kept)
            } else {
                0
            };
            if !is_extension {
                answer = Reply::fence(stored.fence);
            }
        }
        let deadline = now.saturating_add(calls.number(3)?);
        let own = self.own.unwrap_or_else(|| {
            stored.holds.push(Hold {
                deadline: 0,
                signature: calls.text(2).to_vec(),
            });
            stored.holds.len() - 1
        });
        self.own = Some(own);
        stored.is_write = is_write;
        let hold = &mut stored.holds[own];
        hold.deadline = if keeps {
            deadline
        } else {
            hold.deadline.max(deadline)
        };
        self.store(calls)?;
        Ok(answer)
    }

    /// Writes the value, or deletes the key if nothing is left of it.
    fn store(&self, calls: &mut Calls<'_>) -> Result<(), Failure> {
        let latest = self.stored.latest();
        if latest == 0 {
            return calls.del(calls.key).map(|_| ());
        }
        let value = self.stored.text();
        let left = (latest.saturating_add(1) - calls.now).to_string();
        match calls.text(1) {
            b"extend" | b"keep" | b"release" => calls.set_again(&value, left.as_bytes()),
            _ => calls.set(&value, left.as_bytes()),
        }
    }
}

impl LockKind for ReadWrite {
    fn asked(&self) -> u64 {
        if self.asks_to_write { WRITER } else { 0 }
    }

    fn kind_of(&self, member: &[u8]) -> u64 {
        if member.get(CLIENT) == Some(&b'w') {
            WRITER
        } else {
            0
        }
    }

    fn fits(&mut self, _: &Calls<'_>, kind: u64, rank: usize, first: Option<u64>) -> bool {
        let ReadWriteValue {
            is_write, holds, ..
        } = &self.stored;
        if kind == WRITER {
            return rank == 0 && holds.is_empty();
        }
        let is_written = *is_write && !holds.is_empty();
        first != Some(WRITER)
            && !is_written
            && holds.len() - usize::from(self.own.is_some()) + rank < ROOM
    }

    fn blocker(&self, calls: &mut Calls<'_>, rank: usize) -> Option<u64> {
        if self.asks_to_write || rank == 0 {
            return None;
        }
        let members: Vec<_> = calls
            .members()
            .iter()
            .take(rank)
            .map(|member| member.name.clone())
            .collect();
        let mut in_front = self.stored.holds.len();
        for member in members {
            if self.kind_of(&member) != WRITER {
                in_front += 1;
                continue;
            }
            // The first one may have the lock, if no call holds it.
            let is_turn = in_front == 0 && calls.argument(6) != Some(b"n");
            let message = if is_turn {
                turn(calls, &member)
            } else {
                b".".to_vec()
            };
            if send(calls, &member, &message) {
                return Some(WRITER);
            }
            let _ = calls.zrem(&member);
        }
        None
    }

    fn has_key(&self, calls: &Calls<'_>) -> Reply {
        if calls.argument(9).is_some() {
            Reply::fence(self.stored.fence)
        } else {
            Integer(1)
        }
    }

    fn grant(&mut self, calls: &mut Calls<'_>) -> Result<Option<Reply>, Failure> {
        self.hold(calls, 9).map(Some)
    }

    fn keeps_entry(&self) -> bool {
        self.asks_to_write
    }

    fn held_for(&self, calls: &Calls<'_>) -> i64 {
        signed(self.refused_for(calls.now))
    }
}
