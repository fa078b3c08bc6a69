//! What the library has to know of a kind, in a trait that no program can name.

use super::markers::{Any, Fenced, Plain, Read, Reentrant, Set, Slot, Write};
use crate::algorithm::fence::FencingToken;
use crate::algorithm::kind::{Access, Kind};
use crate::api::lock::Lock;
use crate::protocol::key_space;
use crate::protocol::lock_key::LockKey;

/// What the library has to know of a kind.
pub trait Sealed {
    /// The number of an acquisition, if the kind has one.
    type Number: Number;
    /// What else only a guard of this kind has.
    type Own: Own;

    /// Whether an owner may lock it again.
    const IS_REENTRANT: bool = false;

    /// What a lock of this kind and key, as the nodes hold it, is as one of these; none if it is another lock.
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
    /// Of a guard that this lock has made, which holds this key.
    fn of(lock: &Lock, key: &LockKey) -> Self;
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
}

/// Which slot of a semaphore a permit is.
#[derive(Debug)]
pub struct SlotIndex(pub(crate) usize);

impl Own for SlotIndex {
    fn of(lock: &Lock, key: &LockKey) -> SlotIndex {
        SlotIndex(lock.slot_of(key))
    }
}

/// The lock of the readers beside a writer, with the writer's settings.
pub struct ReadSide(pub(crate) Lock);

impl Own for ReadSide {
    fn of(lock: &Lock, _: &LockKey) -> ReadSide {
        ReadSide(lock.read_side())
    }
}

impl Sealed for Plain {
    type Number = ();
    type Own = ();

    fn kind_of(kind: Kind, key: &LockKey) -> Option<Kind> {
        let is_plain = matches!(kind, Kind::Plain | Kind::Permit(_)) && matches!(key, LockKey::One(_));
        is_plain.then_some(Kind::Plain)
    }
}

impl Sealed for Fenced<Plain> {
    type Number = FencingToken;
    type Own = ();

    fn kind_of(kind: Kind, _: &LockKey) -> Option<Kind> {
        matches!(kind, Kind::Fenced(_)).then_some(kind)
    }
}

impl Sealed for Read {
    type Number = ();
    type Own = ();

    fn kind_of(kind: Kind, _: &LockKey) -> Option<Kind> {
        (kind.access() == Some(Access::Read)).then_some(kind)
    }
}

impl Sealed for Write {
    type Number = ();
    type Own = ReadSide;

    fn kind_of(kind: Kind, _: &LockKey) -> Option<Kind> {
        (kind.access() == Some(Access::Write) && !kind.is_fenced()).then_some(kind)
    }
}

impl Sealed for Fenced<Write> {
    type Number = FencingToken;
    type Own = ReadSide;

    fn kind_of(kind: Kind, _: &LockKey) -> Option<Kind> {
        (kind.access() == Some(Access::Write) && kind.is_fenced()).then_some(kind)
    }
}

impl Sealed for Set {
    type Number = ();
    type Own = ();

    fn kind_of(kind: Kind, _: &LockKey) -> Option<Kind> {
        // A set of one name is a plain lock.
        (kind == Kind::Plain).then_some(kind)
    }
}

impl Sealed for Slot {
    type Number = ();
    type Own = SlotIndex;

    fn kind_of(kind: Kind, key: &LockKey) -> Option<Kind> {
        // A slot is the plain lock of its name. Without the semaphore, there are at least as many permits.
        match kind {
            Kind::Permit(_) => Some(kind),
            _ => Plain::kind_of(kind, key)
                .and_then(|_| key_space::slot(key.title()))
                .map(|slot| Kind::Permit(slot.saturating_add(1))),
        }
    }
}

impl<K: Sealed> Sealed for Reentrant<K> {
    type Number = K::Number;
    type Own = K::Own;

    const IS_REENTRANT: bool = true;

    fn kind_of(kind: Kind, key: &LockKey) -> Option<Kind> {
        K::kind_of(kind, key)
    }
}

impl Sealed for Any {
    type Number = Option<FencingToken>;
    type Own = ();

    fn kind_of(kind: Kind, _: &LockKey) -> Option<Kind> {
        Some(kind)
    }
}
