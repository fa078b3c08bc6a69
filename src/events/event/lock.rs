//! Events of a lock that is acquired or held.

use crate::algorithm::queue::AskedBecause;
use crate::algorithm::time::Human;
use crate::events::error::NodeFault;
use crate::events::event::name::ResourceName;
use std::fmt;
use std::time::Duration;

/// A lock was acquired; its guard is about to be returned.
///
/// Not reported for a lease that is [attached](crate::Mutex::attach). Nothing is reported when a lock is
/// [detached](crate::MutexGuard::detach).
#[derive(Clone, Debug)]
pub struct Acquired {
    pub(crate) resource: ResourceName,
    pub(crate) waited: Duration,
    pub(crate) attempts: u32,
    pub(crate) round_trips: u32,
    pub(crate) has_waited: bool,
    pub(crate) position: Option<u32>,
    pub(crate) because: AskedBecause,
}

impl Acquired {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// Time from the beginning of the call to the reply that decided it.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// How many attempts the call made, with the successful one. 0 where the call has waited to
    /// [read](crate::kind::Read) and shares the lease of another thread of its client: that lease is acquired, and
    /// released, once.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Whether the call waited, so that [`Waiting`](super::Waiting) was reported of it.
    pub fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// The position of the call in the queue of the lock when it began to wait there: 1 was the next. None for a lock
    /// that was free. Where nodes differ, the least.
    pub fn position(&self) -> Option<u32> {
        self.position
    }

    /// How many attempts followed a message of the nodes that the lock may be free.
    pub fn told(&self) -> u32 {
        self.because.told
    }

    /// How many attempts followed no message, but a wait of [`Builder::place_lease`](crate::Builder::place_lease) or
    /// the end of the holder's time to live.
    pub fn unasked(&self) -> u32 {
        self.because.unasked
    }

    /// How many attempts challenged the first entry in the queue: it had let the call wait for
    /// [`Builder::place_lease`](crate::Builder::place_lease) while the lock was free or changed hands.
    pub fn challenges(&self) -> u32 {
        self.because.challenges
    }

    /// How many round trips the successful attempt took: 0 without one, 1, or 2 where the nodes had given a
    /// [fenced](crate::Mutex::fenced) lock different numbers, and a second round set one number on all. For a
    /// [permit](crate::Permit) 1, or where the first slot was held, up to 3.
    pub fn round_trips(&self) -> u32 {
        self.round_trips
    }
}

impl fmt::Display for Acquired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "acquired {:?} in {}, ", self.resource, Human(self.waited))?;
        match self.attempts {
            0 => write!(f, "with another thread"),
            attempts => write!(f, "at attempt {attempts}"),
        }
    }
}

/// An attempt to acquire a lock did not get a quorum, and was undone. A call that waits makes another attempt.
#[derive(Clone, Debug)]
pub struct AttemptLost {
    pub(crate) resource: ResourceName,
    pub(crate) attempt: u32,
    pub(crate) granted: usize,
    pub(crate) refused: usize,
    pub(crate) causes: Vec<NodeFault>,
}

impl AttemptLost {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// Number of the attempt within its call, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// How many nodes granted the lock. A quorum is lost only if its replies arrived after the end of the lease.
    pub fn granted(&self) -> usize {
        self.granted
    }

    /// How many nodes replied that another client holds the lock. That is not a fault.
    pub fn refused(&self) -> usize {
        self.refused
    }

    /// The nodes that gave no usable reply, and why. An attempt ends as soon as it is lost, so it may not have waited
    /// for the other nodes.
    pub fn causes(&self) -> &[NodeFault] {
        &self.causes
    }
}

impl fmt::Display for AttemptLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AttemptLost { resource, attempt, granted, refused, causes } = self;
        write!(f, "attempt {attempt} for {resource:?} lost: {granted} granted, {refused} refused")?;
        NodeFault::list(causes, f)
    }
}

/// A lock was extended, by a call or by a [`Watchdog`](crate::Watchdog).
#[derive(Clone, Debug)]
pub struct Extended {
    pub(crate) resource: ResourceName,
    pub(crate) ttl: Duration,
    pub(crate) automatic: bool,
}

impl Extended {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// The new time to live.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Whether a [`Watchdog`](crate::Watchdog) extended the lock, and not
    /// [`MutexGuard::extend`](crate::MutexGuard::extend).
    pub fn is_automatic(&self) -> bool {
        self.automatic
    }
}

impl fmt::Display for Extended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.automatic { "automatically " } else { "" };
        write!(f, "{how}extended {:?} to {}", self.resource, Human(self.ttl))
    }
}

/// Too few nodes answered an extension in time. The lock is still held until its old lease ends, and a watchdog tries
/// again.
#[derive(Clone, Debug)]
pub struct ExtensionFailed {
    pub(crate) resource: ResourceName,
    pub(crate) automatic: bool,
    pub(crate) remaining: Duration,
    pub(crate) causes: Vec<NodeFault>,
}

impl ExtensionFailed {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// Whether a [`Watchdog`](crate::Watchdog) sent the extension, and not
    /// [`MutexGuard::extend`](crate::MutexGuard::extend).
    pub fn is_automatic(&self) -> bool {
        self.automatic
    }

    /// Time until the lease ends, measured when the extension had failed.
    pub fn remaining(&self) -> Duration {
        self.remaining
    }

    /// The nodes that gave no usable reply, and why.
    pub fn causes(&self) -> &[NodeFault] {
        &self.causes
    }
}

impl fmt::Display for ExtensionFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, left) = (if self.automatic { "automatic extension" } else { "extension" }, Human(self.remaining));
        write!(f, "{what} of {:?} failed, lock held for another {left}", self.resource)?;
        NodeFault::list(&self.causes, f)
    }
}

/// A wait for a lock failed, because the lock is held by a key without expiry on a majority of nodes. Reported once for
/// each wait.
///
/// Such a lock never ends by itself: a program set the key without an expiry, or stopped between setting it and giving
/// it one. Delete the key if no program holds the lock.
#[derive(Clone, Debug)]
pub struct KeyWithoutExpiry {
    pub(crate) resource: ResourceName,
    pub(crate) addresses: Vec<String>,
}

impl KeyWithoutExpiry {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// The key: the client's prefix and the name of the resource.
    pub fn key(&self) -> &str {
        &self.resource.key
    }

    /// The addresses of the nodes where it has no expiry.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }
}

impl fmt::Display for KeyWithoutExpiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses = self.addresses.join(", ");
        write!(f, "lock {:?} is held by key {:?}, which has no expiry on {addresses}", self.resource, self.key())
    }
}

/// A lock was lost while its guard existed: another client may hold it. Reported once for each guard at most.
///
/// If the guard has a [`Watchdog`](crate::Watchdog), or its [`lost`](crate::MutexGuard::lost) channel was requested,
/// the event is reported in time, together with the message on that channel. Otherwise the loss is found by the next
/// extension or by the release. In every case an event of the guard's release follows.
#[derive(Clone, Debug)]
pub struct Lost {
    pub(crate) resource: ResourceName,
    pub(crate) reason: LossReason,
    pub(crate) held: Duration,
}

impl Lost {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// Why the lock was lost.
    pub fn reason(&self) -> LossReason {
        self.reason
    }

    /// Hold time: from the beginning of the attempt that acquired the lock, or from when its lease was
    /// [attached](crate::Mutex::attach), until the loss was found.
    pub fn held(&self) -> Duration {
        self.held
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lock {:?} lost: {}", self.resource, self.reason)
    }
}

/// Why a lock was lost. `Display` gives one phrase for a log.
///
/// ```
/// use quorumlock::event::LossReason;
///
/// assert_eq!(LossReason::KeyGone.to_string(), "the key is gone on a majority of nodes");
/// assert_eq!(LossReason::LeaseEnded.to_string(), "lease expired");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// So many nodes replied that the key is gone or another client's that no quorum can hold it: it was evicted,
    /// deleted, or forgotten in a restart.
    KeyGone,
    /// The lease expired: no extension was sent, or too few nodes answered.
    LeaseEnded,
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LossReason::KeyGone => "the key is gone on a majority of nodes",
            LossReason::LeaseEnded => "lease expired",
        })
    }
}

/// An extension set the key of a held lock again on nodes that had lost it, for example by a restart. Reported when the
/// command is queued: its reply is not awaited.
#[derive(Clone, Debug)]
pub struct Repaired {
    pub(crate) resource: ResourceName,
    pub(crate) addresses: Vec<String>,
}

impl Repaired {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// The addresses of those nodes.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }
}

impl fmt::Display for Repaired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "set the key of {:?} again on {}", self.resource, self.addresses.join(", "))
    }
}
