//! When a key is to end: what `PEXPIRE` does in scripts, and what `PTTL` replies.

use super::keyspace::{Keyspace, Millis};
use super::numbers::{integer, signed};
use super::reply::NOT_AN_INTEGER;

const BAD_EXPIRE: &str = "ERR invalid expire time in 'pexpire' command";

/// Does what `PEXPIRE` does; false without a key. An end that is not in the future deletes it.
///
/// # Errors
/// What a server replies to a number that it cannot use.
pub(super) fn expire(
    database: &mut Keyspace,
    key: &[u8],
    milliseconds: &[u8],
    now: Millis,
) -> Result<bool, &'static str> {
    let milliseconds = integer(milliseconds).ok_or(NOT_AN_INTEGER)?;
    let deadline = signed(now).checked_add(milliseconds).ok_or(BAD_EXPIRE)?;
    Ok(database.expire(key, deadline.max(0).unsigned_abs(), now))
}

/// What `PTTL` replies: -2 without a key, -1 for a key that has no end.
pub(super) fn remaining(database: &Keyspace, key: &[u8], now: Millis) -> i64 {
    match database.deadline(key, now) {
        None => -2,
        Some(None) => -1,
        Some(Some(deadline)) => signed(deadline.saturating_sub(now)),
    }
}
