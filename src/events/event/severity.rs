//! How serious an event is: for log levels and alarms.

/// How serious an event is: [`Event::severity`](super::Event::severity). Ordered, the least first.
///
/// | Severity | Events |
/// |---|---|
/// | `Debug` | `Waiting`, `Acquired`, `AttemptLost`, `Extended`, `Released` in time; `GaveUp` because the lock is held, or by a cancellation or a shutdown |
/// | `Info` | `NodeUp`, `QuarantineEnded`, `Repaired`; `GaveUp` because the limit of the wait passed |
/// | `Warning` | `ExtensionFailed`, `ReleaseFailed`, `Released` after the lock was lost, `WaitingForItself`, `EventsDropped`, and all other events of nodes |
/// | `Error` | `Lost`, `KeyWithoutExpiry`; `GaveUp` for any other reason |
///
/// ```
/// use quorumlock::event::Severity;
///
/// assert!(Severity::Warning < Severity::Error);
/// assert_eq!(Severity::Warning.to_string(), "warning");
/// ```
// C has the same numbers: they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Ordinary work.
    Debug = 1,
    /// A change for the better, or a limit that the program has set.
    Info = 2,
    /// Locks work. An operator can correct something.
    Warning = 3,
    /// A call failed, or a program may have worked without its lock.
    Error = 4,
}

words! { Severity:
    Debug => "debug",
    Info => "info",
    Warning => "warning",
    Error => "error",
}
