//! What the nodes hold of locks: what a key is for, what its value means, what each node has, and
//! what that comes to.

pub(crate) mod queue;
mod reading;
pub(crate) mod sighting;
pub(crate) mod survey;
pub(crate) mod token;
pub(crate) mod verdict;
