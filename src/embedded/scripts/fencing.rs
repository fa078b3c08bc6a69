//! A fenced lock, as its [script](crate::protocol::kinds::fenced::SCRIPT) leaves it, written out in
//! Rust. Its value is [`FencedValue`], the part about the queue [`queue`].
//!
//! Step for step what the script does, in its order, so that the two can be read side by side.

use crate::embedded::calls::Calls;
use crate::embedded::numbers::{is_ahead, latest_floor, signed};
use crate::embedded::queue::{self, Held, LockKind};
use crate::embedded::reply::{Answer, Failure, Reply, Reply::Integer};
use crate::protocol::kinds::fenced::FencedValue;
use crate::protocol::kinds::plain::Signature;

struct Fenced {
    stored: FencedValue,
    /// Whether the value could be read.
    is_valid: bool,
    /// For how long it is held.
    left: u64,
}

/// Runs the script.
///
/// # Errors
/// What keeps it from an answer.
pub(super) fn run(calls: &mut Calls<'_>) -> Answer {
    let stored = calls.stored(FencedValue::parse);
    let is_valid = stored.is_some();
    let mut stored = stored.unwrap_or_default();
    let verb = calls.text(1);
    let ours = is_valid
        && verb != b"leave"
        && stored.owner.token == Signature::of_request(calls.text(2)).token;
    if verb == b"release" {
        if ours {
            stored.deadline = 0;
            stored.owner.token = Vec::new();
            calls.set_again(&stored.text(), calls.text(5))?;
        }
        if calls.text(3).is_empty() && !calls.database.exists(&calls.queue) {
            return Ok(Integer(i64::from(ours)));
        }
    } else if !is_valid && verb != b"leave" {
        return Ok(Integer(-2));
    }
    let left = stored.left(calls.now);
    match verb {
        b"acquire" if left == 0 => return acquire(&mut stored, calls, 4),
        b"acquire" => {
            return Ok(if ours {
                Reply::fence(stored.fence)
            } else {
                Integer(-3 - signed(left))
            });
        }
        b"raise" | b"extend" => return renew(calls, stored, left, ours),
        _ => {}
    }
    let is_ours = ours && (verb == b"release" || left > 0);
    let by = if left > 0 {
        stored.owner.token.clone()
    } else {
        Vec::new()
    };
    queue::run(
        calls,
        Fenced {
            stored,
            is_valid,
            left,
        },
        Held { is_ours, by },
    )
}

/// Grants the key to the caller, with a new fence that is no less than this one, if no clock shows
/// that it is too far ahead. `ARGV[retention]` is for how long the key is kept, and the one after
/// it the least fence.
fn acquire(stored: &mut FencedValue, calls: &mut Calls<'_>, retention: usize) -> Answer {
    let ttl = calls.number(3)?;
    let least = calls.number(retention + 1)?;
    let clock = calls.clock();
    stored.fence = stored
        .fence
        .saturating_add(1)
        .max(least.min(latest_floor(clock)));
    if is_ahead(stored.fence, clock) {
        return Ok(Integer(-3));
    }
    stored.deadline = calls.now.saturating_add(ttl);
    stored.owner = Signature::of_request(calls.text(2));
    calls.set(&stored.text(), calls.text(retention))?;
    Ok(Reply::fence(stored.fence))
}

/// The verbs of a holder: to hold the lock for longer, and to raise its fence.
fn renew(calls: &mut Calls<'_>, mut stored: FencedValue, left: u64, ours: bool) -> Answer {
    let is_raise = calls.argument(1) == Some(b"raise");
    if !ours {
        let is_held = stored.owner.is_held() && (is_raise || left > 0);
        return Ok(Integer(-i64::from(is_held)));
    }
    if is_raise {
        stored.fence = stored.fence.max(calls.number(3)?);
        if is_ahead(stored.fence, calls.clock()) {
            return Ok(Integer(-3));
        }
    } else if left == 0 {
        return Ok(Integer(0));
    } else {
        stored.deadline = calls.now.saturating_add(calls.number(3)?);
    }
    calls.set_again(&stored.text(), calls.text(4))?;
    Ok(Integer(1))
}

impl LockKind for Fenced {
    fn fits(&mut self, _: &Calls<'_>, _: u64, rank: usize, _: Option<u64>) -> bool {
        self.is_valid && self.left == 0 && rank == 0
    }

    fn has_key(&self, _: &Calls<'_>) -> Reply {
        Reply::fence(self.stored.fence)
    }

    fn grant(&mut self, calls: &mut Calls<'_>) -> Result<Option<Reply>, Failure> {
        acquire(&mut self.stored, calls, 8).map(Some)
    }

    fn held_for(&self, _: &Calls<'_>) -> i64 {
        signed(self.left)
    }
}
