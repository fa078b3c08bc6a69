//! What a node remembers of itself, as the script [`STORE`](crate::protocol::node_note::STORE)
//! leaves it, written out in Rust.

use crate::embedded::calls::Calls;
use crate::embedded::reply::{Answer, Reply};

/// In microseconds.
const MOMENT: u64 = 1_000_000;

/// Runs the script.
///
/// # Errors
/// What keeps it from an answer.
pub(super) fn run(calls: &mut Calls<'_>) -> Answer {
    let found = calls.get(calls.key)?.map(<[u8]>::to_vec);
    let now = calls.clock();
    let looked = calls.number(2)?;
    let is_as_read = found.as_deref().unwrap_or_default() == calls.text(1);
    if !is_as_read || now < looked || now - looked > MOMENT {
        return Ok(found.map_or(Reply::Null, Reply::Bulk));
    }
    let clock = now.to_string();
    let time = if calls.text(4).is_empty() {
        clock.as_bytes()
    } else {
        calls.text(4)
    };
    let note = [calls.text(3), time, calls.text(5)].concat();
    calls.set_with(&note, &[])?;
    Ok(Reply::Bulk(note))
}
