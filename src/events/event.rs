//! What an [`Observer`](crate::Observer) is told: one type for each kind of event.
//!
//! An event owns what it tells, so that it can be cloned and kept. None holds an owner token, a password, a full URL or
//! text from a server. All fields are private, and more can be added.

use crate::events::error::NodeFault;
use crate::events::release::ReleaseOutcome;
use crate::protocol::fenced;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A lock was taken.
#[derive(Clone, Debug)]
pub struct Acquired {
    pub(crate) resource: Name,
    pub(crate) waited: Duration,
    pub(crate) attempts: u32,
    pub(crate) round_trips: u32,
}

impl Acquired {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// How long it took, from the call that wanted the lock to the answer that won it.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// How many attempts that call made, the winning one included.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// How many round trips the winning attempt took: 1, or 2 where the nodes had given a [fenced](crate::Mutex::fenced) lock
    /// different numbers and had to be brought to one.
    pub fn round_trips(&self) -> u32 {
        self.round_trips
    }
}

/// An attempt to take a lock was lost. Whoever waits will make another.
#[derive(Clone, Debug)]
pub struct AttemptLost {
    pub(crate) resource: Name,
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

    /// Which attempt of its call it was, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// How many nodes granted the lock. A quorum of them is lost only if it came when the lease had ended.
    pub fn granted(&self) -> usize {
        self.granted
    }

    /// How many nodes answered that somebody else holds the lock. That is not a fault.
    pub fn refused(&self) -> usize {
        self.refused
    }

    /// The nodes that gave no usable answer, and why. An attempt ends as soon as it is lost, so the rest may not have been
    /// waited for.
    pub fn causes(&self) -> &[NodeFault] {
        &self.causes
    }
}

/// Events were dropped, because they come faster than the observer takes them. Those of nodes never are.
#[derive(Clone, Debug)]
pub struct EventsDropped {
    pub(crate) count: u64,
}

impl EventsDropped {
    /// How many events were dropped since this was last told.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// A lock was extended.
#[derive(Clone, Debug)]
pub struct Extended {
    pub(crate) resource: Name,
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

    /// Whether a [`Watchdog`](crate::Watchdog) did it, and not [`MutexGuard::extend`](crate::MutexGuard::extend).
    pub fn is_automatic(&self) -> bool {
        self.automatic
    }
}

/// Too few nodes answered an extension in time. The lock is still held for what is left of its lease, and a watchdog tries
/// again.
#[derive(Clone, Debug)]
pub struct ExtensionFailed {
    pub(crate) resource: Name,
    pub(crate) automatic: bool,
    pub(crate) remaining: Duration,
    pub(crate) causes: Vec<NodeFault>,
}

impl ExtensionFailed {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// Whether a [`Watchdog`](crate::Watchdog) tried, and not [`MutexGuard::extend`](crate::MutexGuard::extend).
    pub fn is_automatic(&self) -> bool {
        self.automatic
    }

    /// What was left of the lease when the extension had failed.
    pub fn remaining(&self) -> Duration {
        self.remaining
    }

    /// The nodes that gave no usable answer, and why.
    pub fn causes(&self) -> &[NodeFault] {
        &self.causes
    }
}

/// A wait for a lock has ended, because the lock is held by a key that has no expiry on a majority of nodes. It is never freed
/// by itself: a program set it without an expiry, or stopped between setting it and giving it one. If no program that
/// holds the lock will delete it, delete the key.
#[derive(Clone, Debug)]
pub struct KeyWithoutExpiry {
    pub(crate) resource: Name,
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

/// A lock was lost while its guard was there: somebody else may hold it.
#[derive(Clone, Debug)]
pub struct Lost {
    pub(crate) resource: Name,
    pub(crate) reason: LossReason,
}

impl Lost {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// How the lock was lost.
    pub fn reason(&self) -> LossReason {
        self.reason
    }
}

/// How a lock was lost. `Display` gives one phrase for a log.
///
/// ```
/// use quorumlock::LossReason;
///
/// assert_eq!(LossReason::KeyGone.to_string(), "key gone on a majority of nodes");
/// assert_eq!(LossReason::LeaseEnded.to_string(), "lease ended");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// So many nodes answered that the key is gone or another client's that no quorum can hold it: it was evicted, deleted, or
    /// forgotten in a restart.
    KeyGone,
    /// Its time was up: nobody extended it, or too few nodes answered.
    LeaseEnded,
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LossReason::KeyGone => "key gone on a majority of nodes",
            LossReason::LeaseEnded => "lease ended",
        })
    }
}

/// A node cannot be asked: its connection was lost or could not be made, it was rejected, or it stopped answering.
#[derive(Clone, Debug)]
pub struct NodeDown {
    pub(crate) fault: NodeFault,
}

impl NodeDown {
    /// The node's address: `host:port`, or `unix:` and a path.
    pub fn address(&self) -> &str {
        self.fault.address()
    }

    /// What happened.
    pub fn fault(&self) -> &NodeFault {
        &self.fault
    }
}

/// A node may forget a lock while it is held: it has a limit of memory and evicts keys when it is full.
#[derive(Clone, Debug)]
pub struct NodeMayEvict {
    pub(crate) address: String,
    pub(crate) policy: &'static str,
}

impl NodeMayEvict {
    /// The node's address: `host:port`, or `unix:` and a path.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its `maxmemory-policy`: one of those that are known, or `unrecognised`. Every one but `noeviction` may hit a lock.
    pub fn policy(&self) -> &'static str {
        self.policy
    }
}

/// A node is declared [`durable`](crate::Node::durable), and its `INFO` says `aof_enabled:0`: it appends no write to disk. The
/// declaration is ignored, and the [`RestartPolicy`](crate::RestartPolicy) holds for this node.
#[derive(Clone, Debug)]
pub struct NodeNotDurable {
    pub(crate) address: String,
}

impl NodeNotDurable {
    /// The node's address: `host:port`, or `unix:` and a path.
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// A node was restarted, or was a replica, may have forgotten locks, and does not count for a while: see
/// [`RestartPolicy`](crate::RestartPolicy).
#[derive(Clone, Debug)]
pub struct NodeQuarantined {
    pub(crate) address: String,
    pub(crate) remaining: Duration,
}

impl NodeQuarantined {
    /// The node's address: `host:port`, or `unix:` and a path.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// For how long it does not count any more, unless it is restarted again.
    pub fn remaining(&self) -> Duration {
        self.remaining
    }
}

/// A node votes: it has accepted our greeting, and answers what it is asked.
#[derive(Clone, Debug)]
pub struct NodeUp {
    pub(crate) address: String,
}

impl NodeUp {
    /// The node's address: `host:port`, or `unix:` and a path.
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// A node that was in quarantine counts again.
#[derive(Clone, Debug)]
pub struct QuarantineEnded {
    pub(crate) address: String,
}

impl QuarantineEnded {
    /// The node's address: `host:port`, or `unix:` and a path.
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// A lock was released, and a quorum of nodes has answered.
#[derive(Clone, Debug)]
pub struct Released {
    pub(crate) resource: Name,
    pub(crate) outcome: ReleaseOutcome,
    pub(crate) dropped: bool,
}

impl Released {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// Whether the lock was ours to the end.
    pub fn outcome(&self) -> ReleaseOutcome {
        self.outcome
    }

    /// Whether the guard was dropped, and not [`unlock`](crate::MutexGuard::unlock)ed.
    pub fn is_dropped(&self) -> bool {
        self.dropped
    }
}

/// Too few nodes answered a release in time. Those that hang run it when they go on; at the latest, the lock ends with its
/// time to live.
#[derive(Clone, Debug)]
pub struct ReleaseFailed {
    pub(crate) resource: Name,
    pub(crate) dropped: bool,
    pub(crate) causes: Vec<NodeFault>,
}

impl ReleaseFailed {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// Whether the guard was dropped, and not [`unlock`](crate::MutexGuard::unlock)ed.
    pub fn is_dropped(&self) -> bool {
        self.dropped
    }

    /// The nodes that gave no usable answer, and why.
    pub fn causes(&self) -> &[NodeFault] {
        &self.causes
    }
}

/// The key of a held lock was set again on nodes that had lost it, because they were restarted, say. It was sent; nobody
/// waits to see that it arrives.
#[derive(Clone, Debug)]
pub struct Repaired {
    pub(crate) resource: Name,
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

/// A node refuses to take part in wake-ups: by its access control list, mostly. Locks work all the same; whoever waits for one
/// that another program releases may notice later. Told once for each node and each side, see
/// [`Builder::release_notifications`](crate::Builder::release_notifications).
#[derive(Clone, Debug)]
pub struct ReleaseNotificationsRefused {
    pub(crate) fault: NodeFault,
    pub(crate) publishing: bool,
}

impl ReleaseNotificationsRefused {
    /// Where the node is, as in its URL.
    pub fn address(&self) -> &str {
        self.fault.address()
    }

    /// What it said.
    pub fn fault(&self) -> &NodeFault {
        &self.fault
    }

    /// Whether it is our `PUBLISH` that it refuses, by which others hear of our releases; otherwise our `SUBSCRIBE`, by which
    /// we hear of theirs.
    pub fn is_publishing(&self) -> bool {
        self.publishing
    }
}

/// The name of a resource, kept as a part of its key: no copy is made of it.
#[derive(Clone)]
pub(crate) struct Name {
    pub(crate) key: Arc<str>,
    /// Length of the prefix.
    pub(crate) prefix: usize,
}

impl Name {
    fn as_str(&self) -> &str {
        fenced::resource(&self.key[self.prefix..])
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}
