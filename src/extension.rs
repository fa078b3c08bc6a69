//! What an extension by hand came to.

use crate::error::NodeFault;

/// What holds after [`MutexGuard::extend`](crate::MutexGuard::extend). None of these is an error of the call: it found out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a lock that was not extended must not be relied on for longer"]
pub enum Extension {
    /// The lock lasts for the new time, less the allowance for clock drift. [`remaining`](crate::MutexGuard::remaining) says
    /// how long that is.
    Extended,
    /// Too few nodes answered in time, for these reasons. The lock is still ours for what is left of its old lease.
    Failed(Vec<NodeFault>),
    /// The lease has ended, or so many nodes say that the lock is not ours that no quorum can hold it. Another client may
    /// hold it.
    Lost,
}
