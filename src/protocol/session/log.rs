//! The commands that several nodes are sent alike, in one order: encoded once, and kept once until each has answered.
//!
//! A session that follows the log has a cursor instead of a queue of its own: up to which byte its node was sent the
//! log, and which request the node answers next.
//!
//! ```text
//!              cut              answered           sent                 end
//!   requests    ├─────────────────┼──────────────────┼───────────────────┤
//!               answered by all     awaited            to be sent
//! ```
//!
//! A node that needs other bytes, or answers late, leaves the log: its session takes what is left for it into its own
//! queue, in the same order, and follows again from the end of the log when it has answered all of that.

use super::backlog::Backlog;
use super::request::{Awaited, Request};
use crate::algorithm::time::Timestamp;
use crate::protocol::sent_operation::Command;
use std::collections::VecDeque;
use std::time::Duration;

/// For how long the server counts as what it last said it is. Short against any time to live that is worth a failover,
/// and long against a command: one `INFO` a second costs nothing.
pub(super) const RECHECK_AFTER: Duration = Duration::from_secs(1);

/// The commands that all sessions which follow are to send.
#[derive(Default)]
pub struct Log {
    bytes: Vec<u8>,
    /// How many bytes there were before those.
    cut_bytes: u64,
    requests: VecDeque<Awaited>,
    /// How many requests there were before those.
    cut_requests: u64,
    /// How many releases there were ever.
    releases: u64,
    /// When the servers that are sent the log were last asked whether they are masters: the earliest time of several.
    checked_at: Timestamp,
    /// The key of what the nodes remember, if they are looked at.
    node_key: Option<String>,
}

/// How far a node has come in the log.
#[derive(Clone, Copy)]
pub struct Cursor {
    /// How many bytes of the log were sent.
    pub(super) sent: u64,
    /// How many requests were answered.
    answered: u64,
    /// How many of those were releases.
    releases: u64,
}

impl Log {
    /// An empty log for nodes that are looked at by this key, if they are.
    pub fn new(node_key: Option<String>) -> Log {
        Log { node_key, ..Log::default() }
    }

    /// Appends a command, in the form that a server takes which has run the script of the lock's kind.
    pub fn append(&mut self, command: &Command<'_>, now: Timestamp) {
        let begin = self.end();
        let requests = Request::write(command, command.operation.asked().usual_form(), &mut self.bytes);
        requests.for_each(|request| self.push(request, now, begin));
    }

    /// Appends the question to each server whether it is still the master that it was, and what it remembers of itself.
    pub fn look(&mut self, now: Timestamp) {
        self.checked_at = now;
        let begin = self.end();
        let requests = Request::write_look(&mut self.bytes, self.node_key.as_deref());
        requests.for_each(|request| self.push(request, now, begin));
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
        let oldest = self.requests.front().map(|first| first.asked_at);
        Backlog { requests: self.requests.len(), unsent: self.bytes.len(), oldest }
    }

    /// What the server at this cursor has not replied to.
    pub(super) fn backlog_at(&self, cursor: &Cursor) -> Backlog {
        let mut unanswered = self.unanswered(cursor);
        let requests = unanswered.len();
        Backlog { requests, unsent: self.unsent(cursor).len(), oldest: unanswered.next().map(|first| first.asked_at) }
    }

    /// A cursor at the end. The servers were last asked then whether they are masters; `is_first`: no other session
    /// follows.
    pub(super) fn enter(&mut self, checked_at: Timestamp, is_first: bool) -> Cursor {
        self.checked_at = if is_first { checked_at } else { self.checked_at.min(checked_at) };
        self.last()
    }

    /// Forgets what was sent and answered up to all of these cursors.
    pub fn cut(&mut self, cursors: impl Iterator<Item = Cursor>) {
        let end = self.last();
        let least = cursors.fold(end, |least, cursor| Cursor {
            sent: least.sent.min(cursor.sent),
            answered: least.answered.min(cursor.answered),
            ..least
        });
        if least.answered == end.answered {
            self.requests.clear();
        } else {
            self.requests.drain(..(least.answered - self.cut_requests) as usize);
        }
        self.cut_requests = least.answered;
        if least.sent == end.sent {
            self.bytes.clear();
        } else if least.sent - self.cut_bytes > self.bytes.len() as u64 / 2 {
            self.bytes.drain(..(least.sent - self.cut_bytes) as usize);
        } else {
            return;
        }
        self.cut_bytes = least.sent;
    }

    /// The request that is answered next at this cursor, if it was sent.
    #[inline]
    pub(super) fn request(&self, cursor: &Cursor) -> Option<&Request> {
        let logged = self.requests.get((cursor.answered - self.cut_requests) as usize)?;
        (logged.begin < cursor.sent).then_some(&logged.request)
    }

    fn push(&mut self, request: Request, asked_at: Timestamp, begin: u64) {
        self.releases += u64::from(request.is_release());
        self.requests.push_back(Awaited { request, asked_at, begin });
    }

    fn last(&self) -> Cursor {
        let answered = self.cut_requests + self.requests.len() as u64;
        Cursor { sent: self.end(), answered, releases: self.releases }
    }

    /// How many bytes there were ever.
    fn end(&self) -> u64 {
        self.cut_bytes + self.bytes.len() as u64
    }

    /// The bytes behind a cursor.
    pub(super) fn unsent(&self, cursor: &Cursor) -> &[u8] {
        &self.bytes[(cursor.sent - self.cut_bytes) as usize..]
    }

    /// The requests behind a cursor.
    pub(super) fn unanswered(&self, cursor: &Cursor) -> impl ExactSizeIterator<Item = &Awaited> {
        self.requests.range((cursor.answered - self.cut_requests) as usize..)
    }
}

impl Cursor {
    /// The next request was answered.
    pub(super) fn advance(&mut self, log: &Log) -> Option<(Request, Timestamp)> {
        let logged = log.requests.get((self.answered - log.cut_requests) as usize)?;
        self.answered += 1;
        self.releases += u64::from(logged.request.is_release());
        Some((logged.request, logged.asked_at))
    }

    /// How many releases in the log were not answered.
    pub(super) fn unanswered_releases(&self, log: &Log) -> usize {
        (log.releases - self.releases) as usize
    }
}
