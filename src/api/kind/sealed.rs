//! What the library has to know of a kind, in a trait that no program can name.

use crate::algorithm::kind::Kind;
use crate::protocol::lock_key::LockKey;

/// What the library has to know of a kind.
pub trait Sealed {
    /// Whether an owner may lock it again.
    const IS_REENTRANT: bool = false;

    /// What a lock of this kind and key, as the nodes hold it, is as one of these; none if it is
    /// another lock.
    fn kind_of(kind: Kind, key: &LockKey) -> Option<Kind>;
}
