//! What turns keys and numbers of nodes into the names that events show.

use crate::algorithm::node::{NodeId, NodeSet};
use crate::events::error::NodeFault;
use crate::fault::Fault;
use crate::protocol::key_space;
use std::sync::Arc;

/// The addresses of a client's nodes, and the prefix of its keys.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) nodes: Box<[Arc<str>]>,
    pub(crate) prefix: String,
}

impl Names {
    pub(crate) fn new(nodes: &[String], prefix: &str) -> Names {
        Names {
            nodes: nodes.iter().map(|node| node.as_str().into()).collect(),
            prefix: prefix.to_owned(),
        }
    }

    /// The name of the lock with this key.
    pub(crate) fn name_of<'k>(&self, key: &'k str) -> &'k str {
        key_space::name(key, self.prefix.len())
    }

    /// The same for an event: if the name is the whole key, no text is copied.
    pub(crate) fn lock(&self, key: &Arc<str>) -> Arc<str> {
        let name = self.name_of(key);
        if name.len() == key.len() {
            Arc::clone(key)
        } else {
            name.into()
        }
    }

    pub(crate) fn node(&self, node: NodeId) -> Arc<str> {
        Arc::clone(&self.nodes[node.index()])
    }

    pub(crate) fn nodes(&self, nodes: NodeSet) -> Vec<Arc<str>> {
        nodes.iter().map(|node| self.node(node)).collect()
    }

    pub(crate) fn fault(&self, node: NodeId, fault: Fault) -> NodeFault {
        NodeFault::new(self.node(node), fault)
    }

    pub(crate) fn faults(&self, faults: &[(NodeId, Fault)]) -> Vec<NodeFault> {
        faults
            .iter()
            .map(|&(node, fault)| self.fault(node, fault))
            .collect()
    }
}
