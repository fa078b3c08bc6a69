//! The embedded node's `SET`.

use super::keyspace::{Keyspace, Millis};
use super::numbers::{integer, signed};
use super::reply::{NOT_AN_INTEGER, SYNTAX};

const BAD_EXPIRE: &str = "ERR invalid expire time in 'set' command";

/// The end of a key that is set for a number of milliseconds from now on.
///
/// # Errors
/// What a server replies to a number that it cannot use.
pub(super) fn deadline_of_set(milliseconds: &[u8], now: Millis) -> Result<Millis, &'static str> {
    let delay = integer(milliseconds).ok_or(NOT_AN_INTEGER)?;
    let deadline = signed(now).checked_add(delay).filter(|_| delay > 0);
    Ok(deadline.ok_or(BAD_EXPIRE)?.unsigned_abs())
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
