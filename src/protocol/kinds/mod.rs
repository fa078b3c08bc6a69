//! The kinds of locks on the wire. Each has one file, with its keys, its script, what it is asked and replies, and what
//! is stored under its key. What they have in common is in [`queue`](super::queue).

pub mod fenced;
pub mod number;
pub mod permit;
pub mod plain;
pub mod read_write;
pub(super) mod wire;

use crate::algorithm::kind::Kind;
use wire::Wire;

/// What is particular to a kind.
pub(super) fn wire(kind: Kind) -> &'static Wire {
    match kind {
        Kind::Fenced(_) => &fenced::WIRE,
        Kind::Permit(_) => &permit::WIRE,
        Kind::Plain => &plain::WIRE,
        Kind::Read | Kind::Write(_) => &read_write::WIRE,
    }
}
