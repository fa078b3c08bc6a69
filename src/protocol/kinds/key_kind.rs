//! What is particular to the keys of one kind of lock, as data: each kind has one [`KeyKind`], and
//! parses what is stored under its keys to one [`StoredLock`].

use crate::algorithm::label::HolderLabel;
use crate::protocol::script::Script;

/// The keys of one kind of lock.
pub struct KeyKind {
    /// What is in front of prefix and name.
    pub marker: &'static str,
    /// What messages call such a lock.
    pub title: &'static str,
    /// The same in a word, for a table.
    pub word: &'static str,
    /// The script that releases it.
    pub script: Script,
    /// Parses a value. None: no lock of this kind has it.
    pub parse: fn(&[u8]) -> Option<StoredLock>,
    /// Commands that a user needs for this kind, and not for a plain lock, as `quorumlock doctor`
    /// tries them. Words in capitals are replaced, such as KEY.
    pub trial: &'static [&'static str],
}

/// What is stored under the key of a lock.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredLock {
    /// Those that have it.
    pub holds: Vec<Hold>,
    /// The label of the holder.
    pub label: HolderLabel,
    /// Whether they are readers.
    pub is_read: bool,
    /// The last number that a holder was given; 0 if there is none.
    pub fence: u64,
    /// Until when the number counts, in milliseconds of the node's clock.
    pub kept: u64,
}

/// One of those that have a lock.
#[derive(Clone, PartialEq, Eq)]
pub struct Hold {
    /// Until when, in milliseconds of the node's clock, or [`Hold::KEY_END`].
    pub deadline: u64,
    /// What releases it: 40 digits, and the label in the key of a lock with one holder.
    pub signature: Vec<u8>,
}

impl KeyKind {
    /// The key of a lock of this kind.
    pub fn key(&self, prefix: &str, name: &str) -> String {
        [self.marker, prefix, name].concat()
    }
}

impl Hold {
    /// As long as the key.
    pub const KEY_END: u64 = u64::MAX;
}

impl PartialEq for KeyKind {
    fn eq(&self, other: &KeyKind) -> bool {
        self.marker == other.marker
    }
}
