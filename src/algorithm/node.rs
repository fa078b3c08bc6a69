//! Nodes by number: one, and a set of them.
//!
//! A set is a word with a bit for each node, so that counting votes costs nothing and allocates
//! nothing.

use std::fmt;

/// Most nodes of one lock. Beyond seven or nine, more masters add cost and no safety worth having.
pub const MAX_NODES: usize = 64;

/// A node's index in the order in which the nodes were named.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u8);

impl NodeId {
    /// The node with this index, below 64.
    pub const fn new(index: usize) -> NodeId {
        debug_assert!(index < MAX_NODES);
        NodeId(index as u8)
    }

    /// The index, counted from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// What nodes replied, in ascending order. For so few, a general sort is ten times the code.
pub fn ascending<T: Ord>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut sorted = Vec::new();
    for value in values {
        let place = sorted.partition_point(|other| *other <= value);
        sorted.insert(place, value);
    }
    sorted
}

/// A set of nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NodeSet(u64);

impl NodeSet {
    /// No node.
    pub const EMPTY: NodeSet = NodeSet(0);

    /// One node.
    pub const fn only(node: NodeId) -> NodeSet {
        NodeSet(1 << node.0)
    }

    /// Adds a node; true when it was not in the set.
    pub fn insert(&mut self, node: NodeId) -> bool {
        let before = self.0;
        self.0 |= 1 << node.0;
        self.0 != before
    }

    /// Adds or removes a node.
    pub fn set(&mut self, node: NodeId, is_in: bool) {
        self.0 = self.0 & !(1 << node.0) | u64::from(is_in) << node.0;
    }

    /// Whether the node is in the set.
    pub const fn contains(self, node: NodeId) -> bool {
        self.0 & (1 << node.0) != 0
    }

    /// How many nodes are in the set.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether the set holds no node.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The nodes of this set that are not in `other`.
    #[must_use]
    pub const fn without(self, other: NodeSet) -> NodeSet {
        NodeSet(self.0 & !other.0)
    }

    /// The nodes of either set.
    #[must_use]
    pub const fn union(self, other: NodeSet) -> NodeSet {
        NodeSet(self.0 | other.0)
    }

    /// The nodes, in order.
    pub fn iter(self) -> impl Iterator<Item = NodeId> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let node = (left != 0).then(|| NodeId(left.trailing_zeros() as u8));
            left &= left.wrapping_sub(1);
            node
        })
    }

    /// The first `count` nodes.
    pub const fn first(count: usize) -> NodeSet {
        debug_assert!(count <= MAX_NODES);
        NodeSet(u64::MAX.unbounded_shr((MAX_NODES - count) as u32))
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> NodeSet {
        let mut set = NodeSet::EMPTY;
        for node in nodes {
            set.insert(node);
        }
        set
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.iter().map(NodeId::index))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_each_node_once() {
        let last = NodeId::new(MAX_NODES - 1);
        let mut set: NodeSet = [NodeId::new(3), last, NodeId::new(3)].into_iter().collect();
        assert_eq!(
            (set.len(), set.contains(last), set.contains(NodeId::new(0))),
            (2, true, false)
        );
        assert!(!set.insert(last));
        assert_eq!(set.iter().map(NodeId::index).collect::<Vec<_>>(), [3, 63]);
        assert_eq!(
            format!("{:?} {last:?}", set.without([last].into_iter().collect())),
            "{3} node 63"
        );
        assert_eq!(
            [0, 1, 5, MAX_NODES].map(|count| NodeSet::first(count).len()),
            [0, 1, 5, MAX_NODES]
        );
        assert!(NodeSet::EMPTY.is_empty() && NodeSet::EMPTY.union(set) == set);
        assert_eq!(NodeSet::only(last).union(set), set);
        assert_eq!(
            NodeSet::only(NodeId::new(3)),
            set.without(NodeSet::only(last))
        );
        for is_in in [false, true, true, false, false] {
            set.set(last, is_in);
            assert_eq!(
                (set.len(), set.contains(last), set.contains(NodeId::new(3))),
                (1 + usize::from(is_in), is_in, true)
            );
        }
    }
}
