//! What is asked of the nodes: the types of the engine.

#[path = "../../../../src/engine/nodes/submission.rs"]
pub(crate) mod submission;
