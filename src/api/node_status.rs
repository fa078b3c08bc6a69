//! What a client knows of its nodes at present, for operators and health checks.

use crate::algorithm::incarnation::mismatch::Mismatch;
use crate::algorithm::incarnation::summary::NodeNote;
use crate::algorithm::time::Human;
use crate::engine::nodes::status::{NodeState, NodeStatusSnapshot};
use crate::events::error::{Explained, NodeFault};
use crate::fault::Fault;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How one node looks to a client: from [`Redlock::nodes`](crate::Redlock::nodes). It is a copy,
/// and does not change.
#[derive(Clone)]
pub struct NodeStatus {
    address: Arc<str>,
    is_declared_durable: bool,
    snapshot: NodeStatusSnapshot,
}

impl NodeStatus {
    pub(crate) fn new(
        address: Arc<str>,
        is_declared_durable: bool,
        snapshot: NodeStatusSnapshot,
    ) -> NodeStatus {
        NodeStatus {
            address,
            is_declared_durable,
            snapshot,
        }
    }

    /// The node's address: `host:port`, or `unix:` and a path. Never its password.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What it is to this client, as of the last time that it was asked something.
    pub fn state(&self) -> NodeState {
        self.snapshot.state
    }

    /// How long it has been up, or down, or in quarantine: since the client found out. For one that
    /// nothing was heard of, since the client was built.
    pub fn state_age(&self) -> Duration {
        self.snapshot.time
    }

    /// What it remembers of itself, for programs that have just started: why and since when its
    /// votes count, or not yet ([`RestartPolicy`](crate::RestartPolicy)).
    ///
    /// ```
    /// use quorumlock::{NodeNote, Redlock};
    ///
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// let redlock = Redlock::builder().node(node.url()).build()?;
    /// let _ = redlock.mutex("orders/42").lock()?.unlock()?;
    /// let status = &redlock.nodes()?[0];
    /// assert!(matches!(status.note(), NodeNote::Founder { .. }));
    /// assert!(status.counted_for().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn note(&self) -> NodeNote {
        self.snapshot.note
    }

    /// For how long its votes have counted, for programs that have just started, too, by
    /// [`note`](NodeStatus::note). None if they do not count, or if they count for another reason:
    /// it tells nothing, it is declared [`durable`](crate::Builder::durable), or
    /// [`RestartPolicy::Off`](crate::RestartPolicy::Off) is set.
    pub fn counted_for(&self) -> Option<Duration> {
        self.snapshot
            .counted_for
            .filter(|_| self.snapshot.state == NodeState::Voting)
    }

    /// How what it remembers does not fit this client: each was reported as the event
    /// [`NodeMismatched`](crate::event::Event::NodeMismatched).
    pub fn mismatches(&self) -> &[Mismatch] {
        &self.snapshot.mismatches
    }

    /// Whether there is a connection to it now. A node that votes may have none: servers close idle
    /// ones, and it is made again when the node is next asked.
    pub fn is_connected(&self) -> bool {
        self.snapshot.is_connected
    }

    /// Whether it is declared [`durable`](crate::Builder::durable) and has not contradicted that: a
    /// node whose `INFO` contains `aof_enabled:0` is not durable.
    pub fn is_durable(&self) -> bool {
        self.is_declared_durable && !self.appends_nothing()
    }

    /// Why its votes count or not, as far as it remembers.
    fn standing(&self) -> Option<String> {
        match (self.state(), self.note()) {
            (NodeState::Voting, NodeNote::Missing | NodeNote::Withheld) => {
                Some(self.note().to_string())
            }
            (NodeState::Voting, _) => self
                .counted_for()
                .map(|time| format!("votes counted for {}", Human(time))),
            (_, NodeNote::Unknown) => None,
            (NodeState::Quarantined { .. }, note) => Some(note.to_string()),
            _ => None,
        }
    }

    fn appends_nothing(&self) -> bool {
        self.snapshot.server_info.aof_enabled() == Some(false)
    }

    /// What server it is, such as `Redis 7.0.15` or `Valkey 9.1.2`; none when it was not met yet or
    /// withholds it.
    pub fn server(&self) -> Option<String> {
        self.snapshot.server_info.server()
    }

    /// The first eight digits of its run id, which is another one after each restart. None when it
    /// was not met yet or withholds it (an ACL without `INFO`): **the restarts of a node that
    /// withholds it are not noticed.**
    pub fn run_id(&self) -> Option<String> {
        self.snapshot.server_info.run_id().map(|id| id.to_string())
    }

    /// Whether it was a master, as it should be, when it was last asked. None if it was not asked
    /// yet or withholds it.
    pub fn is_master(&self) -> Option<bool> {
        self.snapshot.server_info.is_master()
    }

    /// By what policy it evicts keys when its memory is full, if it may: `maxmemory` is set, and
    /// `maxmemory-policy` is not `noeviction`. Such a node may delete the key of a held lock, and
    /// reports nothing. None as well while the node was not asked, as for
    /// [`NodeMayEvict`](crate::event::Event::NodeMayEvict).
    pub fn eviction(&self) -> Option<&'static str> {
        self.snapshot.server_info.eviction()
    }

    /// How it failed last, if it ever did, however long ago.
    pub fn last_fault(&self) -> Option<NodeFault> {
        self.snapshot
            .last_fault
            .map(|fault| NodeFault::new(Arc::clone(&self.address), fault))
    }

    /// How long it took to reply to what it was asked about locks, since the client was built: from
    /// when the command was queued, or the connection made, to when the reply was read. Also of
    /// replies that no call waited for.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// let _ = redlock.mutex("orders/42").lock()?.unlock()?;
    /// let latency = redlock.nodes()?[0].latency();
    /// assert_eq!(latency.count, 2);
    /// assert!(latency.p50 <= latency.p99 && latency.p99 <= latency.max);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn latency(&self) -> Latency {
        let times = &self.snapshot.latency;
        let p50 = times.percentile(50);
        let p99 = times.percentile(99);
        Latency {
            count: times.count(),
            p50,
            p99,
            max: times.longest(),
        }
    }

    /// Each fault that has cost a call its vote, and how often, since the client was built, in the
    /// order in which they first occurred. Faults of one phase and cause are counted together. A
    /// node that is down counts once for each attempt, extension or release that could not count on
    /// it.
    pub fn faults(&self) -> Vec<(NodeFault, u64)> {
        let fault =
            |phase, cause| NodeFault::new(Arc::clone(&self.address), Fault::new(phase, cause));
        self.snapshot
            .fault_counts
            .iter()
            .map(|(phase, cause, count)| (fault(phase, cause), count))
            .collect()
    }
}

/// How long a node took to reply: from [`NodeStatus::latency`]. All zero without a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latency {
    /// How many replies were counted.
    pub count: u64,
    /// The time that half of the replies did not exceed: never too small, and at most a quarter too
    /// large.
    pub p50: Duration,
    /// The time that 99 % of the replies did not exceed: never too small, and at most a quarter too
    /// large.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

/// One line: the address, what it is, for how long the client has known that, and why.
impl fmt::Display for NodeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = self.snapshot.last_fault.map(Explained);
        let fault = fault.map_or_else(String::new, |fault| fault.to_string());
        let (state, explanation) = match self.snapshot.state {
            NodeState::Down(_) => ("down", fault),
            NodeState::Quarantined { remaining } => {
                ("in quarantine", format!("{} left", Human(remaining)))
            }
            NodeState::Rejected(_) => ("rejected", fault),
            NodeState::Unknown => ("unknown", String::new()),
            NodeState::Voting if self.is_connected() => ("voting", String::new()),
            NodeState::Voting => ("voting", "not connected".to_owned()),
        };
        write!(
            f,
            "{}: {state}, known for {}",
            self.address,
            Human(self.state_age())
        )?;
        if !explanation.is_empty() {
            write!(f, ", {explanation}")?;
        }
        if let Some(standing) = self.standing() {
            write!(f, ", {standing}")?;
        }
        if let Some(server) = self.server() {
            write!(f, ", {server}")?;
        }
        if let Some(policy) = self.eviction() {
            write!(f, ", may evict locks ({policy})")?;
        }
        if self.is_declared_durable && self.appends_nothing() {
            f.write_str(", declared durable but appends nothing to disk (aof_enabled:0)")?;
        }
        Ok(())
    }
}

/// Shows all that can be asked for.
impl fmt::Debug for NodeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeStatus")
            .field("address", &self.address)
            .field("state", &self.state())
            .field("state_age", &self.state_age())
            .field("note", &self.note())
            .field("counted_for", &self.counted_for())
            .field("mismatches", &self.mismatches())
            .field("is_connected", &self.is_connected())
            .field("is_durable", &self.is_durable())
            .field("server", &self.server())
            .field("run_id", &self.run_id())
            .field("is_master", &self.is_master())
            .field("eviction", &self.eviction())
            .field("last_fault", &self.last_fault())
            .field("latency", &self.latency())
            .field("faults", &self.faults())
            .finish()
    }
}
