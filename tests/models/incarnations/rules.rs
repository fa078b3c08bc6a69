//! The rules, which are the library's, and what weaker ones do otherwise.

/// By what programs judge nodes, and write notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A note counts whichever incarnation it is about.
    AnyIncarnation,
    /// The node's clock determines the age of a note.
    ClockOfNode,
    /// A node counts by its age before all nodes have replied.
    CountsEarly,
    /// A founder counts before its note was acknowledged.
    FoundsUnheard,
    /// Nodes are judged when a quorum has answered.
    FirstQuorum,
    /// Another replication id is another incarnation.
    IdAlone,
    /// A look of any age is acted on.
    LateNotes,
    /// A deployment is new where no node has a note, not even one that was written a moment ago.
    NothingYoung,
    /// A note whose time lies ahead is kept.
    KeepsAhead,
    /// A node counts by the longest time to live of its own note and of this program.
    OwnNote,
    /// A node counts by this program's time to live.
    OwnTtl,
    /// The library's.
    Proved,
    /// Some programs write no notes.
    SomeNoteNothing,
    /// A longer time to live is stored at the nodes whose votes count, and at the others when it
    /// comes to that.
    StoresAtVotes,
    /// With `Strict`, a deployment is new if all nodes have answered, and none has a note.
    StrictFoundsAll,
    /// With `Strict`, the look behind a vote asks for the note alone, not for the names of the
    /// node.
    StrictReadsNoNames,
    /// A note is written whatever is there now.
    Unconditional,
    /// Notes are written where less than a quorum has answered.
    WithoutQuorum,
    /// A deployment is new by the lesser of the ages of its notes.
    YoungByEither,
}
