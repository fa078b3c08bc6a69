//! What is known of each node: up, down, quarantined or unknown, and since when.
//!
//! Each change pushes one event, if the client has an observer.
//! [`Redlock::nodes`](crate::Redlock::nodes) shows the states.

use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::time::Timestamp;
use crate::events::event::Event;
use crate::events::event_queue::EventQueue;
use crate::events::names::Names;
use crate::fault::Fault;
use std::sync::Arc;
use std::time::Duration;

/// The states of all nodes, and which of them were reported.
pub(crate) struct NodeStates {
    /// None without an observer.
    queue: Option<Arc<EventQueue>>,
    nodes: Box<[NodeRecord]>,
    /// Nodes whose quarantine was reported, and its end was not.
    reported_quarantined: NodeSet,
    /// Nodes whose present quarantine was not reported yet.
    unreported_quarantined: NodeSet,
    /// Nodes that are down because they answer every attempt with an error.
    refusing: NodeSet,
}

/// What is known of one node.
#[derive(Clone, Copy)]
pub(crate) struct NodeRecord {
    pub(crate) state: NodeMode,
    /// When the node entered this state.
    pub(crate) since: Timestamp,
    /// Its last fault.
    pub(crate) fault: Option<Fault>,
}

/// The state of a node, as its replies show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeMode {
    Down,
    /// It answers, and its votes do not count yet.
    Quarantined,
    /// It was never connected.
    Unknown,
    /// It votes.
    Up,
}

impl NodeStates {
    pub(crate) fn new(queue: Option<Arc<EventQueue>>, nodes: usize, now: Timestamp) -> NodeStates {
        let unknown = NodeRecord {
            state: NodeMode::Unknown,
            since: now,
            fault: None,
        };
        NodeStates {
            queue,
            nodes: vec![unknown; nodes].into(),
            reported_quarantined: NodeSet::EMPTY,
            unreported_quarantined: NodeSet::EMPTY,
            refusing: NodeSet::EMPTY,
        }
    }

    /// What is known of a node.
    pub(crate) fn of(&self, node: NodeId) -> &NodeRecord {
        &self.nodes[node.index()]
    }

    pub(crate) fn is_up(&self, node: NodeId) -> bool {
        self.of(node).state == NodeMode::Up
    }

    /// The node votes. Reported if it did not before.
    pub(crate) fn mark_up(&mut self, node: NodeId, now: Timestamp) {
        if self.enter(node, NodeMode::Up, now) {
            self.push(|names| Event::NodeUp {
                node: names.node(node),
            });
        }
    }

    /// The node does not answer, or not for a lock. Reported if it was not down before.
    pub(crate) fn mark_down(&mut self, node: NodeId, fault: Fault, now: Timestamp) {
        self.clear_refusing(node);
        self.record_fault(node, fault);
        if self.enter(node, NodeMode::Down, now) {
            self.push(|names| Event::NodeDown {
                node: names.node(node),
                fault: names.fault(node, fault),
            });
        }
    }

    /// The node answers an attempt with an error. Reported as [`mark_down`](NodeStates::mark_down).
    pub(crate) fn mark_refusing(&mut self, node: NodeId, fault: Fault, now: Timestamp) {
        self.mark_down(node, fault, now);
        self.refusing.insert(node);
    }

    /// The node answers attempts again, or its connection is lost.
    pub(crate) fn clear_refusing(&mut self, node: NodeId) {
        self.refusing.set(node, false);
    }

    pub(crate) fn is_refusing(&self, node: NodeId) -> bool {
        self.refusing.contains(node)
    }

    /// The node answers, and cannot serve one lock, but can serve others.
    pub(crate) fn record_fault(&mut self, node: NodeId, fault: Fault) {
        self.nodes[node.index()].fault = Some(fault);
    }

    /// The node answers, and is in quarantine for this time. Reported if it was in another state
    /// before, or if this quarantine was not reported.
    pub(crate) fn mark_quarantined(&mut self, node: NodeId, remaining: Duration, now: Timestamp) {
        if self.enter(node, NodeMode::Quarantined, now)
            || self.unreported_quarantined.contains(node)
        {
            self.unreported_quarantined.set(node, false);
            self.reported_quarantined.insert(node);
            self.push(|names| Event::NodeQuarantined {
                node: names.node(node),
                remaining,
            });
        }
    }

    /// A quarantine begins. It is reported with the node's first reply.
    pub(crate) fn quarantine_began(&mut self, node: NodeId) {
        self.unreported_quarantined.insert(node);
    }

    /// The quarantine has ended. Reported if its beginning was.
    pub(crate) fn quarantine_ended(&mut self, node: NodeId) {
        self.unreported_quarantined.set(node, false);
        if self.reported_quarantined.contains(node) {
            self.reported_quarantined.set(node, false);
            self.push(|names| Event::QuarantineEnded {
                node: names.node(node),
            });
        }
    }

    /// Enters a state. True if the node was in another one.
    fn enter(&mut self, node: NodeId, state: NodeMode, now: Timestamp) -> bool {
        let record = &mut self.nodes[node.index()];
        let is_change = record.state != state;
        if is_change {
            record.state = state;
            record.since = now;
        }
        is_change
    }

    /// Reports something else about a node.
    pub(crate) fn push(&self, event: impl FnOnce(&Names) -> Event) {
        if let Some(queue) = &self.queue {
            queue.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Cause, Phase};

    const REFUSED: Fault = Fault::new(Phase::Connect, Cause::Refused);

    fn delivered(queue: &EventQueue) -> Vec<String> {
        let mut delivered = Vec::new();
        queue.deliver(usize::MAX, |event| delivered.push(event.to_string()));
        delivered
    }

    #[test]
    fn each_change_of_a_node_is_one_event() {
        let names = Names::new(&["node 0", "node 1", "node 2"].map(str::to_owned), "");
        let queue = Arc::new(EventQueue::new(Arc::new(names), None, true));
        let at = |seconds| Timestamp::ORIGIN.after(Duration::from_secs(seconds));
        let mut states = NodeStates::new(Some(Arc::clone(&queue)), 3, at(0));
        let one = NodeId::new(1);
        let two = NodeId::new(2);
        for now in [1, 2] {
            states.mark_up(one, at(now));
            states.mark_down(two, REFUSED, at(now));
        }
        assert!(states.is_up(one) && !states.is_up(two) && !states.is_up(NodeId::new(0)));
        states.mark_up(two, at(3));
        states.mark_down(one, REFUSED, at(4));
        let late = Fault::new(Phase::Reply, Cause::TimedOut);
        states.mark_down(one, late, at(5));
        assert_eq!(
            (states.of(one).since, states.of(one).fault),
            (at(4), Some(late))
        );
        states.mark_up(one, at(6));
        let down = |node| format!("node {node} is down: connection refused");
        let up = |node| format!("node {node} is up");
        let quarantined =
            |left| format!("node 1 may have forgotten locks, does not vote for {left} s");
        assert_eq!(delivered(&queue), [up(1), down(2), up(2), down(1), up(1)]);
        assert!(delivered(&queue).is_empty());

        let seconds = Duration::from_secs;
        states.quarantine_began(one);
        states.mark_quarantined(one, seconds(9), at(8));
        states.mark_quarantined(one, seconds(8), at(9));
        assert_eq!(
            (states.of(one).state, states.of(one).since),
            (NodeMode::Quarantined, at(8))
        );
        states.quarantine_began(one);
        states.mark_quarantined(one, seconds(9), at(10));
        assert_eq!(delivered(&queue), [quarantined(9), quarantined(9)]);
        states.mark_down(one, REFUSED, at(11));
        states.quarantine_began(one);
        states.mark_down(one, REFUSED, at(12));
        states.mark_quarantined(one, seconds(7), at(13));
        states.quarantine_ended(one);
        states.quarantine_ended(one);
        states.mark_up(one, at(20));
        states.quarantine_began(one);
        states.quarantine_ended(one);
        states.mark_up(one, at(21));
        let ended = "node 1 votes again after its quarantine".to_owned();
        assert_eq!(delivered(&queue), [down(1), quarantined(7), ended, up(1)]);
    }
}
