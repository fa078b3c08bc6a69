//! The key of a lock: one, or those of a set, which nodes set, extend and delete together.
//!
//! Inside the engine, the keys of a set are one string of bytes, as a single key is: each stands behind a byte that no
//! text in UTF-8 has. So whatever keeps, copies or compares the key of a lock does the same with those of a set, and
//! only what writes commands tells them apart.

use std::fmt;
use std::sync::Arc;

/// What stands before each key of a set.
const MARK: u8 = 0xff;

/// Most keys of a set: one bit each in a [`u64`].
pub const MOST_KEYS: usize = 64;

/// The key of a lock, or the keys of a set. Cloning is cheap.
#[derive(Clone)]
pub enum LockKey {
    /// That of a lock of one resource.
    One(Arc<str>),
    /// Those of a lock of several.
    Set(Arc<KeySet>),
}

/// The keys of a set.
pub struct KeySet {
    title: Arc<str>,
    keys: Box<[Arc<str>]>,
    joined: Box<[u8]>,
}

impl LockKey {
    /// The key of this name behind a prefix. Without a prefix it takes one allocation.
    pub fn behind(prefix: &str, name: &str) -> LockKey {
        LockKey::One(if prefix.is_empty() { name.into() } else { format!("{prefix}{name}").into() })
    }

    /// The keys of these names behind a prefix, in their order and each once. A single name is a lock like any other.
    pub fn of(prefix: &str, names: impl IntoIterator<Item = impl AsRef<str>>) -> LockKey {
        let mut keys: Vec<Arc<str>> =
            names.into_iter().map(|name| format!("{prefix}{}", name.as_ref()).into()).collect();
        keys.sort_unstable();
        keys.dedup();
        if let [key] = &keys[..] {
            return LockKey::One(Arc::clone(key));
        }
        let names: Vec<&str> = keys.iter().map(|key| &key[prefix.len()..]).collect();
        let title = format!("{prefix}{}", names.join(", ")).into();
        let joined = keys.iter().flat_map(|key| [&[MARK], key.as_bytes()]).flatten().copied().collect();
        LockKey::Set(Arc::new(KeySet { title, keys: keys.into(), joined }))
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

    /// The bytes that the engine knows it by: [`count`] and [`each`] are of them.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            LockKey::One(key) => key.as_bytes(),
            LockKey::Set(set) => &set.joined,
        }
    }
}

impl PartialEq for LockKey {
    fn eq(&self, other: &LockKey) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.each()).finish()
    }
}

/// How many keys these are.
#[inline]
pub fn count(key: &[u8]) -> usize {
    if is_set(key) { key.iter().filter(|&&byte| byte == MARK).count() } else { 1 }
}

/// The keys one by one.
#[inline]
pub fn each(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    let one = Some(key).filter(|key| !is_set(key));
    let several = is_set(key).then(|| key[1..].split(|&byte| byte == MARK));
    one.into_iter().chain(several.into_iter().flatten())
}

#[inline]
fn is_set(key: &[u8]) -> bool {
    key.first() == Some(&MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_merged() {
        let key = LockKey::of("app:", ["b", "a", "b"]);
        assert_eq!(key.each().iter().map(|key| &**key).collect::<Vec<_>>(), ["app:a", "app:b"]);
        assert_eq!(&**key.title(), "app:a, b");
        assert_eq!(count(key.as_bytes()), 2);
        assert_eq!(each(key.as_bytes()).collect::<Vec<_>>(), [b"app:a", b"app:b"]);
        assert_eq!(key.as_bytes(), LockKey::of("app:", ["a", "b"]).as_bytes());
    }

    #[test]
    fn one_name_is_a_lock_like_any_other() {
        for key in [LockKey::of("app:", ["a", "a"]), LockKey::behind("app:", "a"), LockKey::behind("", "app:a")] {
            assert!(matches!(&key, LockKey::One(_)));
            assert_eq!((&**key.title(), key.as_bytes(), count(key.as_bytes())), ("app:a", b"app:a".as_slice(), 1));
            assert_eq!(each(key.as_bytes()).collect::<Vec<_>>(), [b"app:a"]);
        }
        assert_eq!(std::mem::size_of::<LockKey>(), std::mem::size_of::<Arc<str>>());
    }
}
