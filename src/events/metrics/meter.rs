//! The counters of one client: which class a key belongs to.

use super::classes::ClassId;
use super::counters::Counters;
use crate::protocol::key_space;

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
        self.counters.class_of(without_slot(key_space::name(key, self.prefix)))
    }
}

/// The name of the semaphore in that of one of its slots. A call waits for any slot, and takes one: both count in the
/// same class.
fn without_slot(name: &str) -> &str {
    key_space::semaphore_of_slot(name).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_slots_of_a_semaphore_are_in_its_class() {
        let meter = Meter { counters: Counters::by_class(|name| name), prefix: 4 };
        let class = |key| meter.class_of(key);
        assert!(class("app:jobs") == class("app:jobs#0") && class("app:jobs") == class("app:jobs#17"));
        assert!(class("app:jobs") != class("app:jobs#") && class("app:jobs") != class("app:jobs#a1"));
        assert!(class("quorumlock-rw:app:jobs") == class("app:jobs"));
    }
}
