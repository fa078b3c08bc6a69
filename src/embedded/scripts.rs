//! The library's own scripts, as the embedded node runs them: known by their text, and written out in Rust.
//!
//! Another script goes here. Each does what a server does when a key or a value is missing, too: to Lua that is `nil`,
//! which equals no string, and which no command takes for an argument.

use super::deadline;
use super::keyspace::{Keyspace, Millis};
use super::reply::READ_ONLY;
use crate::proto::script;

const NO_ARGUMENT: &str = "ERR Lua redis lib command arguments must be strings or integers";
const UNKNOWN: &str = "ERR the embedded node runs only quorumlock's own scripts";

/// Runs the script of this text. A replica refuses it where it writes, and no sooner.
///
/// # Errors
/// What the server would say: the text of an error reply.
pub(super) fn run(
    text: &[u8],
    database: &mut Keyspace,
    keys: &[&[u8]],
    values: &[&[u8]],
    is_replica: bool,
    now: Millis,
) -> Result<i64, &'static str> {
    let run = if text == script::EXTEND.as_bytes() {
        extend
    } else if text == script::RELEASE.as_bytes() {
        release
    } else {
        return Err(UNKNOWN);
    };
    let key = keys.first().ok_or(NO_ARGUMENT)?;
    run(database, key, values, is_replica, now)
}

/// [`script::EXTEND`].
fn extend(
    database: &mut Keyspace,
    key: &[u8],
    values: &[&[u8]],
    is_replica: bool,
    now: Millis,
) -> Result<i64, &'static str> {
    let Some(owner) = database.value(key, now) else { return Ok(0) };
    if values.first() != Some(&owner) {
        return Ok(-1);
    }
    let milliseconds = values.get(1).ok_or(NO_ARGUMENT)?;
    if is_replica {
        return Err(READ_ONLY);
    }
    deadline::expire(database, key, milliseconds, now).map(i64::from)
}

/// [`script::RELEASE`].
fn release(
    database: &mut Keyspace,
    key: &[u8],
    values: &[&[u8]],
    is_replica: bool,
    now: Millis,
) -> Result<i64, &'static str> {
    let Some(&token) = values.first() else { return Ok(0) };
    if database.value(key, now) != Some(token) {
        return Ok(0);
    }
    if is_replica {
        return Err(READ_ONLY);
    }
    Ok(i64::from(database.remove(key, now)))
}
