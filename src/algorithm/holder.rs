//! Which holder has a lock that another client wants: the value of the key shows it.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

/// Distinguishes one holder of a lock from the next one, whichever library it uses. A hash of the
/// key's value: the value itself would be enough to release the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HolderTag(u64);

impl HolderTag {
    /// The holder with this value.
    pub fn of(value: &[u8]) -> HolderTag {
        let mut hasher = DefaultHasher::new();
        hasher.write(value);
        HolderTag(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_distinguished_and_not_shown() {
        let token = "a7".repeat(20);
        let [first, second, labelled] = ["0123456789", &token, &format!("{token} host7")]
            .map(|value| HolderTag::of(value.as_bytes()));
        assert!(first != second && second != labelled);
        assert_eq!(first, HolderTag::of(b"0123456789"));
        assert!(!format!("{first:?}").contains("0123456789"));
    }
}
