//! Which other clients were told by a release or a leave, as the reply of the script reports.

use super::resp::Reply;

/// What releases and leaves by a script have found in the queues: a bit for each key of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakes {
    /// Another client was told.
    pub told: u64,
    /// More entries may be in front whose clients are gone: it is asked again.
    pub more: u64,
    /// The user may not publish.
    pub is_denied: bool,
}

impl Wakes {
    /// Reads the reply about one key.
    pub(super) fn learn(&mut self, part: u8, reply: Reply<'_>) {
        match reply {
            Reply::Integer(2 | -2) => self.told |= 1 << part,
            Reply::Integer(3 | -3) => self.more |= 1 << part,
            Reply::Integer(4 | -4) => self.is_denied = true,
            _ => {}
        }
    }
}
