//! Events of one call for a lock: that it waits, and how it ended without the lock.
//!
//! Each call ends in exactly one of [`Acquired`](super::Acquired) and [`GaveUp`]. [`Waiting`] comes before either,
//! once, if the call waits at all. So the number of [`Waiting`] less the number of ends that have waited is the number
//! of calls that wait now.

use crate::algorithm::time::Human;
use crate::events::error::NodeFault;
use crate::events::event::name::ResourceName;
use std::fmt;
use std::time::Duration;

/// A call for a lock begins to wait: behind other threads of this client, or for a holder. Reported once for each call.
///
/// [`Acquired::has_waited`](super::Acquired::has_waited) and [`GaveUp::has_waited`] say whether the end of a call is
/// the end of a wait.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub(crate) resource: ResourceName,
}

impl Waiting {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "waiting for {:?}", self.resource)
    }
}

/// A call begins to wait for a lock that its own thread has: it waits for itself, until the lease ends; with a
/// [`Watchdog`](crate::Watchdog), for ever. Reported once for each call, after its [`Waiting`].
///
/// The thread has acquired or attached the lock by the same client, and has neither released nor detached it. A set is
/// waited for if the thread has one of its resources, and a permit if it has all of them. Release the guard first, or
/// let the lock be [`reentrant`](crate::Mutex::reentrant).
///
/// A guard may have been sent to another thread, which is not known here. Where that one releases the lock, the wait
/// ends, and the event means nothing. None is reported for a guard of an [`Owner`](crate::Owner), which is no thread,
/// nor for one to [read](crate::RwReadGuard).
#[derive(Clone, Debug)]
pub struct WaitingForItself {
    pub(crate) resource: ResourceName,
    pub(crate) remaining: Duration,
}

impl WaitingForItself {
    /// The name of the resource that the thread has: of a set one of them, of permits that of the semaphore.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// Time until the lease ends, unless it is extended.
    pub fn remaining(&self) -> Duration {
        self.remaining
    }
}

impl fmt::Display for WaitingForItself {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WaitingForItself { resource, remaining } = self;
        write!(
            f,
            "waiting for {resource:?}, which this thread holds: unless another thread releases it, the wait lasts \
             until the lease ends, in {} or later",
            Human(*remaining)
        )
    }
}

/// A call for a lock ended without it. Reported once for each call that does not end in
/// [`Acquired`](super::Acquired), also for calls that never asked a node, and for those that return an error.
///
/// Only a call that is refused as [`Forked`](crate::ErrorKind::Forked) reports nothing: observers belong to the parent.
/// A [reentrant](crate::Mutex::reentrant) lock that its owner takes again is no call for the lock.
#[derive(Clone, Debug)]
pub struct GaveUp {
    pub(crate) resource: ResourceName,
    pub(crate) reason: GaveUpReason,
    pub(crate) waited: Duration,
    pub(crate) attempts: u32,
    pub(crate) has_waited: bool,
    pub(crate) causes: Vec<NodeFault>,
}

impl GaveUp {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// Why the call ended.
    pub fn reason(&self) -> GaveUpReason {
        self.reason
    }

    /// Time from the beginning of the call to its end.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// How many attempts the call made. 0 if it never became the first of the threads of its client that want the lock,
    /// or if it failed before an attempt.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Whether the call waited, so that [`Waiting`] was reported of it.
    pub fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// The nodes that gave no usable reply to the last attempt, and why: of an error the same as
    /// [`Error::causes`](crate::Error::causes).
    pub fn causes(&self) -> &[NodeFault] {
        &self.causes
    }
}

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GaveUp { resource, reason, waited, attempts, causes, .. } = self;
        let attempts = match attempts {
            0 => "without an attempt".to_owned(),
            1 => "after 1 attempt".to_owned(),
            attempts => format!("after {attempts} attempts"),
        };
        write!(f, "gave up {resource:?} after {}, {attempts}: {reason}", Human(*waited))?;
        NodeFault::list(causes, f)
    }
}

/// Why a call for a lock ended without it. `Display` gives one phrase for a log.
///
/// ```
/// use quorumlock::event::GaveUpReason;
///
/// assert_eq!(GaveUpReason::TimedOut.to_string(), "the limit of the wait passed");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GaveUpReason {
    /// The wait was [cancelled](crate::ErrorKind::Cancelled).
    Cancelled,
    /// The call could not be made, and asked no node: [`Config`](crate::ErrorKind::Config),
    /// [`Entropy`](crate::ErrorKind::Entropy), or no thread for the watchdog.
    Failed,
    /// A call of [`try_lock`](crate::Mutex::try_lock) found the lock held.
    Held,
    /// The limit of the wait passed while the lock was held.
    TimedOut,
    /// A quorum granted the lock, but only after its lease had ended. The error is of kind
    /// [`Unavailable`](crate::ErrorKind::Unavailable).
    TooLate,
    /// Too few nodes could answer, or the lock is held by a key without expiry:
    /// [`Unavailable`](crate::ErrorKind::Unavailable).
    Unavailable,
}

impl fmt::Display for GaveUpReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            GaveUpReason::Cancelled => "the wait was cancelled",
            GaveUpReason::Failed => "the call could not be made",
            GaveUpReason::Held => "another client holds the lock",
            GaveUpReason::TimedOut => "the limit of the wait passed",
            GaveUpReason::TooLate => "granted only after the lease had ended",
            GaveUpReason::Unavailable => "too few nodes available",
        })
    }
}
