//! Events of nodes.

use crate::algorithm::incarnation::mismatch::Mismatch;
use crate::algorithm::time::Human;
use crate::events::error::NodeFault;
use std::fmt;
use std::time::Duration;

/// A node stopped answering, or never answered: its connection was lost or could not be made, it was rejected, or it
/// answers attempts with an error.
///
/// Reported once each time that the node goes down, however many attempts fail. The end of an idle connection is
/// reported only if it cannot be made again.
#[derive(Clone, Debug)]
pub struct NodeDown {
    pub(crate) fault: NodeFault,
}

impl NodeDown {
    /// The node's address: `host:port`, or `unix:` and a path.
    pub fn address(&self) -> &str {
        self.fault.address()
    }

    /// What failed.
    pub fn fault(&self) -> &NodeFault {
        &self.fault
    }
}

impl fmt::Display for NodeDown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is down: {}", self.address(), self.fault.explained())
    }
}

/// A node may forget a lock while it is held: it has a limit of memory and evicts keys when it is full. Reported once
/// for each connection: at [`connect`](crate::Redlock::connect), or with the first call that comes more than a second
/// after the connection was made.
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

    /// Its `maxmemory-policy`: a known one, or `unrecognised`. Every policy but `noeviction` may evict a lock.
    pub fn policy(&self) -> &'static str {
        self.policy
    }
}

impl fmt::Display for NodeMayEvict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} may evict locks ({})", self.address, self.policy)
    }
}

/// What a node remembers does not fit this client: another program has other settings, or the user has no right to the
/// key. Locks work, and no call fails for it.
///
/// Reported once for each node and difference, and again if it ends and begins anew. A client whose `max_ttl` is longer
/// stores that at the node, which ends the difference for this client, and begins one for the others.
#[derive(Clone, Debug)]
pub struct NodeMismatched {
    pub(crate) address: String,
    pub(crate) mismatch: Mismatch,
}

impl NodeMismatched {
    /// The node's address: `host:port`, or `unix:` and a path.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The difference.
    pub fn mismatch(&self) -> Mismatch {
        self.mismatch
    }
}

impl fmt::Display for NodeMismatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.address, self.mismatch)
    }
}

/// A node is declared [`durable`](crate::Builder::durable), and its `INFO` says `aof_enabled:0`: it appends no write to
/// disk. The declaration is ignored, and the [`RestartPolicy`](crate::RestartPolicy) holds for this node. Reported once
/// for each connection.
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

impl fmt::Display for NodeNotDurable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = "is declared durable but appends nothing to disk (aof_enabled:0); the declaration is ignored";
        write!(f, "{} {what}", self.address)
    }
}

/// A node was restarted, or was a replica, and may have forgotten locks: its votes do not count until the quarantine
/// ends, see [`RestartPolicy`](crate::RestartPolicy).
///
/// Reported with the node's first reply, and again if it was down meanwhile or restarted once more.
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

    /// Time until the quarantine ends, unless the node is restarted again.
    pub fn remaining(&self) -> Duration {
        self.remaining
    }
}

impl fmt::Display for NodeQuarantined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} may have forgotten locks, does not vote for {}", self.address, Human(self.remaining))
    }
}

/// A node votes, for the first time or again: it has completed the handshake and answers commands.
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

impl fmt::Display for NodeUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is up", self.address)
    }
}

/// The quarantine of a node has ended. Reported once, with the node's first reply after its end.
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

impl fmt::Display for QuarantineEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} votes again after its quarantine", self.address)
    }
}

/// A node refuses `PUBLISH`, or denies `SUBSCRIBE` by its access control list. Locks work; a wait for a lock that
/// another program releases may end later. Reported once for each node and command, see
/// [`Builder::release_notifications`](crate::Builder::release_notifications).
#[derive(Clone, Debug)]
pub struct ReleaseNotificationsRefused {
    pub(crate) fault: NodeFault,
    pub(crate) publishing: bool,
}

impl ReleaseNotificationsRefused {
    /// The node's address: `host:port`, or `unix:` and a path.
    pub fn address(&self) -> &str {
        self.fault.address()
    }

    /// What the node replied.
    pub fn fault(&self) -> &NodeFault {
        &self.fault
    }

    /// Whether the node refuses `PUBLISH`, by which other clients are notified of releases by this client. Otherwise it
    /// refuses `SUBSCRIBE`, by which this client is notified of theirs.
    pub fn is_publishing(&self) -> bool {
        self.publishing
    }
}

impl fmt::Display for ReleaseNotificationsRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = match self.publishing {
            true => "denies PUBLISH, other clients are not notified of releases",
            false => "denies SUBSCRIBE, this client is not notified of releases",
        };
        write!(f, "{} {effect}: {}", self.address(), self.fault.explained())
    }
}
