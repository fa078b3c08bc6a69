//! What the library has to know of a kind, in a trait that no program can name.

use crate::algorithm::kind::Kind;
use crate::protocol::lock_key::LockKey;

/// What the library has to know of a kind.
pub trait Sealed {
    /// Whether an owner may lock it again.
    const IS_REENTRANT: bool = false;

    /// What a lock of this kind and key, as the nodes hold it, is as one of these; none if it is
    /// another lock.
    fn kind_of(kind: Kind, _key: &LockKey) -> Option<Kind> {
        Self::is(kind).then_some(kind)
    }

    /// Whether a lock that the nodes hold as this is one of these, whatever its key.
    fn is(_kind: Kind) -> bool {
        false
    }
}
