//! The kind of a lock: what is asked of a node for it, and what a call's entry in its queue waits
//! for.

use super::fence::FencingToken;

/// The kind of a lock, with what an attempt asks for or a holder has. A fence is the floor until it
/// is known.
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

/// What an entry of a queue waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A plain lock.
    Mutex,
    /// A fenced lock.
    Fenced,
    /// A read-write lock, to read.
    Read,
    /// A read-write lock, to write.
    Write,
    /// One of so many permits.
    Permit(u16),
}

impl EntryKind {
    /// Its letter in the member of a queue.
    pub fn letter(self) -> char {
        match self {
            EntryKind::Mutex => 'm',
            EntryKind::Fenced => 'f',
            EntryKind::Read => 'r',
            EntryKind::Write => 'w',
            EntryKind::Permit(_) => 's',
        }
    }

    /// The kind with this letter; the number of permits is not known.
    pub fn of_letter(letter: char) -> Option<EntryKind> {
        use EntryKind::{Fenced, Mutex, Permit, Read, Write};
        [Mutex, Fenced, Read, Write, Permit(0)]
            .into_iter()
            .find(|kind| kind.letter() == letter)
    }

    /// What the call wants, in a word for people and programs.
    pub fn wants(self) -> &'static str {
        match self {
            EntryKind::Mutex | EntryKind::Fenced => "lock",
            EntryKind::Read => "read",
            EntryKind::Write => "write",
            EntryKind::Permit(_) => "permit",
        }
    }

    /// Whether `SET NX PX` acquires the lock, by its own key alone.
    pub fn is_acquired_by_command(self) -> bool {
        self == EntryKind::Mutex
    }

    /// Whether one client at a time holds the lock, of those that wait as this one.
    pub fn has_one_holder(self) -> bool {
        matches!(self, EntryKind::Mutex | EntryKind::Fenced)
    }
}

impl Kind {
    /// The kind of a lock in whose queue a call has an entry of this kind. It has no number of its
    /// own.
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

    /// Whether a node keeps the longest time to live that it was asked for, in whichever order.
    pub fn keeps_longest(self) -> bool {
        self == Kind::Read
    }

    /// The fence, or the floor.
    pub fn fence(self) -> Option<FencingToken> {
        match self {
            Kind::Write(fence) => fence,
            Kind::Fenced(fence) => Some(fence),
            Kind::Permit(_) | Kind::Plain | Kind::Read => None,
        }
    }

    /// The fence, or the floor; zero of a lock without one.
    pub fn number(self) -> FencingToken {
        self.fence().unwrap_or(FencingToken::saturating(0))
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

    /// Whether it is one side of a read-write lock.
    pub fn is_read_write(self) -> bool {
        matches!(self, Kind::Read | Kind::Write(_))
    }

    /// Whether each acquisition has a number.
    pub fn is_fenced(self) -> bool {
        self.fence().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fenced_locks_and_writers_have_numbers() {
        let fence = FencingToken::saturating(7);
        for (kind, number) in [
            (Kind::Fenced(fence), Some(fence)),
            (Kind::Write(Some(fence)), Some(fence)),
            (Kind::Write(None), None),
            (Kind::Permit(3), None),
            (Kind::Plain, None),
            (Kind::Read, None),
        ] {
            assert_eq!((kind.fence(), kind.is_fenced()), (number, number.is_some()));
        }
    }
}
