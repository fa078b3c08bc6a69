//! The state of the nodes of a client: a copy, which C reads by index.

use super::boundary::{calls, frees, parts};
use super::fault::FaultObject;
use super::handle::{Borrowed, View};
use super::text::Str;
use super::times::{micros, millis};
use crate::{NodeState, NodeStatus, Redlock};
use std::ffi::c_int;
use std::time::Duration;

/// `quorumlock_nodes`. It never changes.
struct NodeList(Vec<NodeEntry>);

/// One of them, with the texts that C is shown.
struct NodeEntry {
    status: NodeStatus,
    message: String,
    server: String,
    run_id: String,
    last_fault: Option<FaultObject>,
    faults: Vec<(FaultObject, u64)>,
}

impl NodeEntry {
    fn new(status: NodeStatus) -> NodeEntry {
        let faults = status.faults();
        let faults = faults.iter().map(|(fault, count)| (fault.into(), *count));
        NodeEntry {
            message: status.to_string(),
            server: status.server().unwrap_or_default(),
            run_id: status.run_id().unwrap_or_default(),
            last_fault: status.last_fault().as_ref().map(FaultObject::from),
            faults: faults.collect(),
            status,
        }
    }
}

/// `quorumlock_node_state`.
pub(super) fn state_number(state: NodeState) -> c_int {
    match state {
        NodeState::Unknown => 1,
        NodeState::Voting => 2,
        NodeState::Down(_) => 3,
        NodeState::Rejected(_) => 4,
        NodeState::Quarantined { .. } => 5,
    }
}

/// `quorumlock_role`.
pub(super) fn role_number(is_master: Option<bool>) -> c_int {
    match is_master {
        None => 0,
        Some(true) => 1,
        Some(false) => 2,
    }
}

impl NodeList {
    fn new(nodes: Vec<NodeStatus>) -> NodeList {
        NodeList(nodes.into_iter().map(NodeEntry::new).collect())
    }

    /// A part of one of the nodes, if it is there.
    fn of<R: Default>(&self, index: usize, part: impl FnOnce(&NodeEntry) -> R) -> R {
        self.0.get(index).map(part).unwrap_or_default()
    }
}

calls! {
    fn quorumlock_client_nodes(&client: Redlock; new nodes: NodeList; error) {
        NodeList::new(client.nodes()?)
    }

    fn quorumlock_client_connect(
        &client: Redlock,
        timeout_ms: u64;
        new nodes: NodeList;
        error
    ) {
        let timeout = Duration::from_millis(timeout_ms);
        NodeList::new(client.connect(timeout)?)
    }
}

frees! { quorumlock_nodes_free(NodeList); }

parts! { Borrowed<NodeList>:
    quorumlock_nodes_count() -> usize = |nodes| nodes.0.len();
}

/// Parts of the node with this index.
macro_rules! node_parts {
    ($($name:ident($($kind:ident)?) -> $part:ty = $read:expr;)*) => {
        parts! { Borrowed<NodeList>: $(
            $name(index: usize $(, $kind: usize)?) -> $part = |nodes| nodes.of(index, $read);
        )* }
    };
}

node_parts! {
    quorumlock_nodes_state() -> c_int = |node| state_number(node.status.state());
    quorumlock_nodes_message() -> Str = |node| Str::of(&node.message);
    quorumlock_nodes_address() -> Str = |node| Str::of(node.status.address());
    quorumlock_nodes_state_age_ms() -> u64 = |node| millis(node.status.state_age());
    quorumlock_nodes_quarantine_ms() -> u64 = |node| match node.status.state() {
        NodeState::Quarantined { remaining } => millis(remaining),
        _ => 0,
    };
    quorumlock_nodes_counted_ms() -> u64 =
        |node| millis(node.status.counted_for().unwrap_or_default());
    quorumlock_nodes_is_connected() -> c_int = |node| node.status.is_connected().into();
    quorumlock_nodes_is_durable() -> c_int = |node| node.status.is_durable().into();
    quorumlock_nodes_server() -> Str = |node| Str::of(&node.server);
    quorumlock_nodes_run_id() -> Str = |node| Str::of(&node.run_id);
    quorumlock_nodes_role() -> c_int = |node| role_number(node.status.is_master());
    quorumlock_nodes_eviction() -> Str = |node| Str::of(node.status.eviction().unwrap_or_default());
    quorumlock_nodes_last_fault() -> View<FaultObject> = |node| View::of(node.last_fault.as_ref());
    quorumlock_nodes_latency_count() -> u64 = |node| node.status.latency().count;
    quorumlock_nodes_latency_p50_us() -> u64 = |node| micros(node.status.latency().p50);
    quorumlock_nodes_latency_p99_us() -> u64 = |node| micros(node.status.latency().p99);
    quorumlock_nodes_latency_max_us() -> u64 = |node| micros(node.status.latency().max);
    quorumlock_nodes_fault_kinds() -> usize = |node| node.faults.len();
    quorumlock_nodes_fault(kind) -> View<FaultObject> =
        |node| View::of(node.faults.get(kind).map(|(fault, _)| fault));
    quorumlock_nodes_fault_count(kind) -> u64 =
        |node| node.faults.get(kind).map_or(0, |&(_, count)| count);
}
