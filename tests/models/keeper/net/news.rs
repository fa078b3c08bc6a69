//! What the network would note for an observer. Nobody is told anything here.

use crate::proto::fault::Fault;
use crate::proto::node::NodeId;
use crate::proto::vote::ReleaseOutcome;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Farewell {
    pub(crate) key: Arc<str>,
    pub(crate) was_valid: bool,
    pub(crate) loss_told: bool,
}

pub(crate) enum Item {
    Release(Farewell, ReleaseOutcome, Vec<(NodeId, Fault)>),
}

#[derive(Debug)]
pub(crate) struct News;

impl News {
    pub(super) fn push(&self, _: Item) {}
}
