//! The state of the nodes at present.
//!
//! It is what is known already. Only a [`check`](Nodes::check) sends, connects or waits.

use super::Nodes;
use crate::algorithm::incarnation::mismatch::Mismatch;
use crate::algorithm::incarnation::summary::NodeNote;
use crate::algorithm::node::NodeId;
use crate::algorithm::time::Timestamp;
use crate::events::metrics::families::MISMATCHES;
use crate::events::metrics::nodes::NodeSample;
use crate::events::node_states::NodeMode;
use crate::fault::counts::FaultCounts;
use crate::fault::server_error::ServerError;
use crate::fault::{Cause, Fault, Phase};
use crate::protocol::latency::Histogram;
use crate::protocol::server_info::ServerInfo;
use std::time::Duration;

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct NodeStatusSnapshot {
    pub(crate) state: NodeStateSnapshot,
    /// How long it has been in this state.
    pub(crate) time: Duration,
    pub(crate) is_connected: bool,
    /// What it remembers of itself.
    pub(crate) note: NodeNote,
    /// For how long it has counted, by that.
    pub(crate) counted_for: Option<Duration>,
    pub(crate) mismatches: Vec<Mismatch>,
    /// What it has reported of itself.
    pub(crate) server_info: ServerInfo,
    pub(crate) last_fault: Option<Fault>,
    pub(crate) latency: Histogram,
    pub(crate) fault_counts: FaultCounts,
}

/// The state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeStateSnapshot {
    Down(Fault),
    /// For so long.
    Quarantined(Duration),
    Rejected(Fault),
    Unknown,
    Voting,
}

impl NodeStatusSnapshot {
    /// The state of each node now, in their order. Connections that were closed meanwhile are
    /// noticed.
    pub(in crate::engine) fn of_all(nodes: &mut Nodes, now: Timestamp) -> Vec<NodeStatusSnapshot> {
        nodes.connections.leave_late(now);
        for node in nodes.connections.nodes() {
            if nodes.connections[node].is_open() {
                nodes.refresh(node, now);
            }
        }
        nodes
            .connections
            .nodes()
            .map(|node| NodeStatusSnapshot::of(nodes, node, now))
            .collect()
    }

    /// The state of a node now.
    fn of(nodes: &Nodes, node: NodeId, now: Timestamp) -> NodeStatusSnapshot {
        let connection = &nodes.connections[node];
        let seen = nodes.connections.states.of(node);
        let remaining = connection.quarantine.remaining(now);
        let state = match (seen.state, seen.fault) {
            (NodeMode::Down, Some(fault)) if is_rejection(fault) => {
                NodeStateSnapshot::Rejected(fault)
            }
            (NodeMode::Down, fault) => NodeStateSnapshot::Down(fault.unwrap_or(connection.fault())),
            _ if !remaining.is_zero() => NodeStateSnapshot::Quarantined(remaining),
            (NodeMode::Unknown, _) => NodeStateSnapshot::Unknown,
            (NodeMode::Quarantined | NodeMode::Up, _) => NodeStateSnapshot::Voting,
        };
        NodeStatusSnapshot {
            state,
            time: now.since(seen.since),
            is_connected: connection.is_open(),
            note: nodes.incarnations.summary(node, now),
            counted_for: nodes.incarnations.counted_for(node, now),
            mismatches: nodes.incarnations.mismatches[node.index()].clone(),
            server_info: connection.server_info.clone(),
            last_fault: seen.fault,
            latency: connection.session.latency.clone(),
            fault_counts: nodes.rounds.fault_counts(node).clone(),
        }
    }

    /// What counters show of the node.
    pub(crate) fn sample(&self, address: &str) -> NodeSample {
        let quarantine = match self.state {
            NodeStateSnapshot::Quarantined(remaining) => remaining,
            _ => Duration::ZERO,
        };
        let votes = self.state == NodeStateSnapshot::Voting;
        NodeSample {
            address: address.to_owned(),
            is_up: votes || !quarantine.is_zero(),
            votes,
            quarantine,
            mismatches: MISMATCHES.map(|kind| {
                self.mismatches
                    .iter()
                    .any(|mismatch| mismatch.kind() == kind)
            }),
            replies: self.latency.clone(),
            faults: self.fault_counts.clone(),
        }
    }
}

/// Whether a fault means that the node answers, does not serve as one, and that this does not pass
/// by itself. That a server is out of memory, or lacks replicas, does not pass by itself either, as
/// a rule.
fn is_rejection(fault: Fault) -> bool {
    match fault.cause {
        Cause::Closed | Cause::Protocol | Cause::System(_) | Cause::TimedOut => false,
        Cause::Refused | Cause::UnknownHost | Cause::Unreachable => false,
        Cause::Loading | Cause::Server(ServerError::Busy) | Cause::TooManyClients => {
            fault.phase == Phase::Handshake
        }
        _ => matches!(fault.phase, Phase::Handshake | Phase::Reply),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_shows_what_the_node_is_and_what_does_not_fit() {
        let second = Duration::from_secs(1);
        let fault = Fault::new(Phase::Connect, Cause::Closed);
        for (state, is_up, votes, quarantine) in [
            (NodeStateSnapshot::Voting, true, true, Duration::ZERO),
            (NodeStateSnapshot::Quarantined(second), true, false, second),
            (NodeStateSnapshot::Down(fault), false, false, Duration::ZERO),
            (NodeStateSnapshot::Unknown, false, false, Duration::ZERO),
        ] {
            let status = NodeStatusSnapshot {
                state,
                time: second,
                is_connected: true,
                note: NodeNote::Unknown,
                counted_for: None,
                mismatches: vec![Mismatch::Rights],
                server_info: ServerInfo::default(),
                last_fault: None,
                latency: Histogram::default(),
                fault_counts: FaultCounts::default(),
            };
            let sample = status.sample("10.0.0.1:6379");
            let shown = (sample.is_up, sample.votes, sample.quarantine);
            assert_eq!(shown, (is_up, votes, quarantine), "{state:?}");
            let rights = MISMATCHES.map(|kind| kind == Mismatch::Rights.kind());
            assert_eq!(sample.mismatches, rights);
        }
    }
}
