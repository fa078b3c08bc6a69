//! The library's own scripts, as the embedded node runs them: known by their text, and written out in Rust.
//!
//! Another script goes here. Each does what a server does when a key or a value is missing, too: to Lua that is `nil`,
//! which equals no string, and which no command takes for an argument.

use super::config::Condition;
use super::expire;
use super::failure::ScriptFailure;
use super::fencing;
use super::keyspace::{Keyspace, Millis};
use super::queueing;
use super::read_write;
use super::reply::{NO_ARGUMENT, READ_ONLY, ScriptValue};
use crate::protocol::script;

const UNKNOWN_SCRIPT: &str = "ERR the embedded node runs only quorumlock's own scripts";

/// Which of the scripts were run here, and can be called by their hashes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    fair: bool,
    fence: bool,
    fenced_fair: bool,
    read_write: bool,
    release: bool,
}

impl Known {
    /// The script of this text was run.
    pub(super) fn learn(&mut self, text: &[u8]) {
        self.fair |= text == script::FAIR.as_bytes();
        self.fence |= text == script::FENCE.as_bytes();
        self.fenced_fair |= text == script::FENCED_FAIR.as_bytes();
        self.read_write |= text == script::READ_WRITE.as_bytes();
        self.release |= text == script::RELEASE.as_bytes();
    }

    /// The text of the script with this hash.
    pub(super) fn text(self, hash: &[u8]) -> Option<&'static [u8]> {
        let is = |known: bool, sha1: &str| known && hash.eq_ignore_ascii_case(sha1.as_bytes());
        if is(self.release, script::RELEASE_SHA1) {
            Some(script::RELEASE.as_bytes())
        } else if is(self.fair, script::FAIR_SHA1) {
            Some(script::FAIR.as_bytes())
        } else if is(self.fenced_fair, script::FENCED_FAIR_SHA1) {
            Some(script::FENCED_FAIR.as_bytes())
        } else if is(self.read_write, script::READ_WRITE_SHA1) {
            Some(script::READ_WRITE.as_bytes())
        } else {
            is(self.fence, script::FENCE_SHA1).then_some(script::FENCE.as_bytes())
        }
    }
}

/// The channel and the message in the arguments of a script that publishes a release, if it is to publish it.
pub(super) fn hint<'v, 'w>(text: &[u8], values: &'w [&'v [u8]]) -> Option<&'w [&'v [u8]]> {
    let is_fair = [script::FAIR, script::FENCED_FAIR].iter().any(|script| text == script.as_bytes());
    let rest = if text == script::RELEASE.as_bytes() {
        values.get(1..)
    } else if is_fair {
        values.get(if values.first() == Some(&&b"take"[..]) { 6 } else { 2 }..)
    } else if text == script::FENCE.as_bytes() && values.first() == Some(&&b"release"[..]) {
        values.get(3..)
    } else if text == script::READ_WRITE.as_bytes() && values.first() == Some(&&b"release"[..]) {
        values.get(2..)
    } else {
        None
    };
    rest.filter(|rest| rest.first().is_some_and(|channel| !channel.is_empty()))
}

/// Runs the script of this text. A node that may not write refuses it where it writes, and no sooner.
///
/// # Errors
/// What keeps it from an answer.
pub(super) fn run(
    text: &[u8],
    database: &mut Keyspace,
    keys: &[&[u8]],
    values: &[&[u8]],
    condition: Condition,
    now: Millis,
) -> Result<ScriptValue, ScriptFailure> {
    if text == script::FENCE.as_bytes() {
        return fencing::run(database, keys.first().ok_or(NO_ARGUMENT)?, values, condition, now);
    }
    if text == script::READ_WRITE.as_bytes() {
        return read_write::run(database, keys.first().ok_or(NO_ARGUMENT)?, values, condition, now);
    }
    if let Some(script) = [script::FAIR, script::FENCED_FAIR].into_iter().find(|script| text == script.as_bytes()) {
        let [key, queue] = keys else { return Err(NO_ARGUMENT.into()) };
        return queueing::run(script, database, (key, queue), values, condition, now);
    }
    let run = if text == script::EXTEND.as_bytes() {
        extend
    } else if text == script::RELEASE.as_bytes() {
        release
    } else {
        return Err(UNKNOWN_SCRIPT.into());
    };
    let key = keys.first().ok_or(NO_ARGUMENT)?;
    run(database, key, values, condition == Condition::Replica, now).map(ScriptValue::Integer)
}

/// [`script::EXTEND`].
fn extend(
    database: &mut Keyspace,
    key: &[u8],
    values: &[&[u8]],
    is_replica: bool,
    now: Millis,
) -> Result<i64, ScriptFailure> {
    let Some(owner) = database.value(key, now) else { return Ok(0) };
    if values.first() != Some(&owner) {
        return Ok(-1);
    }
    let milliseconds = values.get(1).ok_or(NO_ARGUMENT)?;
    if is_replica {
        return Err(ScriptFailure::of_call(READ_ONLY, script::EXTEND, "redis.pcall('PEXPIRE'"));
    }
    Ok(i64::from(expire::expire(database, key, milliseconds, now)?))
}

/// [`script::RELEASE`].
fn release(
    database: &mut Keyspace,
    key: &[u8],
    values: &[&[u8]],
    is_replica: bool,
    now: Millis,
) -> Result<i64, ScriptFailure> {
    let Some(&token) = values.first() else { return Ok(0) };
    if database.value(key, now) != Some(token) {
        return Ok(0);
    }
    if is_replica {
        return Err(ScriptFailure::of_call(READ_ONLY, script::RELEASE, "redis.call('DEL'"));
    }
    Ok(i64::from(database.remove(key, now)))
}
