//! Which holder has a lock that another client wants: the value of the key shows it.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

/// Shorter values than this may be used for every holder.
const SHORTEST_TOKEN: usize = 8;

/// Distinguishes one holder of a lock from the next one, whichever library it uses. A hash of the
/// key's value: the value itself would be enough to release the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HolderTag(u64);

impl HolderTag {
    /// The holder with this value. None for a value that does not look like a token of one holder
    /// alone.
    pub fn of(value: &[u8]) -> Option<HolderTag> {
        (value.len() >= SHORTEST_TOKEN).then(|| HolderTag::exact(value))
    }

    /// The holder with this very value.
    pub fn exact(value: &[u8]) -> HolderTag {
        let mut hasher = DefaultHasher::new();
        hasher.write(value);
        HolderTag(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_distinguished_and_a_constant_word_is_none() {
        let [first, second] =
            ["0123456789", "0123456780"].map(|value| HolderTag::of(value.as_bytes()));
        assert!(first.is_some() && first != second && first == HolderTag::of(b"0123456789"));
        assert_eq!(HolderTag::of(b"locked"), None);
        let token = "a7".repeat(20);
        let [plain, labelled] =
            [token.clone(), format!("{token} host7")].map(|value| HolderTag::of(value.as_bytes()));
        assert!(plain.is_some() && labelled.is_some() && plain != labelled);
        assert!(!format!("{first:?}").contains("0123456789"));
    }
}
