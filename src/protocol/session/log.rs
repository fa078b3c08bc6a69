//! The commands that several nodes are sent alike, in one order: encoded once, and kept once until
//! each has answered.
//!
//! A session that follows the log has a cursor in it, and no requests of its own: up to which byte
//! its node was sent the log, and which request the node answers next.
//!
//! A node that needs other bytes, or answers late, leaves the log: its session takes the rest of
//! its requests, in the same order, and follows again from the end of the log when it has answered
//! all of that.

use super::backlog::Backlog;
use super::request::Request;
use super::requests::{Cursor, Requests};
use crate::algorithm::time::Timestamp;
use crate::protocol::sent_operation::Command;
use std::time::Duration;

/// For how long the last report of the server about what it is remains valid. Short against any
/// time to live that is worth a failover, and long against a command: one `INFO` a second costs
/// nothing.
pub(super) const RECHECK_AFTER: Duration = Duration::from_secs(1);

/// The commands that all sessions which follow are to send.
#[derive(Default)]
pub struct Log {
    pub(super) requests: Requests,
    /// When the servers that are sent the log were last asked whether they are masters: the
    /// earliest time of several.
    checked_at: Timestamp,
    /// The key of what the nodes remember, if they are looked at.
    node_key: Option<String>,
}

impl Log {
    /// An empty log for nodes that are looked at by this key, if they are.
    pub fn new(node_key: Option<String>) -> Log {
        Log {
            node_key,
            ..Log::default()
        }
    }

    /// Appends a command, in the form that a server takes which has run the script of the lock's
    /// kind.
    pub fn append(&mut self, command: &Command<'_>, now: Timestamp) {
        let form = command.asked.usual_form();
        self.requests
            .ask(now, |out| Request::write(command, form, out));
    }

    /// Appends the question to each server whether it is still the master that it was, and what it
    /// remembers of itself.
    pub fn look(&mut self, now: Timestamp) {
        self.checked_at = now;
        self.requests.ask(now, |out| {
            Request::write_look(out, self.node_key.as_deref())
        });
    }

    /// Whether the servers have not been asked lately whether they are masters.
    pub fn is_look_due(&self, now: Timestamp) -> bool {
        now.since(self.checked_at) > RECHECK_AFTER
    }

    /// Whether the nodes are looked at by this key.
    pub(super) fn looks_by(&self, node_key: Option<&str>) -> bool {
        self.node_key.as_deref() == node_key
    }

    /// What not all servers have replied to.
    pub fn backlog(&self) -> Backlog {
        self.requests.backlog()
    }

    /// A cursor at the end. The servers were last asked then whether they are masters; `is_first`:
    /// no other session follows.
    pub(super) fn enter(&mut self, checked_at: Timestamp, is_first: bool) -> Cursor {
        self.checked_at = if is_first {
            checked_at
        } else {
            self.checked_at.min(checked_at)
        };
        self.requests.end()
    }

    /// Forgets what was sent and answered up to all of these cursors.
    pub fn cut(&mut self, cursors: impl Iterator<Item = Cursor>) {
        self.requests
            .cut(cursors.fold(self.requests.end(), Cursor::least));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_looked_at_once_a_second_by_one_key() {
        let mut log = Log::new(Some("notes".into()));
        let asked = Timestamp::ORIGIN.after(Duration::from_secs(9));
        log.look(asked);
        let due = asked.after(RECHECK_AFTER);
        assert!(!log.is_look_due(asked) && !log.is_look_due(due));
        assert!(log.is_look_due(due.after(Duration::from_nanos(1))));
        assert!(
            log.looks_by(Some("notes")) && !log.looks_by(Some("others")) && !log.looks_by(None)
        );
    }
}
