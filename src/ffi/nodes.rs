//! How the nodes of a client look, as C can ask: a copy of what the client knows.

use super::boundary::{enter, value};
use super::client::Client;
use super::code::Code;
use super::handle::{Lent, Output, Returned};
use super::report::{Fault, Report};
use super::text::Str;
use crate::{NodeState, NodeStatus};
use std::ffi::c_int;
use std::ptr::null;
use std::time::Duration;

/// `quorumlock_nodes`. It never changes.
pub(super) struct Nodes(Vec<Node>);

/// One of them, with the texts that C is shown.
struct Node {
    status: NodeStatus,
    message: String,
    server: String,
    run_id: String,
    last_fault: Option<Fault>,
}

/// `quorumlock_node_state`. Numbers are never given to anything else.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) enum State {
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
pub(super) enum Role {
    Unknown = 0,
    Master = 1,
    Replica = 2,
}

impl Node {
    fn new(status: NodeStatus) -> Node {
        let (message, server) = (status.to_string(), status.server().unwrap_or_default());
        let (run_id, last_fault) = (status.run_id().unwrap_or_default(), status.last_fault());
        Node { status, message, server, run_id, last_fault: last_fault.as_ref().map(Fault::new) }
    }

    fn state(&self) -> State {
        match self.status.state() {
            NodeState::Down(_) => State::Down,
            NodeState::Quarantined { .. } => State::Quarantined,
            NodeState::Rejected(_) => State::Rejected,
            NodeState::Unknown => State::Unknown,
            NodeState::Voting => State::Voting,
        }
    }

    fn quarantine(&self) -> Duration {
        match self.status.state() {
            NodeState::Quarantined { remaining } => remaining,
            _ => Duration::ZERO,
        }
    }

    fn role(&self) -> Role {
        match self.status.role() {
            None => Role::Unknown,
            Some(crate::Role::Master) => Role::Master,
            Some(crate::Role::Replica) => Role::Replica,
        }
    }
}

/// What one of the nodes says, if it is there.
fn of<R>(nodes: &Lent<Nodes>, index: usize, otherwise: R, say: impl FnOnce(&Node) -> R) -> R {
    value(otherwise, || nodes.optional()?.0.get(index).map(say))
}

/// Gives C the list that the client gives.
fn give(
    client: Lent<Client>,
    nodes: Output<*const Nodes>,
    error: Output<*const Report>,
    list: impl FnOnce(&Client) -> crate::Result<Vec<NodeStatus>>,
) -> Code {
    enter(error, || {
        let client = client.content("client")?;
        let nodes = nodes.required("nodes")?;
        nodes.give(Nodes(list(&client)?.into_iter().map(Node::new).collect()));
        Ok(Code::Ok)
    })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_client_nodes(
    client: Lent<Client>,
    nodes: Output<*const Nodes>,
    error: Output<*const Report>,
) -> Code {
    give(client, nodes, error, |client| client.redlock.nodes())
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_client_connect(
    client: Lent<Client>,
    timeout_ms: u64,
    nodes: Output<*const Nodes>,
    error: Output<*const Report>,
) -> Code {
    give(client, nodes, error, |client| client.redlock.connect(Duration::from_millis(timeout_ms)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_free(nodes: Returned<Nodes>) {
    value((), || nodes.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_count(nodes: Lent<Nodes>) -> usize {
    value(0, || Some(nodes.optional()?.0.len()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_state(nodes: Lent<Nodes>, index: usize) -> State {
    of(&nodes, index, State::None, Node::state)
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_message(nodes: Lent<Nodes>, index: usize) -> Str {
    of(&nodes, index, Str::EMPTY, |node| Str::of(&node.message))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_address(nodes: Lent<Nodes>, index: usize) -> Str {
    of(&nodes, index, Str::EMPTY, |node| Str::of(node.status.address()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_state_age_ms(nodes: Lent<Nodes>, index: usize) -> u64 {
    of(&nodes, index, 0, |node| millis(node.status.state_age()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_quarantine_ms(nodes: Lent<Nodes>, index: usize) -> u64 {
    of(&nodes, index, 0, |node| millis(node.quarantine()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_is_connected(nodes: Lent<Nodes>, index: usize) -> c_int {
    of(&nodes, index, 0, |node| node.status.is_connected().into())
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_is_durable(nodes: Lent<Nodes>, index: usize) -> c_int {
    of(&nodes, index, 0, |node| node.status.is_durable().into())
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_server(nodes: Lent<Nodes>, index: usize) -> Str {
    of(&nodes, index, Str::EMPTY, |node| Str::of(&node.server))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_run_id(nodes: Lent<Nodes>, index: usize) -> Str {
    of(&nodes, index, Str::EMPTY, |node| Str::of(&node.run_id))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_role(nodes: Lent<Nodes>, index: usize) -> Role {
    of(&nodes, index, Role::Unknown, Node::role)
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_eviction(nodes: Lent<Nodes>, index: usize) -> Str {
    of(&nodes, index, Str::EMPTY, |node| Str::of(node.status.eviction().unwrap_or_default()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_nodes_last_fault(nodes: Lent<Nodes>, index: usize) -> *const Fault {
    of(&nodes, index, null(), |node| node.last_fault.as_ref().map_or(null(), std::ptr::from_ref))
}
