//! Whether a node can follow the log of commands, and whether it is too far behind.

use super::{BACKLOG_LIMIT, NodeConnection, UNSENT_HARD_LIMIT};
use crate::algorithm::time::Timestamp;
use crate::protocol::session::Log;

impl NodeConnection {
    /// Whether the node can follow the log: it votes, and has nothing of its own to answer, to be sent, or to run.
    pub(in crate::engine) fn may_follow(&self, log: &Log) -> bool {
        self.is_in_use() && self.ended.is_none() && self.pending.is_empty() && self.session.may_follow(log)
    }

    /// Whether the node has failed, and has not answered since.
    pub(in crate::engine) fn is_suspect(&self) -> bool {
        self.health.is_suspect()
    }

    /// Whether the node has not answered what is in the log in time, or is too far behind to be asked more.
    pub(in crate::engine) fn is_late(&self, log: &Log, now: Timestamp) -> bool {
        let (count, oldest) = self.session.unanswered(log);
        let is_overdue = oldest.is_some_and(|oldest| now.since(oldest) > self.node_timeout);
        is_overdue || NodeConnection::is_backlog((count, self.session.unsent(log).len()))
    }

    /// Whether so many requests or unsent bytes are more than a node is asked.
    pub(in crate::engine) fn is_backlog((requests, unsent): (usize, usize)) -> bool {
        requests > BACKLOG_LIMIT || unsent > UNSENT_HARD_LIMIT
    }
}
