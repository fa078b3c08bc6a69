//! A link to a server that has its vote by another URL, or to one that repeats the run id of another server.

use super::{BACKLOG_LIMIT, NodeConnection};
use crate::algorithm::time::Timestamp;

impl NodeConnection {
    /// Whether the node was rejected for that.
    pub(in crate::engine) fn is_duplicate(&self) -> bool {
        self.session.standing().is_duplicate()
    }

    /// Whether a grant may come from here, which counts as the other node's.
    pub(in crate::engine) fn may_grant_for_another(&self, now: Timestamp) -> bool {
        self.is_duplicate() && self.is_open() && !self.is_overdue(now) && self.session.backlog() <= BACKLOG_LIMIT
    }
}
