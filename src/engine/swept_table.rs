//! What the threads of a client share by a key, swept of what nothing but the table has.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

/// No table is swept while it has no more values than these.
const LEAST_SWEPT: usize = 32;

/// Shared values by key: those in use, and some that were a short time ago.
pub(crate) struct SweptTable<K, V> {
    values: HashMap<K, V>,
    /// How many values to have before those are removed that are not in use.
    most: usize,
}

/// A reference that a table has.
pub(crate) trait InUse {
    /// Whether anything but the table refers to the value.
    fn is_in_use(&self) -> bool;
}

impl<V> InUse for Arc<V> {
    fn is_in_use(&self) -> bool {
        Arc::strong_count(self) > 1
    }
}

impl<V> InUse for Weak<V> {
    fn is_in_use(&self) -> bool {
        self.strong_count() > 0
    }
}

impl<K, V> Default for SweptTable<K, V> {
    fn default() -> SweptTable<K, V> {
        SweptTable {
            values: HashMap::new(),
            most: LEAST_SWEPT,
        }
    }
}

impl<K: Eq + Hash, V: InUse> SweptTable<K, V> {
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.values.get(key)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&K, &V)> {
        self.values.iter()
    }

    /// Enters a value, in place of an earlier one, which it returns.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        if self.values.len() >= self.most {
            self.values.retain(|_, value| value.is_in_use());
            // Twice as many as are left, so that an insertion looks at two values on average.
            self.most = (self.values.len() * 2).max(LEAST_SWEPT);
        }
        self.values.insert(key, value)
    }
}

impl<K: Eq + Hash + Clone, V> SweptTable<K, Arc<V>> {
    /// The value of a key, made if there is none.
    pub(crate) fn get_or_insert(&mut self, key: &K, make: impl FnOnce() -> V) -> Arc<V> {
        if let Some(value) = self.get(key) {
            return Arc::clone(value);
        }
        let value = Arc::new(make());
        self.insert(key.clone(), Arc::clone(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_in_use_keeps_its_value_and_the_others_are_swept() {
        let mut table = SweptTable::<String, Arc<usize>>::default();
        let kept = table.get_or_insert(&"kept".into(), || 0);
        for number in 1..10 * LEAST_SWEPT {
            let _ = table.get_or_insert(&number.to_string(), || number);
            assert!(table.values.len() <= LEAST_SWEPT);
        }
        assert!(Arc::ptr_eq(
            &kept,
            &table.get_or_insert(&"kept".into(), || 1)
        ));
    }

    #[test]
    fn a_value_that_others_refer_to_stays_though_the_table_does_not_keep_it() {
        let mut table = SweptTable::<usize, Weak<usize>>::default();
        let kept = Arc::new(0);
        table.insert(0, Arc::downgrade(&kept));
        for number in 1..10 * LEAST_SWEPT {
            table.insert(number, Weak::new());
        }
        assert!(table.values.len() <= LEAST_SWEPT);
        assert!(table.get(&0).is_some_and(|value| value.is_in_use()));
    }
    #[test]
    fn values_that_are_not_in_use_are_kept_until_they_are_as_many_as_the_others() {
        let mut table = SweptTable::<usize, Arc<usize>>::default();
        let kept: Vec<_> = (0..LEAST_SWEPT)
            .map(|number| table.get_or_insert(&number, || number))
            .collect();
        let counts = (LEAST_SWEPT..=2 * LEAST_SWEPT).map(|number| {
            table.get_or_insert(&number, || number);
            table.values.len()
        });
        let counts: Vec<usize> = counts.collect();
        let mut expected: Vec<usize> = (LEAST_SWEPT + 1..=2 * LEAST_SWEPT).collect();
        expected.push(kept.len() + 1);
        assert_eq!(counts, expected);
    }
}
