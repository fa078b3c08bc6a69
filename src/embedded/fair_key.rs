//! The key of a fair lock, as the scripts [`FAIR`] and [`FENCED_FAIR`] read and write it before and after they look at
//! the queue.

use super::config::Condition;
use super::failure::ScriptFailure;
use super::fencing::{FencedKey, Storing, number};
use super::keyspace::{Keyspace, Millis};
use super::reply::{NO_ARGUMENT, OUT_OF_MEMORY, READ_ONLY, ScriptValue};
use crate::protocol::script::{FAIR, FENCED_FAIR};

/// What stands under the key.
pub(super) enum FairKey {
    /// That of a lock that is fenced as well. None: it is no fenced lock.
    Fenced(Option<FencedKey>),
    /// That of a plain lock, with its value, if any.
    Plain(Option<Vec<u8>>),
}

impl FairKey {
    pub(super) fn read(script: &str, database: &Keyspace, key: &[u8], now: Millis) -> FairKey {
        match script == FENCED_FAIR {
            true => FairKey::Fenced(FencedKey::read(database, key, now)),
            false => FairKey::Plain(database.value(key, now).map(<[u8]>::to_vec)),
        }
    }

    /// What a call that wants the lock is answered without a look at the queue.
    pub(super) fn answer_to_take(&self, signature: &[u8], now: Millis) -> Option<ScriptValue> {
        match self {
            FairKey::Fenced(None) => Some(ScriptValue::Integer(-2)),
            FairKey::Fenced(Some(stored)) => {
                (stored.is_of(signature) && stored.left(now) > 0).then_some(ScriptValue::Fence(stored.fence))
            }
            FairKey::Plain(_) => self.is_of(signature).then_some(ScriptValue::Unpublished(1)),
        }
    }

    /// Whether it has this token.
    pub(super) fn is_of(&self, signature: &[u8]) -> bool {
        match self {
            FairKey::Fenced(stored) => stored.as_ref().is_some_and(|stored| stored.is_of(signature)),
            FairKey::Plain(owner) => owner.as_deref() == Some(signature),
        }
    }

    pub(super) fn is_free(&self, now: Millis) -> bool {
        match self {
            FairKey::Fenced(stored) => stored.as_ref().is_some_and(|stored| stored.left(now) == 0),
            FairKey::Plain(owner) => owner.is_none(),
        }
    }

    /// For how long the lock is held, -1 without an end.
    pub(super) fn held_for(&self, (database, key): (&Keyspace, &[u8]), now: Millis) -> i64 {
        let left = match self {
            FairKey::Fenced(stored) => stored.as_ref().map_or(0, |stored| stored.left(now)),
            FairKey::Plain(_) => match database.deadline(key, now) {
                None => 0,
                Some(None) => return -1,
                Some(Some(end)) => end - now + 1,
            },
        };
        i64::try_from(left).unwrap_or(i64::MAX)
    }

    /// Gives the lock to the call with this signature, for so long. Of a lock that is fenced as well, for how long the
    /// key is kept and the least fence follow.
    pub(super) fn grant(
        &self,
        (database, key): (&mut Keyspace, &[u8]),
        (signature, ttl, of_fence): (&[u8], Millis, &[&[u8]]),
        condition: Condition,
        now: Millis,
    ) -> Result<ScriptValue, ScriptFailure> {
        let FairKey::Fenced(stored) = self else {
            let error = match condition {
                Condition::OutOfMemory => Some(OUT_OF_MEMORY),
                Condition::Replica => Some(READ_ONLY),
                Condition::Loading | Condition::Serving => None,
            };
            if let Some(error) = error {
                return Err(ScriptFailure::of_call(error, FAIR, "redis.pcall('SET', KEYS[1]"));
            }
            database.set(key, signature, Some(now + ttl), now);
            return Ok(ScriptValue::Unpublished(1));
        };
        let [retention, least] = *of_fence else { return Err(NO_ARGUMENT.into()) };
        let storing = Storing { database, key, retention, script: FENCED_FAIR, condition, now };
        stored.clone().unwrap_or_default().acquire(storing, signature, ttl, number(least).ok_or(NO_ARGUMENT)?)
    }

    /// Frees the lock. Of one that is fenced as well, for how long the key is kept is the last of these values.
    pub(super) fn release(
        &self,
        (database, key): (&mut Keyspace, &[u8]),
        values: &[&[u8]],
        condition: Condition,
        now: Millis,
    ) -> Result<(), ScriptFailure> {
        match self {
            FairKey::Fenced(stored) => {
                let retention = values.get(2).ok_or(NO_ARGUMENT)?;
                let storing = Storing { database, key, retention, script: FENCED_FAIR, condition, now };
                stored.clone().unwrap_or_default().release(storing)
            }
            FairKey::Plain(_) if condition == Condition::Replica => {
                Err(ScriptFailure::of_call(READ_ONLY, FAIR, "redis.pcall('DEL', KEYS[1]"))
            }
            FairKey::Plain(_) => {
                database.remove(key, now);
                Ok(())
            }
        }
    }
}
