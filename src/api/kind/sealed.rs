//! What the library has to know of a kind, in a trait that no program can name.

use crate::algorithm::fence::FencingToken;
use crate::algorithm::kind::Kind;
use crate::api::lock::Lock;
use crate::protocol::lock_key::LockKey;

/// What the library has to know of a kind.
pub trait Sealed {
    /// The number of an acquisition, if the kind has one.
    type Number: Number;
    /// What else only a guard of this kind has.
    type Own: Own;

    /// Whether an owner may lock it again.
    const IS_REENTRANT: bool = false;

    /// What a lock of this kind and key, as the nodes hold it, is as one of these; none if it is
    /// another lock.
    fn kind_of(kind: Kind, key: &LockKey) -> Option<Kind>;
}

/// The number of an acquisition, or nothing.
pub trait Number: Copy + Send + Sync + 'static {
    /// None where a number is missing.
    fn of(fence: Option<FencingToken>) -> Option<Self>;

    /// The number, if there is one.
    fn fence(self) -> Option<FencingToken>;
}

/// What only a guard of some kind has.
pub trait Own: Send + Sync + 'static {
    /// For a guard that this lock has made, which holds this key.
    fn of(lock: &Lock, key: &LockKey) -> Self;

    /// The same, for a guard whose kind is known at run time only.
    fn erased(self) -> AnyOwn;
}

impl Number for () {
    fn of(_: Option<FencingToken>) -> Option<()> {
        Some(())
    }

    fn fence(self) -> Option<FencingToken> {
        None
    }
}

impl Number for FencingToken {
    fn of(fence: Option<FencingToken>) -> Option<FencingToken> {
        fence
    }

    fn fence(self) -> Option<FencingToken> {
        Some(self)
    }
}

impl Number for Option<FencingToken> {
    fn of(fence: Option<FencingToken>) -> Option<Option<FencingToken>> {
        Some(fence)
    }

    fn fence(self) -> Option<FencingToken> {
        self
    }
}

impl Own for () {
    fn of(_: &Lock, _: &LockKey) {}

    fn erased(self) -> AnyOwn {
        AnyOwn::default()
    }
}

/// Which slot of a semaphore a permit is.
#[derive(Debug)]
pub struct SlotIndex(pub(crate) usize);

impl Own for SlotIndex {
    fn of(lock: &Lock, key: &LockKey) -> SlotIndex {
        SlotIndex(lock.slot_of(key))
    }

    fn erased(self) -> AnyOwn {
        AnyOwn {
            slot: self.0,
            read_side: None,
        }
    }
}

/// The lock of the readers beside a writer, with the writer's settings.
pub struct ReadSide(pub(crate) Lock);

impl Own for ReadSide {
    fn of(lock: &Lock, _: &LockKey) -> ReadSide {
        ReadSide(lock.read_side())
    }

    fn erased(self) -> AnyOwn {
        AnyOwn {
            slot: 0,
            read_side: Some(Box::new(self)),
        }
    }
}

/// What a guard of any kind has of these.
#[derive(Default)]
#[allow(dead_code, reason = "the C interface uses it")]
pub struct AnyOwn {
    pub(crate) slot: usize,
    pub(crate) read_side: Option<Box<ReadSide>>,
}

impl Own for AnyOwn {
    fn of(lock: &Lock, key: &LockKey) -> AnyOwn {
        let side = lock.is_writer().then(|| ReadSide::of(lock, key));
        AnyOwn {
            slot: lock.slot_of(key),
            read_side: side.map(Box::new),
        }
    }

    fn erased(self) -> AnyOwn {
        self
    }
}
