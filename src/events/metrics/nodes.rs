//! The nodes that are shown: the nodes of the clients that count, asked for when the text is
//! written.

use super::families::Kind::Gauge;
use super::families::{Family, MISMATCHES, family};
use crate::fault::counts::FaultCounts;
use crate::os::fork::ForkEpoch;
use crate::os::sync::{Mutex, lock};
use crate::protocol::latency::Histogram;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// One node, as a client sees it.
#[derive(Clone)]
pub(crate) struct NodeSample {
    pub(crate) address: String,
    /// Whether it answers.
    pub(crate) is_up: bool,
    /// Whether its votes count.
    pub(crate) votes: bool,
    /// For how long it is in quarantine.
    pub(crate) quarantine: Duration,
    /// Whether there is such a mismatch, by index of [`MISMATCHES`].
    pub(crate) mismatches: [bool; MISMATCHES.len()],
    /// How long its replies took.
    pub(crate) replies: Histogram,
    /// What has cost it votes.
    pub(crate) faults: FaultCounts,
}

impl NodeSample {
    /// With what another client sees of the node.
    fn merge(&mut self, other: &NodeSample) {
        self.is_up &= other.is_up;
        self.votes &= other.votes;
        self.quarantine = self.quarantine.max(other.quarantine);
        for (is_mismatched, other) in self.mismatches.iter_mut().zip(other.mismatches) {
            *is_mismatched |= other;
        }
        self.replies.add(&other.replies);
        self.faults.add(&other.faults);
    }
}

/// What a node shows for each series of a gauge.
type Values = fn(&NodeSample) -> Vec<Duration>;

/// The gauges of a node: flags, but for one time.
pub(super) const GAUGES: [(Family, Values); 4] = [
    (
        family(Gauge, "quorumlock_node_up", "Whether the node answers."),
        |node| vec![flag(node.is_up)],
    ),
    (
        family(
            Gauge,
            "quorumlock_node_votes",
            "Whether the votes of the node count.",
        ),
        |node| vec![flag(node.votes)],
    ),
    (
        family(
            Gauge,
            "quorumlock_node_quarantine_seconds",
            "Time until the votes of the node count again.",
        ),
        |node| vec![node.quarantine],
    ),
    (
        family(
            Gauge,
            "quorumlock_node_mismatch",
            "Whether what the node remembers of other programs does not fit the client.",
        )
        .by(&[("of", &MISMATCHES)]),
        |node| node.mismatches.map(flag).to_vec(),
    ),
];

/// A flag as the number of a gauge.
fn flag(is_set: bool) -> Duration {
    Duration::from_secs(is_set.into())
}

/// A client, as counters see it.
pub(crate) trait NodeSource: Send + Sync {
    /// Its nodes; none in a child made by `fork`.
    fn samples(self: Arc<Self>) -> Vec<NodeSample>;
}

pub(super) struct NodeSources {
    created_in: ForkEpoch,
    sources: Mutex<Vec<Weak<dyn NodeSource>>>,
}

impl NodeSources {
    pub(super) fn new() -> NodeSources {
        NodeSources {
            created_in: ForkEpoch::known(),
            sources: Mutex::new(Vec::new()),
        }
    }

    /// Adds a client, and forgets those that have ended: the text may never be asked for.
    pub(super) fn add(&self, source: Weak<dyn NodeSource>) {
        if self.is_inherited() {
            return;
        }
        let mut sources = lock(&self.sources);
        if sources.len() == sources.capacity() {
            sources.retain(|source| source.strong_count() > 0);
            // Twice as many as are left, so that an addition looks at two on average.
            let left = sources.len();
            sources.reserve(left + 1);
        }
        sources.push(source);
    }

    /// All nodes by address. For a node of several clients: what the least of them sees, and what
    /// all have counted.
    pub(super) fn samples(&self) -> Vec<NodeSample> {
        // In a child, a thread that it does not have may hold the mutex.
        if self.is_inherited() {
            return Vec::new();
        }
        // A source takes the mutex of its client, and may be the last owner of the client.
        let sources = lock(&self.sources).clone();
        let mut nodes: BTreeMap<String, NodeSample> = BTreeMap::new();
        let sources = sources.iter().filter_map(Weak::upgrade);
        for sample in sources.flat_map(NodeSource::samples) {
            nodes
                .entry(sample.address.clone())
                .and_modify(|known| known.merge(&sample))
                .or_insert(sample);
        }
        nodes.into_values().collect()
    }

    fn is_inherited(&self) -> bool {
        self.created_in.is_forked()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A client with these nodes.
    pub(in super::super) fn client(nodes: Vec<NodeSample>) -> Arc<dyn NodeSource> {
        Arc::new(Client(nodes))
    }

    struct Client(Vec<NodeSample>);

    impl NodeSource for Client {
        fn samples(self: Arc<Self>) -> Vec<NodeSample> {
            self.0.clone()
        }
    }

    #[test]
    fn clients_that_have_ended_take_no_memory_though_no_text_is_asked_for() {
        let sources = NodeSources::new();
        let there = client(Vec::new());
        sources.add(Arc::downgrade(&there));
        for _ in 0..1000 {
            sources.add(Arc::downgrade(&client(Vec::new())));
        }
        let kept = lock(&sources.sources);
        assert!(kept.capacity() < 16);
        assert!(kept.iter().any(|client| client.strong_count() > 0));
    }
}
