//! A plain lock, as the script [`PLAIN`](crate::protocol::script::PLAIN) leaves it, written out in Rust. The part about
//! the queue is [`queue`].

use super::calls::{Arguments, Calls};
use super::failure::ScriptFailure;
use super::queue::{self, Lock, LockKind, QUEUE};
use super::reply::ScriptValue;

/// The key of a lock that holds the owner's token, after a release has ended the hold.
pub(super) struct OwnedKey {
    /// The owner; empty if the key holds another type.
    pub(super) owner: Option<Vec<u8>>,
    /// Whether it is, or was before a release, the caller.
    pub(super) ours: bool,
    /// What a release returns that has nothing to do in the queue.
    pub(super) reply: Option<ScriptValue>,
}

impl OwnedKey {
    /// Reads the key, and deletes it if the verb is a release and the caller is the owner.
    ///
    /// # Errors
    /// What keeps the script from an answer.
    pub(super) fn open(
        calls: &mut Calls<'_>,
        key: &[u8],
        queue: &[u8],
        arguments: Arguments<'_>,
    ) -> Result<OwnedKey, ScriptFailure> {
        let mut owner = calls.get(key).map_or_else(|_| Some(Vec::new()), |owner| owner.map(<[u8]>::to_vec));
        let ours = owner.is_some() && owner.as_deref() == arguments.at(2);
        let mut reply = None;
        if arguments.at(1) == Some(b"release") {
            if ours {
                calls.del(key)?;
                owner = None;
            }
            if arguments.at(3).is_none() && (owner.is_some() || !calls.exists(queue)) {
                reply = Some(ScriptValue::Integer(i64::from(ours)));
            }
        }
        Ok(OwnedKey { owner, ours, reply })
    }
}

struct Plain<'a> {
    key: &'a [u8],
    arguments: Arguments<'a>,
    is_held: bool,
}

/// Runs the script.
///
/// # Errors
/// What keeps it from an answer.
pub(super) fn run(calls: &mut Calls<'_>, key: &[u8], arguments: Arguments<'_>) -> Result<ScriptValue, ScriptFailure> {
    let queue = [QUEUE, key].concat();
    let OwnedKey { owner, ours, reply } = OwnedKey::open(calls, key, &queue, arguments)?;
    if let Some(reply) = reply {
        return Ok(reply);
    }
    let kind = Plain { key, arguments, is_held: owner.is_some() };
    let lock = Lock { key, queue: &queue, ours, holder: owner.unwrap_or_default() };
    queue::run(calls, kind, lock, arguments)
}

impl LockKind for Plain<'_> {
    type Entry = ();

    fn asked(&self) {}

    fn kind_of(&self, _: &[u8]) {}

    fn fits(&mut self, _: &Calls<'_>, (): (), rank: usize, _: Option<()>) -> bool {
        !self.is_held && rank == 0
    }

    fn grant(&mut self, calls: &mut Calls<'_>) -> Result<Option<ScriptValue>, ScriptFailure> {
        calls.set(self.key, self.arguments.or_empty(2), self.arguments.or_empty(3))?;
        Ok(Some(ScriptValue::Integer(1)))
    }

    fn held_for(&self, calls: &Calls<'_>) -> i64 {
        match calls.pttl(self.key) {
            _ if !self.is_held => 0,
            // A key lives through the last millisecond of its time.
            left @ 0.. => left + 1,
            left => left,
        }
    }
}
