//! The names of keys.
//!
//! ```text
//!    plain lock        prefix name
//!    fenced lock       quorumlock-fence: prefix name
//!    read-write lock   quorumlock-rw: prefix name
//!    slot of permits   prefix name # number
//!    queue             quorumlock-queue: and the key of the lock; for permits, the key that names the semaphore:
//!    semaphore         quorumlock-permits: prefix name
//!    node              quorumlock-node: prefix
//! ```
//!
//! A marker is in front of prefix and name, so one full name (prefix and name) is one lock of its
//! kind, for any split of the two. No full name begins with a marker: so no key has two meanings.

use super::kinds::key_kind::KeyKind;
use super::kinds::{KEYS, permit, plain};
use crate::algorithm::digits;

/// The marker of queues. The key of a lock, or of a semaphore, follows.
pub const QUEUE: &str = "quorumlock-queue:";
/// The marker of what nodes remember of themselves.
pub const NODE: &str = "quorumlock-node";
/// One pattern for all that have a marker of a lock, or of a queue, in front of names that begin as
/// given.
pub const PATTERN: &str = "quorumlock-*:";

/// The kind and the full name of the lock with this key; none for a key that is no lock.
pub fn lock(key: &str) -> Option<(&'static KeyKind, &str)> {
    let found = marked().find_map(|kind| Some((kind, key.strip_prefix(kind.marker)?)));
    found.or_else(|| reserved(key).is_none().then_some((&plain::KEYS, key)))
}

/// Whether a lock with this key is a plain one, or a slot of a semaphore.
pub fn is_plain(key: &str) -> bool {
    lock(key).is_some_and(|(kind, _)| *kind == plain::KEYS)
}

/// The kinds of keys that have a marker.
fn marked() -> impl Iterator<Item = &'static KeyKind> {
    KEYS.into_iter().filter(|kind| !kind.marker.is_empty())
}

/// The key of the queue of the lock, or of the semaphore, with this key.
pub fn queue(key: &str) -> String {
    [QUEUE, key].concat()
}

/// The key that names a semaphore of this full name. Nothing is stored under it: it is in the key
/// of the queue.
pub fn semaphore(full_name: &str) -> String {
    [permit::MARKER, full_name].concat()
}

/// The key of what a node remembers of itself, for the programs with this prefix.
pub fn node(prefix: &str) -> String {
    [NODE, ":", prefix].concat()
}

/// The full name of the semaphore in the key of one of its slots; none for a key of another form.
pub fn semaphore_of_slot(key: &str) -> Option<&str> {
    key.get(..permit::slot(key.as_bytes())?.0.len())
}

/// Which slot of its semaphore has this key; none for a key of another form.
pub fn slot(key: &[u8]) -> Option<u16> {
    digits::number(permit::slot(key)?.1)?.try_into().ok()
}

/// The name in the key of a lock, behind a prefix of this length.
pub fn name(key: &str, prefix: usize) -> &str {
    let full_name = lock(key).map_or(key, |(_, full_name)| full_name);
    // A name that is refused may have a marker as its prefix.
    full_name
        .get(prefix..)
        .or_else(|| key.get(prefix..))
        .unwrap_or(key)
}

/// The marker that a full name begins with, and what has such keys; none for a name that a lock may
/// have.
pub fn reserved(full_name: &str) -> Option<(&'static str, &'static str)> {
    let others = [
        (NODE, "node"),
        (permit::MARKER, "semaphore"),
        (QUEUE, "queue"),
    ];
    let markers = marked().map(|kind| (kind.marker, kind.title)).chain(others);
    markers
        .into_iter()
        .find(|(marker, _)| full_name.starts_with(marker))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_key_of_each_kind_and_the_key_has_the_name() {
        for (prefix, given) in [
            ("", "orders/42"),
            ("orders/", "42"),
            ("o", "rders/42"),
            ("orders/42", ""),
        ] {
            for kind in KEYS {
                let key = kind.key(prefix, given);
                assert_eq!(key, kind.marker.to_owned() + "orders/42");
                assert!(lock(&key) == Some((kind, "orders/42")));
                assert_eq!(name(&key, prefix.len()), given);
                assert_eq!(queue(&key), format!("quorumlock-queue:{key}"));
            }
        }
    }

    #[test]
    fn what_is_no_lock_has_a_name_of_its_own() {
        let [semaphore, plain] = [semaphore("orders/42"), plain::KEYS.key("orders/", "42")];
        assert_eq!(
            queue(&semaphore),
            "quorumlock-queue:quorumlock-permits:orders/42"
        );
        for key in [
            queue(&plain),
            queue(&semaphore),
            semaphore,
            "quorumlock-node-1".to_owned(),
        ] {
            assert!(lock(&key).is_none() && reserved(&key).is_some(), "{key}");
        }
        assert_eq!(semaphore_of_slot("é/42#17"), Some("é/42"));
    }

    #[test]
    fn a_marker_begins_no_full_name() {
        for marker in marked()
            .map(|kind| kind.marker)
            .chain([QUEUE, permit::MARKER, NODE])
        {
            assert!(
                reserved(marker).is_some() && reserved(&format!("{marker}x")).is_some(),
                "{marker}"
            );
        }
        for free in "|orders|quorumlock|quorumlock-trial-1|app:quorumlock-rw:x".split('|') {
            assert!(reserved(free).is_none(), "{free}");
        }
        // Such names are refused, and have a text that messages show.
        let marker = KEYS[1].marker;
        assert_eq!(
            (
                name(marker, marker.len()),
                name("quorumlock-fence:x", marker.len())
            ),
            ("", "x")
        );
        assert_eq!(
            name("quorumlock-fence:é", 1),
            "quorumlock-fence:é".get(1..).unwrap()
        );
    }
}
