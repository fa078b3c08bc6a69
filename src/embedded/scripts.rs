//! The library's own scripts, as the embedded node runs them: known by their text, and written out
//! in Rust.
//!
//! Another script goes here. Each does what a server does when a key or a value is missing, too.

mod fencing;
mod node_note;
mod permit;
mod plain;
mod read_write;

use super::calls::Calls;
use super::reply::{Answer, NO_ARGUMENT, Reply::Integer};
use crate::protocol::kinds::plain::EXTEND;
use crate::protocol::{kinds, node_note as note, script};

/// The text of a script, the hash by which it can be called, and what runs it.
pub(super) type Script = (
    &'static str,
    Option<&'static str>,
    fn(&mut Calls<'_>) -> Answer,
);

const SCRIPTS: [Script; 6] = [
    (EXTEND, None, extend),
    of_kind(kinds::fenced::SCRIPT, fencing::run),
    (note::STORE, None, node_note::run),
    of_kind(kinds::permit::SCRIPT, permit::run),
    of_kind(kinds::plain::SCRIPT, plain::run),
    of_kind(kinds::read_write::SCRIPT, read_write::run),
];

const fn of_kind(script: script::Script, run: fn(&mut Calls<'_>) -> Answer) -> Script {
    (script.text, Some(script.sha1), run)
}

/// The script of this text.
pub(super) fn of_text(text: &[u8]) -> Option<Script> {
    SCRIPTS
        .into_iter()
        .find(|(script, ..)| text == script.as_bytes())
}

/// [`EXTEND`].
fn extend(calls: &mut Calls<'_>) -> Answer {
    let Some(owner) = calls.get(calls.key)? else {
        return Ok(Integer(0));
    };
    if calls.argument(1) != Some(owner) {
        return Ok(Integer(-1));
    }
    let milliseconds = calls.argument(2).ok_or(NO_ARGUMENT)?;
    calls
        .pexpire(calls.key, milliseconds)
        .map(|moved| Integer(i64::from(moved)))
}
