//! Events of a lock that is released.
//!
//! A guard that is dropped (in C: freed) is released in the background: no call waits for the replies.

use crate::events::error::NodeFault;
use crate::events::event::name::ResourceName;
use crate::events::release::ReleaseOutcome;
use std::fmt;
use std::time::Duration;

/// A lock was released, and a quorum of nodes has answered.
#[derive(Clone, Debug)]
pub struct Released {
    pub(crate) resource: ResourceName,
    pub(crate) outcome: ReleaseOutcome,
    pub(crate) dropped: bool,
    pub(crate) held: Duration,
}

impl Released {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// Whether the lock was held until the release.
    pub fn outcome(&self) -> ReleaseOutcome {
        self.outcome
    }

    /// Whether the guard was dropped, and not released by [`unlock`](crate::MutexGuard::unlock).
    pub fn is_dropped(&self) -> bool {
        self.dropped
    }

    /// Hold time: from the beginning of the attempt that acquired the lock, or from when its lease was
    /// [attached](crate::Mutex::attach), until its release.
    pub fn held(&self) -> Duration {
        self.held
    }
}

impl fmt::Display for Released {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = match self.outcome {
            ReleaseOutcome::Expired => ", after the lock was lost",
            ReleaseOutcome::Released | ReleaseOutcome::StillHeld(_) => "",
        };
        let how = if self.dropped { " in the background" } else { "" };
        write!(f, "released {:?}{how}{late}", self.resource)
    }
}

/// Too few nodes answered a release in time. A node that hangs runs it later; at the latest, the lock ends with its
/// time to live.
#[derive(Clone, Debug)]
pub struct ReleaseFailed {
    pub(crate) resource: ResourceName,
    pub(crate) dropped: bool,
    pub(crate) held: Duration,
    pub(crate) causes: Vec<NodeFault>,
}

impl ReleaseFailed {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// Whether the guard was dropped, and not released by [`unlock`](crate::MutexGuard::unlock).
    pub fn is_dropped(&self) -> bool {
        self.dropped
    }

    /// Hold time: from the beginning of the attempt that acquired the lock, or from when its lease was
    /// [attached](crate::Mutex::attach), until its release.
    pub fn held(&self) -> Duration {
        self.held
    }

    /// The nodes that gave no usable reply, and why.
    pub fn causes(&self) -> &[NodeFault] {
        &self.causes
    }
}

impl fmt::Display for ReleaseFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.dropped { "background release" } else { "release" };
        write!(f, "{what} of {:?} not confirmed", self.resource)?;
        NodeFault::list(&self.causes, f)
    }
}
