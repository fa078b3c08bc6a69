//! The state of the nodes at present.
//!
//! It is what is known already. Only a [`check`](Nodes::check) sends, connects or waits.

use super::Nodes;
use crate::algorithm::incarnation::mismatch::Mismatch;
use crate::algorithm::incarnation::summary::NodeNote;
use crate::algorithm::node::NodeId;
use crate::algorithm::time::{Human, Timestamp};
use crate::events::metrics::families::MISMATCHES;
use crate::events::metrics::nodes::NodeSample;
use crate::events::node_states::NodeMode;
use crate::fault::counts::FaultCounts;
use crate::fault::server_error::ServerError;
use crate::fault::{Cause, Fault, Phase};
use crate::protocol::latency::Histogram;
use crate::protocol::server_info::ServerInfo;
use std::fmt;
use std::time::Duration;

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct NodeStatusSnapshot {
    pub(crate) state: NodeState,
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

/// What a node is to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeState {
    /// It cannot be asked: not connected to, hung, or out of step. It is tried again with growing
    /// delays, for ever.
    Down(Cause),
    /// It answers, and its votes do not count yet, because it was restarted, or was a replica for a
    /// while, and may have forgotten locks: see [`RestartPolicy`](crate::RestartPolicy).
    Quarantined {
        /// How long it still lasts, unless the node is restarted again.
        remaining: Duration,
    },
    /// It answers, and does not vote: a replica, one of several shards of a cluster, a wrong
    /// password, the same server as another node; or it answered the last attempt with an error
    /// that does not pass by itself, such as out of memory, no permission or too few replicas. It
    /// is tried again, in case that changes. An error that passes, as while a script runs for long,
    /// is [`Down`](NodeState::Down).
    Rejected(Cause),
    /// No connection has been tried. Connections are made when the first lock is taken.
    Unknown,
    /// It votes.
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
                NodeState::Rejected(fault.cause)
            }
            (NodeMode::Down, fault) => {
                NodeState::Down(fault.unwrap_or(connection.health.fault()).cause)
            }
            _ if !remaining.is_zero() => NodeState::Quarantined { remaining },
            (NodeMode::Unknown, _) => NodeState::Unknown,
            (NodeMode::Quarantined | NodeMode::Up, _) => NodeState::Voting,
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
            NodeState::Quarantined { remaining } => remaining,
            _ => Duration::ZERO,
        };
        let votes = self.state == NodeState::Voting;
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

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeState::Down(cause) => write!(f, "down, {cause}"),
            NodeState::Quarantined { remaining } => {
                write!(f, "in quarantine, {} left", Human(*remaining))
            }
            NodeState::Rejected(cause) => write!(f, "rejected, {cause}"),
            NodeState::Unknown => f.write_str("unknown"),
            NodeState::Voting => f.write_str("voting"),
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
        for (state, is_up, votes, quarantine) in [
            (NodeState::Voting, true, true, Duration::ZERO),
            (
                NodeState::Quarantined { remaining: second },
                true,
                false,
                second,
            ),
            (NodeState::Down(Cause::Closed), false, false, Duration::ZERO),
            (NodeState::Unknown, false, false, Duration::ZERO),
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

    #[test]
    fn a_node_is_rejected_that_answers_and_does_not_serve_for_as_long_as_it_is_so() {
        for (phase, cause, is_rejected) in [
            (Phase::Reply, Cause::Closed, false),
            (Phase::Handshake, Cause::TimedOut, false),
            (Phase::Handshake, Cause::Protocol, false),
            (Phase::Reply, Cause::System(5), false),
            (Phase::Handshake, Cause::Refused, false),
            (Phase::Handshake, Cause::Unreachable, false),
            (Phase::Handshake, Cause::Loading, true),
            (Phase::Reply, Cause::Loading, false),
            (Phase::Reply, Cause::TooManyClients, false),
            (Phase::Reply, Cause::OutOfMemory, true),
            (Phase::Handshake, Cause::Auth, true),
            (Phase::Connect, Cause::Auth, false),
        ] {
            let fault = Fault::new(phase, cause);
            assert_eq!(is_rejection(fault), is_rejected, "{fault:?}");
        }
    }

    #[test]
    fn a_state_is_shown_with_its_cause_or_its_end() {
        let remaining = Duration::from_secs(9);
        for (state, shown) in [
            (NodeState::Down(Cause::Refused), "down, connection refused"),
            (
                NodeState::Quarantined { remaining },
                "in quarantine, 9 s left",
            ),
            (NodeState::Rejected(Cause::Loading), "rejected, "),
            (NodeState::Unknown, "unknown"),
            (NodeState::Voting, "voting"),
        ] {
            assert!(state.to_string().starts_with(shown), "{state}");
        }
    }
}
