//! The counters of one client: which class a key belongs to.

use super::classes::ClassId;
use super::counters::Counters;
use crate::protocol::fenced;

/// Counts for one client. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Meter {
    pub(crate) counters: Counters,
    /// Length of the prefix of keys.
    pub(crate) prefix: usize,
}

impl Meter {
    /// The class of the resource of a key. Calls a function of the program, so no mutex may be held.
    pub(crate) fn class_of(&self, key: &str) -> ClassId {
        self.counters.class_of(fenced::resource(&key[self.prefix..]))
    }
}
