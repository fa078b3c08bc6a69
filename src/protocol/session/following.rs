//! How a session follows a log of commands, and leaves it.

use super::log::{Log, Logged};
use super::{HandshakeState, Session};
use crate::algorithm::time::Timestamp;
use crate::protocol::operation::Operation;

impl Log {
    /// Forgets what all of these sessions have sent and had answered.
    pub fn cut_behind<'s>(&mut self, followers: impl Iterator<Item = &'s Session>) {
        self.cut(followers.filter_map(|session| session.cursor));
    }
}

impl Session {
    /// Whether the session can follow the log: the server votes, is looked at as the others are, and owes no answer.
    pub fn may_follow(&self, log: &Log) -> bool {
        self.expected.len() == 0 && self.traffic.unsent().is_empty() && !self.has_event() && self.is_alike(log)
    }

    /// Whether the server is sent what all others are, as far as what it has said of itself decides that.
    pub fn is_alike(&self, log: &Log) -> bool {
        self.standing == HandshakeState::Accepted
            && self.checked_at > Timestamp::ORIGIN
            && !self.looks_behind_votes
            && log.looks_by(self.node_key.as_deref())
            && self.identity.replication().is_some()
    }

    /// Whether the server is sent this operation in the form in which it is in the log.
    pub fn takes_from_log(&self, operation: &Operation) -> bool {
        let asked = operation.asked();
        self.form(asked) == asked.usual_form()
    }

    /// Whether the session follows the log.
    pub fn follows(&self) -> bool {
        self.cursor.is_some()
    }

    /// Follows the log from its end on. `is_first`: no other session does.
    pub fn follow(&mut self, log: &mut Log, is_first: bool) {
        self.cursor = Some(log.enter(self.checked_at, is_first));
    }

    /// Leaves the log, and takes what is left of it for this session into its own queue.
    pub fn leave(&mut self, log: &Log) {
        let Some(cursor) = self.cursor.take() else { return };
        // In bytes of the connection, which has sent others before those of the log.
        let begin = |logged: &Logged| self.traffic.all_sent() + logged.begin - cursor.sent;
        for logged in log.unanswered(&cursor) {
            self.unanswered_releases += usize::from(logged.request.is_release());
            self.expected.push(logged.request, logged.asked_at, begin(logged));
        }
        self.traffic.end().extend_from_slice(log.unsent(&cursor));
    }

    /// The server was asked with the log whether it is still a master, and how much memory it may use.
    pub fn looked_at(&mut self, now: Timestamp) {
        (self.checked_at, self.has_asked_for_memory) = (now, true);
    }

    /// Whether the server was asked how much memory it may use.
    pub fn has_asked_for_memory(&self) -> bool {
        self.has_asked_for_memory
    }

    /// The bytes that are to be sent next.
    pub fn unsent<'a>(&'a self, log: &'a Log) -> &'a [u8] {
        self.cursor.as_ref().map_or_else(|| self.traffic.unsent(), |cursor| log.unsent(cursor))
    }

    /// Says that the first `count` of those went out.
    pub fn sent(&mut self, count: usize) {
        self.traffic.sent(count);
        self.cursor.iter_mut().for_each(|cursor| cursor.sent += count as u64);
    }

    /// Of a session that follows: how many requests its node has not answered, and when the oldest was made.
    pub fn unanswered(&self, log: &Log) -> (usize, Option<Timestamp>) {
        let Some(cursor) = &self.cursor else { return (0, None) };
        let mut unanswered = log.unanswered(cursor);
        (unanswered.len(), unanswered.next().map(|first| first.asked_at))
    }

    /// How many of the expected replies are to releases.
    pub fn unanswered_releases(&self, log: &Log) -> usize {
        self.unanswered_releases + self.cursor.map_or(0, |cursor| cursor.unanswered_releases(log))
    }
}
