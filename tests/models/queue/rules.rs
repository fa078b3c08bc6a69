//! The library's rule, and what looks as good and is not.

/// Which rule nodes and calls have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// An entry without a receiver stays, and blocks those behind it.
    BlocksWhileAway,
    /// A call whose subscription is confirmed by a quorum asks as one that a quorum found to be
    /// first.
    ConfirmedIsFirst,
    /// A call that has ended, and is the next one by its entry, does not leave.
    EndedIgnoresNext,
    /// A grant removes the entry of its call; an undo stores it again. All calls ask by the script.
    GrantRemoves,
    /// A call that leaves a free lock wakes no other.
    LeaveWakesNone,
    /// Each node keeps the ticket that it has chosen.
    NoAgreement,
    /// The entry behind the first one stays, with or without a receiver.
    NextMayBeDead,
    /// A release wakes the first entry only.
    NoNext,
    /// A lost attempt is undone only where a node granted.
    NoUndoWhereSilent,
    /// Only the second one may challenge the first.
    OnlySecondPasses,
    /// An entry without a receiver stays, and those behind it are granted.
    PassedWhileAway,
    /// The library's.
    Proved,
    /// A refusal by a node whose lock was free makes no call the next one.
    RefusedIsNotNext,
    /// A call with a ticket does not repeat a round that too few nodes answered.
    SilenceWaits,
    /// An undo whose entry is the first sends no message to the next one.
    UndoWakesNoNext,
}
