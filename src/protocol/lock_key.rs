//! The key of a lock: one, or the keys of a set, which nodes set, extend and delete together.

use std::fmt;
use std::sync::Arc;

/// Most keys of a set: one bit each in a [`u64`].
pub const MOST_KEYS: usize = 64;

/// The key of a lock, or the keys of a set. Cloning is cheap.
#[derive(Clone)]
pub enum LockKey {
    /// The key of a lock of one resource.
    One(Arc<str>),
    /// The keys of a lock of several.
    Set(Arc<KeySet>),
}

/// The keys of a set.
pub struct KeySet {
    title: Arc<str>,
    keys: Box<[Arc<str>]>,
}

impl LockKey {
    /// The key of this name behind a prefix. Without a prefix it takes one allocation.
    pub fn behind(prefix: &str, name: &str) -> LockKey {
        LockKey::One(if prefix.is_empty() {
            name.into()
        } else {
            format!("{prefix}{name}").into()
        })
    }

    /// The keys of these names behind a prefix, in their order and each once. A single name is a
    /// lock like any other.
    pub fn of(prefix: &str, names: impl IntoIterator<Item = impl AsRef<str>>) -> LockKey {
        let mut keys: Vec<Arc<str>> = names
            .into_iter()
            .map(|name| format!("{prefix}{}", name.as_ref()).into())
            .collect();
        keys.sort_unstable();
        keys.dedup();
        if let [key] = &keys[..] {
            return LockKey::One(Arc::clone(key));
        }
        let names: Vec<&str> = keys.iter().map(|key| &key[prefix.len()..]).collect();
        let title = format!("{prefix}{}", names.join(", ")).into();
        LockKey::Set(Arc::new(KeySet {
            title,
            keys: keys.into(),
        }))
    }

    /// The keys, in order.
    pub fn each(&self) -> &[Arc<str>] {
        match self {
            LockKey::One(key) => std::slice::from_ref(key),
            LockKey::Set(set) => &set.keys,
        }
    }

    /// What messages and events call it: the key, or the prefix and the names.
    pub fn title(&self) -> &Arc<str> {
        match self {
            LockKey::One(key) => key,
            LockKey::Set(set) => &set.title,
        }
    }
}

/// Two are equal if their keys are: a title depends on the prefix.
impl PartialEq for LockKey {
    fn eq(&self, other: &LockKey) -> bool {
        self.each() == other.each()
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.each()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_merged() {
        let key = LockKey::of("app:", ["b", "a", "b"]);
        assert_eq!(
            key.each().iter().map(|key| &**key).collect::<Vec<_>>(),
            ["app:a", "app:b"]
        );
        assert_eq!(&**key.title(), "app:a, b");
        assert_eq!(
            key,
            LockKey::of("", ["app:a", "app:b"]),
            "with another title"
        );
    }

    #[test]
    fn one_name_is_a_lock_like_any_other() {
        for key in [
            LockKey::of("app:", ["a", "a"]),
            LockKey::behind("app:", "a"),
            LockKey::behind("", "app:a"),
        ] {
            assert!(matches!(&key, LockKey::One(_)));
            assert_eq!((&**key.title(), key.each().len()), ("app:a", 1));
        }
        assert_eq!(
            std::mem::size_of::<LockKey>(),
            std::mem::size_of::<Arc<str>>()
        );
    }
}
