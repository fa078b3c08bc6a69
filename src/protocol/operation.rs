//! The operations on the key of a lock, plain, fenced or read-write, which every node of a round is asked alike.

use super::dialect::Dialect;
use super::fair_operation::FairOperation;
pub use super::fence_request::FenceRequest;
use super::publish::Hint;
use super::script::Script;
use crate::algorithm::lock_kind::Access;

/// One operation. With a fence, the key is that of a fenced lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sets the key, unless another token stands there. The node gives a fenced lock a token of `fence.least` or more.
    Acquire {
        /// Counted by the node's clock from when it runs the command.
        ttl_millis: u64,
        /// Of a fenced lock.
        fence: Option<FenceRequest>,
    },
    /// Gives the key a new time to live, if it holds our token.
    Extend {
        /// Counted by the node's clock from when it runs the command.
        ttl_millis: u64,
        /// Of a fenced lock.
        fence: Option<FenceRequest>,
    },
    /// What is asked about a fair lock.
    Fair(FairOperation),
    /// Raises the fencing token to `least`, if the key holds our token.
    Raise(FenceRequest),
    /// One on the key of a read-write lock.
    ReadWrite(ReadWriteOperation),
    /// Deletes the key, if it holds our token. That of a fenced lock stays and is marked as free.
    Release {
        /// What to publish with it, if anything.
        hint: Option<Hint>,
        /// Of a fenced lock.
        fence: Option<FenceRequest>,
    },
}

/// An operation on the key of a read-write lock: on the entry of our token, and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadWriteOperation {
    /// Sets the entry, unless the entries of others exclude it. A reader that has one is asked for as a new reader.
    Acquire {
        /// What it is an entry of.
        access: Access,
        /// Counted by the node's clock from when it runs the command.
        ttl_millis: u64,
        /// For how long a writer that is refused keeps new readers out; zero is not at all.
        mark_millis: u64,
        /// Of a writer that is given a number.
        fence: Option<FenceRequest>,
    },
    /// Lets the entry last for so long at least, if there is one, and makes a writer a reader.
    Extend {
        /// What it is an entry of from then on.
        access: Access,
        /// Counted by the node's clock from when it runs the command.
        ttl_millis: u64,
        /// Of a writer that has a number.
        fence: Option<FenceRequest>,
    },
    /// Raises the number to `least`, if the entry is there and is a writer's.
    Raise(FenceRequest),
    /// Removes the entry.
    Release {
        /// What to publish when the lock is free, if anything.
        hint: Option<Hint>,
    },
}

impl ReadWriteOperation {
    /// What makes it one of a writer with a number. A release keeps the number, and says nothing of it.
    pub(super) fn fence(self) -> Option<FenceRequest> {
        match self {
            ReadWriteOperation::Acquire { fence, .. } | ReadWriteOperation::Extend { fence, .. } => fence,
            ReadWriteOperation::Raise(fence) => Some(fence),
            ReadWriteOperation::Release { .. } => None,
        }
    }
}

impl Operation {
    /// What makes it one on a fenced lock.
    pub fn fence(self) -> Option<FenceRequest> {
        match self {
            Operation::Acquire { fence, .. } | Operation::Extend { fence, .. } | Operation::Release { fence, .. } => {
                fence
            }
            Operation::Raise(fence) => Some(fence),
            Operation::Fair(fair) => fair.fence(),
            Operation::ReadWrite(operation) => operation.fence(),
        }
    }

    /// Whether it begins a lock.
    pub fn acquires(self) -> bool {
        matches!(
            self,
            Operation::Acquire { .. }
                | Operation::Fair(FairOperation::Take { .. })
                | Operation::ReadWrite(ReadWriteOperation::Acquire { .. })
        )
    }

    /// Whether it ends a lock.
    pub fn is_release(self) -> bool {
        matches!(
            self,
            Operation::Release { .. }
                | Operation::Fair(FairOperation::Release { .. })
                | Operation::ReadWrite(ReadWriteOperation::Release { .. })
        )
    }

    /// Whether the node is to publish a hint.
    pub(super) fn publishes(self) -> bool {
        matches!(
            self,
            Operation::Release { hint: Some(_), .. }
                | Operation::Fair(FairOperation::Release { hint: Some(_), .. })
                | Operation::ReadWrite(ReadWriteOperation::Release { hint: Some(_) })
        )
    }

    /// The same without a hint.
    #[must_use]
    pub(super) fn unpublished(self) -> Operation {
        match self {
            Operation::Release { fence, .. } => Operation::Release { hint: None, fence },
            Operation::Fair(fair) => Operation::Fair(fair.unpublished()),
            Operation::ReadWrite(ReadWriteOperation::Release { .. }) => {
                Operation::ReadWrite(ReadWriteOperation::Release { hint: None })
            }
            other => other,
        }
    }

    /// The dialects that it can be asked in, the likeliest first.
    pub(super) fn dialects(self) -> &'static [Dialect] {
        match self {
            Operation::Acquire { fence: None, .. } => &[Dialect::Set],
            Operation::Extend { fence: None, .. } => &Dialect::FOR_EXTENSION,
            Operation::Release { fence: None, .. } => &Dialect::FOR_RELEASE,
            _ => &[Dialect::Eval],
        }
    }

    /// The commands that a user needs for one of the dialects, for a message.
    pub(super) fn commands(self) -> &'static str {
        match self {
            Operation::Acquire { fence: None, .. } => "SET",
            Operation::Extend { fence: None, .. } => "EVAL with GET and PEXPIRE, or SET",
            Operation::Release { fence: None, .. } => "EVAL with GET and DEL, DELIFEQ or DELEX",
            Operation::Fair(_) => "EVAL with GET, SET, DEL, PTTL and TIME",
            Operation::ReadWrite(_) => "EVAL with GET, SET, DEL, PEXPIRE and TIME",
            _ => "EVAL with GET, SET and TIME",
        }
    }

    /// The script whose hash the server may be sent in place of the text.
    pub(super) fn cached_script(self) -> Option<Script> {
        match self {
            Operation::Release { fence: None, .. } => Some(Script::Release),
            Operation::Fair(fair) if fair.fence().is_some() => Some(Script::FencedFair),
            Operation::Fair(_) => Some(Script::Fair),
            Operation::ReadWrite(_) => Some(Script::ReadWrite),
            _ => self.fence().map(|_| Script::Fence),
        }
    }
}
