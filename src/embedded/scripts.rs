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

/// Which of the scripts were run here, and can be called by their hashes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known([bool; SCRIPTS.len()]);

impl Known {
    /// The script of this text, which is known from now on.
    pub(super) fn learn(&mut self, text: &[u8]) -> Option<Script> {
        let index = SCRIPTS
            .iter()
            .position(|(script, ..)| text == script.as_bytes())?;
        self.0[index] = true;
        Some(SCRIPTS[index])
    }

    /// The script with this hash, if it is known.
    pub(super) fn find(self, hash: &[u8]) -> Option<Script> {
        let is_it = |sha1: &str| hash.eq_ignore_ascii_case(sha1.as_bytes());
        let mut scripts = SCRIPTS.into_iter().zip(self.0);
        scripts
            .find(|((_, sha1, _), is_known)| *is_known && sha1.is_some_and(is_it))
            .map(|(script, _)| script)
    }
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
