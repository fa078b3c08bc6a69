//! What a round is for, and what it waits for.

/// What a round asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Acquire,
    /// As an acquire that grants nothing: a place in the queue of a key of a set. A node that has none may still grant.
    Enqueue,
    /// Whether nodes may vote. The verdict is there when each has said so.
    Check,
    /// With [`Straggler::Awaited`] it has no verdict before every node has voted, unless it is lost.
    Extend(Straggler),
    /// Which holder has a lock.
    Inspect,
    /// That a call's entry is stored or removed, or that those are told that wait. A reply shows nothing of locks.
    Entry,
    Release,
    /// Nothing: a thread waits until its wait is ended.
    Wait,
}

/// What becomes of nodes that have not answered when a quorum has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Straggler {
    Awaited,
    LeftBehind,
}
