//! The outcome of an extension by a call.

use crate::events::error::NodeFault;
use std::fmt;

/// The outcome of [`MutexGuard::extend`](crate::MutexGuard::extend). None of these is an error: the
/// call determined it.
///
/// `Display` writes one line for a log, with the cause at each node where there are any.
///
/// ```
/// assert_eq!(quorumlock::ExtendOutcome::Lost.to_string(), "lock lost");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a lock that was not extended must not be relied on for longer"]
#[non_exhaustive]
pub enum ExtendOutcome {
    /// The lock lasts for the new time, less the allowance for clock drift.
    /// [`remaining`](crate::MutexGuard::remaining) returns how long that is.
    Extended,
    /// Too few nodes answered in time, for these reasons. The lock is still held until its old
    /// lease ends.
    Failed(Vec<NodeFault>),
    /// The lease has ended, or so many nodes replied that they do not have the key that no quorum
    /// can hold it. Another client may hold the lock.
    Lost,
}

impl fmt::Display for ExtendOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExtendOutcome::Extended => f.pad("extended"),
            ExtendOutcome::Lost => f.pad("lock lost"),
            ExtendOutcome::Failed(causes) => {
                f.write_str("extension failed, lock held until its old lease ends")?;
                NodeFault::list(causes, f)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Cause, Fault, Phase};

    #[test]
    fn an_extension_is_one_readable_line() {
        assert_eq!(ExtendOutcome::Extended.to_string(), "extended");
        assert_eq!(ExtendOutcome::Lost.to_string(), "lock lost");
        let held = "extension failed, lock held until its old lease ends";
        assert_eq!(ExtendOutcome::Failed(Vec::new()).to_string(), held);
        let causes = vec![
            NodeFault::new("a:1", Fault::new(Phase::Reply, Cause::TimedOut)),
            NodeFault::new("b:2", Fault::new(Phase::Connect, Cause::Refused)),
        ];
        let text = ExtendOutcome::Failed(causes).to_string();
        assert_eq!(
            text,
            format!("{held} [a:1: no reply in time; b:2: connection refused]")
        );
    }
}
