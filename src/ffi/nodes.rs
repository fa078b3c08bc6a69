//! The state of the nodes of a client: a copy, which C reads by index.

use super::boundary::{call_or, call_with_error};
use super::client::ClientHandle;
use super::code::Code;
use super::error_object::{ErrorObject, FaultObject};
use super::handle::{Borrowed, Output, Returned};
use super::text::Str;
use super::times::{micros, millis};
use crate::{NodeState, NodeStatus};
use std::ffi::c_int;
use std::ptr::null;
use std::time::Duration;

/// `quorumlock_nodes`. It never changes.
pub(super) struct NodeList(Vec<NodeEntry>);

/// One of them, with the texts that C is shown.
struct NodeEntry {
    status: NodeStatus,
    message: String,
    server: String,
    run_id: String,
    last_fault: Option<FaultObject>,
    faults: Vec<(FaultObject, u64)>,
}

/// `quorumlock_node_state`. Numbers are never given to anything else.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) enum NodeStateNumber {
    None = 0,
    Unknown = 1,
    Voting = 2,
    Down = 3,
    Rejected = 4,
    Quarantined = 5,
}

/// `quorumlock_role`. Numbers are never given to anything else.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) enum RoleNumber {
    Unknown = 0,
    Master = 1,
    Replica = 2,
}

impl NodeEntry {
    fn new(status: NodeStatus) -> NodeEntry {
        let message = status.to_string();
        let server = status.server().unwrap_or_default();
        let run_id = status.run_id().unwrap_or_default();
        let last_fault = status.last_fault();
        let faults = status
            .faults()
            .iter()
            .map(|(fault, count)| (FaultObject::new(fault), *count))
            .collect();
        let last_fault = last_fault.as_ref().map(FaultObject::new);
        NodeEntry {
            status,
            message,
            server,
            run_id,
            last_fault,
            faults,
        }
    }

    fn state(&self) -> NodeStateNumber {
        match self.status.state() {
            NodeState::Down(_) => NodeStateNumber::Down,
            NodeState::Quarantined { .. } => NodeStateNumber::Quarantined,
            NodeState::Rejected(_) => NodeStateNumber::Rejected,
            NodeState::Unknown => NodeStateNumber::Unknown,
            NodeState::Voting => NodeStateNumber::Voting,
        }
    }

    fn quarantine(&self) -> Duration {
        match self.status.state() {
            NodeState::Quarantined { remaining } => remaining,
            _ => Duration::ZERO,
        }
    }

    fn role(&self) -> RoleNumber {
        match self.status.is_master() {
            None => RoleNumber::Unknown,
            Some(true) => RoleNumber::Master,
            Some(false) => RoleNumber::Replica,
        }
    }
}

/// A field of one of the nodes, if it is there.
fn of<R>(
    nodes: &Borrowed<NodeList>,
    index: usize,
    otherwise: R,
    say: impl FnOnce(&NodeEntry) -> R,
) -> R {
    call_or(otherwise, || nodes.optional()?.0.get(index).map(say))
}

/// Writes the list of the client as a handle.
fn write_list(
    client: Borrowed<ClientHandle>,
    nodes: Output<*const NodeList>,
    error: Output<*const ErrorObject>,
    list: impl FnOnce(&ClientHandle) -> crate::Result<Vec<NodeStatus>>,
) -> Code {
    call_with_error(error, || {
        let client = client.required("client")?;
        let nodes = nodes.required("nodes")?;
        nodes.write_handle(NodeList(
            list(&client)?.into_iter().map(NodeEntry::new).collect(),
        ));
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_client_nodes(
    client: Borrowed<ClientHandle>,
    nodes: Output<*const NodeList>,
    error: Output<*const ErrorObject>,
) -> Code {
    write_list(client, nodes, error, |client| client.redlock.nodes())
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_client_connect(
    client: Borrowed<ClientHandle>,
    timeout_ms: u64,
    nodes: Output<*const NodeList>,
    error: Output<*const ErrorObject>,
) -> Code {
    write_list(client, nodes, error, |client| {
        client.redlock.connect(Duration::from_millis(timeout_ms))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_free(nodes: Returned<NodeList>) {
    call_or((), || nodes.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_count(nodes: Borrowed<NodeList>) -> usize {
    call_or(0, || Some(nodes.optional()?.0.len()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_state(nodes: Borrowed<NodeList>, index: usize) -> NodeStateNumber {
    of(&nodes, index, NodeStateNumber::None, NodeEntry::state)
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_message(nodes: Borrowed<NodeList>, index: usize) -> Str {
    of(&nodes, index, Str::EMPTY, |node| Str::of(&node.message))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_address(nodes: Borrowed<NodeList>, index: usize) -> Str {
    of(&nodes, index, Str::EMPTY, |node| {
        Str::of(node.status.address())
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_state_age_ms(nodes: Borrowed<NodeList>, index: usize) -> u64 {
    of(&nodes, index, 0, |node| millis(node.status.state_age()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_quarantine_ms(nodes: Borrowed<NodeList>, index: usize) -> u64 {
    of(&nodes, index, 0, |node| millis(node.quarantine()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_counted_ms(nodes: Borrowed<NodeList>, index: usize) -> u64 {
    of(&nodes, index, 0, |node| {
        millis(node.status.counted_for().unwrap_or_default())
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_is_connected(nodes: Borrowed<NodeList>, index: usize) -> c_int {
    of(&nodes, index, 0, |node| node.status.is_connected().into())
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_is_durable(nodes: Borrowed<NodeList>, index: usize) -> c_int {
    of(&nodes, index, 0, |node| node.status.is_durable().into())
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_server(nodes: Borrowed<NodeList>, index: usize) -> Str {
    of(&nodes, index, Str::EMPTY, |node| Str::of(&node.server))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_run_id(nodes: Borrowed<NodeList>, index: usize) -> Str {
    of(&nodes, index, Str::EMPTY, |node| Str::of(&node.run_id))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_role(nodes: Borrowed<NodeList>, index: usize) -> RoleNumber {
    of(&nodes, index, RoleNumber::Unknown, NodeEntry::role)
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_eviction(nodes: Borrowed<NodeList>, index: usize) -> Str {
    of(&nodes, index, Str::EMPTY, |node| {
        Str::of(node.status.eviction().unwrap_or_default())
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_last_fault(
    nodes: Borrowed<NodeList>,
    index: usize,
) -> *const FaultObject {
    of(&nodes, index, null(), |node| {
        node.last_fault.as_ref().map_or(null(), std::ptr::from_ref)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_latency_count(nodes: Borrowed<NodeList>, index: usize) -> u64 {
    of(&nodes, index, 0, |node| node.status.latency().count)
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_latency_p50_us(nodes: Borrowed<NodeList>, index: usize) -> u64 {
    of(&nodes, index, 0, |node| micros(node.status.latency().p50))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_latency_p99_us(nodes: Borrowed<NodeList>, index: usize) -> u64 {
    of(&nodes, index, 0, |node| micros(node.status.latency().p99))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_latency_max_us(nodes: Borrowed<NodeList>, index: usize) -> u64 {
    of(&nodes, index, 0, |node| micros(node.status.latency().max))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_fault_kinds(nodes: Borrowed<NodeList>, index: usize) -> usize {
    of(&nodes, index, 0, |node| node.faults.len())
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_fault(
    nodes: Borrowed<NodeList>,
    index: usize,
    kind: usize,
) -> *const FaultObject {
    of(&nodes, index, null(), |node| {
        node.faults
            .get(kind)
            .map_or(null(), |(fault, _)| std::ptr::from_ref(fault))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_fault_count(
    nodes: Borrowed<NodeList>,
    index: usize,
    kind: usize,
) -> u64 {
    of(&nodes, index, 0, |node| {
        node.faults.get(kind).map_or(0, |&(_, count)| count)
    })
}
