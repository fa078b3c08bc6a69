//! The state of the nodes at present.
//!
//! It is what is known already. Only a [`check`](Nodes::check) sends, connects or waits.

use super::Nodes;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::fault_counts::FaultCounts;
use crate::algorithm::incarnation::mismatch::Mismatch;
use crate::algorithm::incarnation::summary::NodeNote;
use crate::algorithm::latency::Histogram;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::server_error::ServerError;
use crate::algorithm::time::Timestamp;
use crate::engine::rounds::{Purpose, RoundResult};
use crate::events::metrics::families::MISMATCHES;
use crate::events::metrics::nodes::NodeSample;
use crate::events::node_states::NodeMode;
use crate::protocol::server_info::ServerInfo;
use crate::protocol::session::Ticket;
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
            mismatches: MISMATCHES.map(|kind| self.mismatches.iter().any(|mismatch| mismatch.kind() == kind)),
            replies: self.latency.clone(),
            faults: self.fault_counts.clone(),
        }
    }
}

impl Nodes {
    /// Asks every node whether it may vote, and begins to connect to those that there is no connection to.
    pub(in crate::engine) fn check(&mut self, now: Timestamp) -> Ticket {
        self.ask_alone(Purpose::Check, |session, ticket| session.check(ticket, now), now)
    }

    /// The result of a check. The state of each node that failed notes its fault.
    pub(in crate::engine) fn conclude_check(&mut self, ticket: Ticket) -> RoundResult {
        let (result, now) = (self.rounds.conclude(ticket), self.clock.now());
        for &(node, fault) in result.faults.iter().filter(|(_, fault)| fault.cause != Cause::Quarantined) {
            self.filter(node).note_failure(fault, now);
        }
        result
    }

    /// The state of each node now, in their order. Connections that were closed meanwhile are noticed.
    pub(in crate::engine) fn status(&mut self, now: Timestamp) -> Vec<NodeStatusSnapshot> {
        self.leave_late(now);
        for node in self.nodes() {
            if self.node(node).is_open() {
                self.refresh(node, now);
            }
        }
        self.nodes().map(|node| self.snapshot(node, now)).collect()
    }

    /// The nodes that vote and answer in time, as far as is known.
    pub(in crate::engine) fn voting(&mut self, now: Timestamp) -> NodeSet {
        self.leave_late(now);
        let votes = |node: &NodeId| self.states.is_up(*node) && self.node(*node).is_responsive(now);
        self.nodes().filter(votes).collect()
    }

    fn snapshot(&self, node: NodeId, now: Timestamp) -> NodeStatusSnapshot {
        let (connection, seen) = (self.node(node), self.states.of(node));
        let remaining = connection.quarantine.remaining(now);
        let state = match (seen.state, seen.fault) {
            (NodeMode::Down, Some(fault)) if is_rejection(fault) => NodeStateSnapshot::Rejected(fault),
            (NodeMode::Down, fault) => NodeStateSnapshot::Down(fault.unwrap_or(connection.fault())),
            _ if !remaining.is_zero() => NodeStateSnapshot::Quarantined(remaining),
            (NodeMode::Unknown, _) => NodeStateSnapshot::Unknown,
            (NodeMode::Quarantined | NodeMode::Up, _) => NodeStateSnapshot::Voting,
        };
        NodeStatusSnapshot {
            state,
            time: now.since(seen.since),
            is_connected: connection.is_open(),
            note: self.incarnations.summary(node, now),
            counted_for: self.incarnations.counted_for(node, now),
            mismatches: self.incarnations.mismatches[node.index()].clone(),
            server_info: connection.server_info.clone(),
            last_fault: seen.fault,
            latency: connection.session.latency.clone(),
            fault_counts: self.rounds.fault_counts(node).clone(),
        }
    }
}

/// Whether a fault means that the node answers, does not serve as one, and that this does not pass by itself. That a
/// server is out of memory, or lacks replicas, does not pass by itself either, as a rule.
fn is_rejection(fault: Fault) -> bool {
    match fault.cause {
        Cause::Closed | Cause::Protocol | Cause::System(_) | Cause::TimedOut => false,
        Cause::Refused | Cause::UnknownHost | Cause::Unreachable => false,
        Cause::Loading | Cause::Server(ServerError::Busy) | Cause::TooManyClients => fault.phase == Phase::Handshake,
        _ => matches!(fault.phase, Phase::Handshake | Phase::Reply),
    }
}
