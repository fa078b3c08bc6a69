//! What kind of lock a key is of, and what an attempt or a holder has of it.

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

/// The kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// One that gives numbers: its fence, or while that is not known yet, the floor.
    Fenced(FencingToken),
    /// A slot of a semaphore with so many permits.
    Permit(u16),
    /// One that is alone in its key, and has nothing besides its token.
    Plain,
    /// One of readers and writers.
    ReadWrite {
        /// What it has of it.
        access: Access,
        /// As of [`Fenced`](LockKind::Fenced), if it is a writer's and gives numbers.
        fence: Option<FencingToken>,
    },
}

impl LockKind {
    /// The fence or the floor, of a fenced lock.
    pub fn fence(self) -> Option<FencingToken> {
        match self {
            LockKind::ReadWrite { fence, .. } => fence,
            LockKind::Fenced(fence) => Some(fence),
            LockKind::Permit(_) | LockKind::Plain => None,
        }
    }

    /// The same, of a fenced lock whose fence is this.
    #[must_use]
    pub fn with_fence(self, fence: FencingToken) -> LockKind {
        match self {
            LockKind::ReadWrite { access, .. } => LockKind::ReadWrite { access, fence: Some(fence) },
            _ => LockKind::Fenced(fence),
        }
    }

    /// What it has of a read-write lock, if it is one.
    pub fn access(self) -> Option<Access> {
        if let LockKind::ReadWrite { access, .. } = self { Some(access) } else { None }
    }

    /// What a call for it has in its queue.
    pub fn entry_kind(self) -> EntryKind {
        match self {
            LockKind::Fenced(_) => EntryKind::Fenced,
            LockKind::Permit(permits) => EntryKind::Permit(permits),
            LockKind::Plain => EntryKind::Mutex,
            LockKind::ReadWrite { access: Access::Read, .. } => EntryKind::Read,
            LockKind::ReadWrite { access: Access::Write, .. } => EntryKind::Write,
        }
    }

    /// Whether it gives numbers.
    pub fn is_fenced(self) -> bool {
        self.fence().is_some()
    }
}
