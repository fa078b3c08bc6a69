//! The operations on the key of a lock, which every node of a round is asked alike: a verb, and the
//! kind of the lock.

use crate::algorithm::kind::Kind;
use crate::algorithm::queue::{Entry, TakeRequest};

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What is asked.
    pub verb: Verb,
    /// The kind of the lock.
    pub kind: Kind,
    /// For how long a node keeps the number of a lock from now on. No shorter than any time to
    /// live.
    pub retention_millis: u64,
}

/// What is asked of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Takes the lock if it is free, whichever calls wait. Times to live count by the node's clock,
    /// from when it executes the command.
    Acquire {
        /// The time to live.
        ttl_millis: u64,
    },
    /// Lets the hold last longer, if it is ours.
    Extend {
        /// The time to live from then on.
        ttl_millis: u64,
    },
    /// Ends the hold after this time and not before, if it is ours: of a release that comes too
    /// early.
    Keep {
        /// The time to live from then on.
        ttl_millis: u64,
    },
    /// Removes the entry of a call that neither holds the lock nor asks for it. Without one, those
    /// that wait are told.
    Leave(Option<Entry>),
    /// Raises the number to the one that the kind contains, if the hold is ours.
    Raise,
    /// Ends the hold, if it is ours.
    Release(Option<Departure>),
    /// Takes the lock if it is free and no other call is first, or stores the call's entry.
    Take {
        /// The time to live.
        ttl_millis: u64,
        /// How the call asks.
        request: TakeRequest,
    },
}

/// What becomes of the entry of a call whose hold or attempt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The call's.
    pub entry: Entry,
    /// It is stored with this ticket; none: it is removed.
    pub ticket: Option<u64>,
    /// For a set: in the queue of which of its keys it is.
    pub key: u8,
}

impl Departure {
    /// The same for an entry that is removed.
    pub fn without_ticket(self) -> Departure {
        Departure {
            ticket: None,
            ..self
        }
    }
}

impl Operation {
    /// Whether it may begin a lock.
    pub fn acquires(&self) -> bool {
        match self.verb {
            Verb::Acquire { .. } => true,
            Verb::Take { request, .. } => !request.stores_only,
            Verb::Extend { .. }
            | Verb::Keep { .. }
            | Verb::Leave(_)
            | Verb::Raise
            | Verb::Release(_) => false,
        }
    }

    /// Whether it ends a lock.
    pub fn is_release(&self) -> bool {
        matches!(self.verb, Verb::Release(_))
    }
}
