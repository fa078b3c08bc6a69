//! A plain lock, as its [script](crate::protocol::kinds::plain::SCRIPT) leaves it, written out in
//! Rust. The part about the queue is [`queue`].

use crate::embedded::calls::Calls;
use crate::embedded::queue::{self, Held, LockKind};
use crate::embedded::reply::{Answer, Failure, Reply, Reply::Integer};

struct Plain {
    is_held: bool,
}

/// Runs the script.
///
/// # Errors
/// What keeps it from an answer.
pub(super) fn run(calls: &mut Calls<'_>) -> Answer {
    run_owned(calls, |is_held| Ok(Plain { is_held }))
}

/// Runs the script of a lock whose key holds the owner's token. The kind of the lock is made when
/// it is known whether it is held, after a release has ended the hold.
///
/// # Errors
/// What keeps it from an answer.
pub(super) fn run_owned<K: LockKind>(
    calls: &mut Calls<'_>,
    kind: impl FnOnce(bool) -> Result<K, Failure>,
) -> Answer {
    let key = calls.key;
    // Another type has an owner without a name.
    let mut owner = calls
        .get(key)
        .map_or_else(|_| Some(Vec::new()), |owner| owner.map(<[u8]>::to_vec));
    let is_ours = owner.is_some() && owner.as_deref() == calls.argument(2);
    if calls.argument(1) == Some(b"release") {
        if is_ours {
            calls.del(key)?;
            owner = None;
        }
        if calls.argument(3).is_none() && (owner.is_some() || !calls.database.exists(&calls.queue))
        {
            return Ok(Integer(i64::from(is_ours)));
        }
    }
    let kind = kind(owner.is_some())?;
    let by = owner.unwrap_or_default();
    queue::run(calls, kind, Held { is_ours, by })
}

impl LockKind for Plain {
    fn fits(&mut self, _: &Calls<'_>, _: u64, rank: usize, _: Option<u64>) -> bool {
        !self.is_held && rank == 0
    }

    fn grant(&mut self, calls: &mut Calls<'_>) -> Result<Option<Reply>, Failure> {
        calls.set(calls.text(2), calls.text(3))?;
        Ok(Some(Integer(1)))
    }

    fn held_for(&self, calls: &Calls<'_>) -> i64 {
        match calls.database.remaining(calls.key) {
            _ if !self.is_held => 0,
            // A key lives through the last millisecond of its time.
            left @ 0.. => left + 1,
            left => left,
        }
    }
}
