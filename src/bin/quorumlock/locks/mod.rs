//! What the nodes hold of locks: what a value means, what each node has, and what that comes to.

pub(crate) mod content;
pub(crate) mod survey;
pub(crate) mod verdict;
