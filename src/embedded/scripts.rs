//! The library's own scripts, as the embedded node runs them: known by their text, and written out in Rust.
//!
//! Another script goes here. Each does what a server does when a key or a value is missing, too.

use super::calls::{Arguments, Calls};
use super::config::Condition;
use super::failure::ScriptFailure;
use super::keyspace::{Keyspace, Millis};
use super::pubsub::Exchange;
use super::reply::{NO_ARGUMENT, ScriptValue};
use super::{fencing, permit, plain, read_write};
use crate::protocol::script::{
    EXTEND, FENCED, FENCED_SHA1, PERMIT, PERMIT_SHA1, PLAIN, PLAIN_SHA1, READ_WRITE, READ_WRITE_SHA1,
};

const UNKNOWN_SCRIPT: &str = "ERR the embedded node runs only quorumlock's own scripts";

type Script = fn(&mut Calls<'_>, &[u8], Arguments<'_>) -> Result<ScriptValue, ScriptFailure>;

/// The scripts, and what runs them.
const SCRIPTS: [(&str, Script); 5] = [
    (EXTEND, extend),
    (FENCED, fencing::run),
    (PERMIT, permit::run),
    (PLAIN, plain::run),
    (READ_WRITE, read_write::run),
];

/// Those that can be called by their hashes.
const HASHED: [(&str, &str); 4] =
    [(FENCED, FENCED_SHA1), (PERMIT, PERMIT_SHA1), (PLAIN, PLAIN_SHA1), (READ_WRITE, READ_WRITE_SHA1)];

/// Which of the scripts were run here, and can be called by their hashes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known([bool; HASHED.len()]);

impl Known {
    /// The script of this text was run.
    pub(super) fn learn(&mut self, text: &[u8]) {
        for (is_known, (script, _)) in self.0.iter_mut().zip(HASHED) {
            *is_known |= text == script.as_bytes();
        }
    }

    /// The text of the script with this hash.
    pub(super) fn text(self, hash: &[u8]) -> Option<&'static [u8]> {
        let mut known = self.0.into_iter().zip(HASHED).filter(|(is_known, _)| *is_known);
        let script = known.find(|(_, (_, sha1))| hash.eq_ignore_ascii_case(sha1.as_bytes()));
        script.map(|(_, (text, _))| text.as_bytes())
    }
}

/// Runs the script of this text. A node that may not write refuses it where it writes, and no sooner.
///
/// # Errors
/// What keeps it from an answer.
pub(super) fn run(
    text: &[u8],
    (database, exchange): (&mut Keyspace, &mut Exchange),
    keys: &[&[u8]],
    values: &[&[u8]],
    condition: Condition,
    now: Millis,
) -> Result<ScriptValue, ScriptFailure> {
    let script = SCRIPTS.into_iter().find(|(script, _)| text == script.as_bytes());
    let (script, run) = script.ok_or(UNKNOWN_SCRIPT)?;
    let key = keys.first().ok_or(NO_ARGUMENT)?;
    run(&mut Calls::of(script, database, exchange, condition, now), key, Arguments(values))
}

/// [`EXTEND`].
fn extend(calls: &mut Calls<'_>, key: &[u8], arguments: Arguments<'_>) -> Result<ScriptValue, ScriptFailure> {
    let Some(owner) = calls.get(key)? else { return Ok(ScriptValue::Integer(0)) };
    if arguments.at(1) != Some(owner) {
        return Ok(ScriptValue::Integer(-1));
    }
    let milliseconds = arguments.at(2).ok_or(NO_ARGUMENT)?;
    calls.pexpire(key, milliseconds).map(|moved| ScriptValue::Integer(i64::from(moved)))
}
