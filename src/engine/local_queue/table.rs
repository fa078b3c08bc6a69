//! What the threads of a client share by a key.

use std::collections::HashMap;
use std::sync::Arc;

/// No table is swept while it has no more values than these.
const LEAST_SWEPT: usize = 32;

/// One value for each key that is in use, and those of some that were a short time ago.
pub(super) struct KeyTable<V> {
    values: HashMap<Arc<str>, Arc<V>>,
    /// How many values to have before those are removed that nothing but the table has.
    most: usize,
}

impl<V> Default for KeyTable<V> {
    fn default() -> KeyTable<V> {
        KeyTable { values: HashMap::new(), most: LEAST_SWEPT }
    }
}

impl<V> KeyTable<V> {
    /// The value of a key, made if there is none.
    pub(super) fn get_or_insert(&mut self, key: &Arc<str>, make: impl FnOnce() -> V) -> Arc<V> {
        if let Some(value) = self.values.get(key) {
            return Arc::clone(value);
        }
        if self.values.len() >= self.most {
            self.values.retain(|_, value| Arc::strong_count(value) > 1);
            // Twice as many as are left, so that an insertion looks at two values on average.
            self.most = (self.values.len() * 2).max(LEAST_SWEPT);
        }
        let value = Arc::new(make());
        self.values.insert(Arc::clone(key), Arc::clone(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_in_use_keeps_its_value_and_the_others_are_swept() {
        let mut table = KeyTable::default();
        let kept = table.get_or_insert(&"kept".into(), || 0);
        for number in 1..10 * LEAST_SWEPT {
            let _ = table.get_or_insert(&number.to_string().into(), || number);
            assert!(table.values.len() <= LEAST_SWEPT);
        }
        assert!(Arc::ptr_eq(&kept, &table.get_or_insert(&"kept".into(), || 1)));
    }
}
