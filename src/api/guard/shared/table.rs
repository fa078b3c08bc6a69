//! Which locks are held, for guards to be found that can be shared.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

/// No table is swept for entries of locks that have gone while it has no more than these.
const LEAST_SWEPT: usize = 32;

/// The locks that are held by a name, and some that were a short time ago.
pub(crate) struct WeakTable<K, V> {
    table: HashMap<K, Weak<V>>,
    /// How many entries to have before those are removed whose guards have gone.
    most: usize,
}

impl<K, V> Default for WeakTable<K, V> {
    fn default() -> WeakTable<K, V> {
        WeakTable { table: HashMap::new(), most: 0 }
    }
}

impl<K: Eq + Hash, V> WeakTable<K, V> {
    /// The lock of this name, while it has a guard.
    pub(crate) fn find(&self, key: &K) -> Option<Arc<V>> {
        self.table.get(key).and_then(Weak::upgrade)
    }

    /// Enters a lock, in place of an earlier one.
    pub(crate) fn insert(&mut self, key: K, guard: &Arc<V>) {
        if self.table.len() >= self.most {
            self.table.retain(|_, guard| guard.strong_count() > 0);
            // Twice as many as are left, so that an insertion looks at two entries on average.
            self.most = (self.table.len() * 2).max(LEAST_SWEPT);
        }
        self.table.insert(key, Arc::downgrade(guard));
    }
}
