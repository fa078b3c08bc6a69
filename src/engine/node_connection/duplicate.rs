//! A connection to a server that has its vote by another URL, or to one that repeats the run id of another server.

use super::{BACKLOG_LIMIT, NodeConnection};
use crate::algorithm::fault::{Cause, Fault};
use crate::algorithm::node::NodeId;
use crate::algorithm::run_id::RunId;
use crate::algorithm::time::Timestamp;
use crate::protocol::session::HandshakeState;

impl NodeConnection {
    /// Whether the node was rejected for that.
    pub(in crate::engine) fn is_duplicate(&self) -> bool {
        self.session.standing().is_duplicate()
    }

    /// The node that votes for the server, if the node was rejected for that.
    pub(in crate::engine) fn voter(&self) -> Option<NodeId> {
        match self.session.standing() {
            HandshakeState::Rejected(Fault { cause: Cause::Duplicate(voter), .. }) => Some(voter),
            _ => None,
        }
    }

    /// Whether a grant may come from here, which counts as the other node's.
    pub(in crate::engine) fn may_grant_for_another(&self, now: Timestamp) -> bool {
        self.is_duplicate() && self.is_open() && !self.is_overdue(now) && self.session.backlog() <= BACKLOG_LIMIT
    }

    /// The process at the other end, if it is known and may have voted in a round in flight. A round lasts two node
    /// timeouts at most.
    pub(in crate::engine) fn run_id(&self, now: Timestamp) -> Option<RunId> {
        let counts = self.is_open() || now.since(self.checked_at) <= self.node_timeout * 2;
        (counts && self.session.standing() == HandshakeState::Accepted).then(|| self.session.identity().run_id())?
    }
}
