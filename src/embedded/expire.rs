//! When a key is to end: what `SET` and, in scripts, `PEXPIRE` do, and what `PTTL` replies.

use super::keyspace::{Keyspace, Millis};
use super::numbers::signed;
use super::reply::{NOT_AN_INTEGER, SYNTAX};
use crate::algorithm::digits::integer;

const BAD_SET: &str = "ERR invalid expire time in 'set' command";
const BAD_EXPIRE: &str = "ERR invalid expire time in 'pexpire' command";

/// The end of a key that is set for a number of milliseconds from now on.
///
/// # Errors
/// What a server replies to a number that it cannot use.
pub(super) fn deadline_of_set(milliseconds: &[u8], now: Millis) -> Result<Millis, &'static str> {
    let delay = integer(milliseconds).ok_or(NOT_AN_INTEGER)?;
    let deadline = signed(now).checked_add(delay).filter(|_| delay > 0);
    Ok(deadline.ok_or(BAD_SET)?.unsigned_abs())
}

/// `SET key value [NX] [PX milliseconds]`: whether the key was set.
///
/// # Errors
/// What a server replies then.
pub(super) fn set(
    database: &mut Keyspace,
    key: &[u8],
    value: &[u8],
    options: &[&[u8]],
    now: Millis,
) -> Result<bool, &'static str> {
    let (only_new, milliseconds) = match *options {
        [] => (false, None),
        [b"NX"] => (true, None),
        [b"PX", milliseconds] => (false, Some(milliseconds)),
        [b"NX", b"PX", milliseconds] => (true, Some(milliseconds)),
        _ => return Err(SYNTAX),
    };
    let deadline = milliseconds
        .map(|milliseconds| deadline_of_set(milliseconds, now))
        .transpose()?;
    let is_permitted = !only_new || !database.exists(key, now);
    if is_permitted {
        database.set(key, value, deadline, now);
    }
    Ok(is_permitted)
}

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
