//! How the nodes look at present, for those who ask.
//!
//! It is what is known already: nothing is sent, connected or waited for, but by a [`check`](Nodes::check).

use super::Nodes;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::time::Timestamp;
use crate::engine::driver::WaitSlots;
use crate::engine::node_connection::NodeConnection;
use crate::engine::rounds::{Purpose, RoundResult};
use crate::events::node_states::NodeMode;
use crate::protocol::server_info::ServerInfo;
use crate::protocol::session::Ticket;
use std::time::Duration;

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct NodeStatusSnapshot {
    pub(crate) look: NodeStateSnapshot,
    /// How long it has looked like this.
    pub(crate) time: Duration,
    pub(crate) is_connected: bool,
    /// What it has told of itself.
    pub(crate) identity: ServerInfo,
    pub(crate) last_fault: Option<Fault>,
}

/// What to think of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeStateSnapshot {
    Down(Fault),
    /// For so long.
    Quarantined(Duration),
    Rejected(Fault),
    Unknown,
    Voting,
}

impl Nodes {
    /// Asks every node whether it may vote, and begins to connect to those that there is no connection to.
    pub(in crate::engine) fn check(&mut self, now: Timestamp, bells: &mut WaitSlots) -> Ticket {
        self.settle_posts(now, bells);
        // It is about no key.
        let ticket = self.rounds.open(Purpose::Check, b"", &OwnerToken::from_entropy([0; OwnerToken::ENTROPY]));
        let asked = self.prepare_all(ticket, now, bells);
        for node in asked.iter() {
            self.links[node.index()].asks(now);
            self.links[node.index()].session.check(ticket, now);
        }
        self.rounds.refer(ticket, asked);
        self.queued(asked, now);
        ticket
    }

    /// What a check has come to, which is noted for those nodes that have failed.
    pub(in crate::engine) fn checked(&mut self, ticket: Ticket) -> RoundResult {
        let (count, now) = (self.rounds.conclude(ticket), self.clock.now());
        for &(node, fault) in count.faults.iter().filter(|(_, fault)| fault.cause != Cause::Quarantined) {
            self.note_failure(node, fault, now);
        }
        count
    }

    /// How the nodes look now, in their order. Connections that were closed meanwhile are noticed.
    pub(in crate::engine) fn status(&mut self, now: Timestamp, bells: &mut WaitSlots) -> Vec<NodeStatusSnapshot> {
        for node in self.nodes() {
            if self.links[node.index()].is_open() {
                self.look(node, now, bells);
            }
        }
        let snapshot = |(node, link): (_, &NodeConnection)| {
            let record = self.presence.of(node);
            let remaining = link.quarantine.remaining(now);
            let look = match (record.state, record.fault) {
                (NodeMode::Down, Some(fault)) if is_verdict(fault) => NodeStateSnapshot::Rejected(fault),
                (NodeMode::Down, fault) => NodeStateSnapshot::Down(fault.unwrap_or(link.fault())),
                _ if !remaining.is_zero() => NodeStateSnapshot::Quarantined(remaining),
                (NodeMode::Unknown, _) => NodeStateSnapshot::Unknown,
                (NodeMode::Quarantined | NodeMode::Up, _) => NodeStateSnapshot::Voting,
            };
            NodeStatusSnapshot {
                look,
                time: now.since(record.since),
                is_connected: link.is_open(),
                identity: link.known.clone(),
                last_fault: record.fault,
            }
        };
        self.nodes().zip(&self.links).map(snapshot).collect()
    }
}

impl Nodes {
    /// The nodes that vote and answer in time, as far as is known.
    pub(in crate::engine) fn voting(&self, now: Timestamp) -> NodeSet {
        let votes = |node: &NodeId| self.presence.is_up(*node) && self.links[node.index()].is_responsive(now);
        self.nodes().filter(votes).collect()
    }
}

/// Whether a fault says that the node answers and does not serve as one, and does not pass by itself: a server whose memory
/// is full or that lacks replicas does not either, as a rule.
fn is_verdict(fault: Fault) -> bool {
    match fault.cause {
        Cause::Closed | Cause::Protocol(_) | Cause::System(_) | Cause::TimedOut => false,
        Cause::Refused | Cause::UnknownHost | Cause::Unreachable => false,
        Cause::Loading | Cause::Server("BUSY") | Cause::TooManyClients => fault.phase == Phase::Handshake,
        _ => matches!(fault.phase, Phase::Handshake | Phase::Reply),
    }
}
