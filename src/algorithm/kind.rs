//! The kind of a lock: what is asked of a node for it.

use super::fence::FencingToken;
use super::queue::EntryKind;

/// What the client of a read-write lock asks for, or has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Together with other readers.
    Read,
    /// Alone.
    Write,
}

/// The kind of a lock, with what an attempt asks for or a holder has. A fence is the floor until it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A lock with one holder, and a number for each acquisition.
    Fenced(FencingToken),
    /// A slot of a semaphore with so many permits.
    Permit(u16),
    /// A lock with one holder.
    Plain,
    /// One of the readers of a read-write lock.
    Read,
    /// The writer of a read-write lock, which may want a number.
    Write(Option<FencingToken>),
}

impl Kind {
    /// The kind of a lock in whose queue a call has an entry of this kind. It has no number of its own.
    pub fn of_entry(entry: EntryKind) -> Kind {
        match entry {
            EntryKind::Fenced => Kind::Fenced(FencingToken::MAX),
            EntryKind::Mutex => Kind::Plain,
            EntryKind::Permit(permits) => Kind::Permit(permits),
            EntryKind::Read => Kind::Read,
            EntryKind::Write => Kind::Write(None),
        }
    }

    /// The kind of a call's entry in the queue.
    pub fn entry_kind(self) -> EntryKind {
        match self {
            Kind::Fenced(_) => EntryKind::Fenced,
            Kind::Permit(permits) => EntryKind::Permit(permits),
            Kind::Plain => EntryKind::Mutex,
            Kind::Read => EntryKind::Read,
            Kind::Write(_) => EntryKind::Write,
        }
    }

    /// The fence, or the floor.
    pub fn fence(self) -> Option<FencingToken> {
        match self {
            Kind::Write(fence) => fence,
            Kind::Fenced(fence) => Some(fence),
            Kind::Permit(_) | Kind::Plain | Kind::Read => None,
        }
    }

    /// The same, with this fence.
    #[must_use]
    pub fn with_fence(self, fence: FencingToken) -> Kind {
        match self {
            Kind::Fenced(_) => Kind::Fenced(fence),
            Kind::Write(_) => Kind::Write(Some(fence)),
            Kind::Permit(_) | Kind::Plain | Kind::Read => self,
        }
    }

    /// What it is of a read-write lock.
    pub fn access(self) -> Option<Access> {
        match self {
            Kind::Read => Some(Access::Read),
            Kind::Write(_) => Some(Access::Write),
            Kind::Fenced(_) | Kind::Permit(_) | Kind::Plain => None,
        }
    }

    /// Whether each acquisition has a number.
    pub fn is_fenced(self) -> bool {
        self.fence().is_some()
    }
}
