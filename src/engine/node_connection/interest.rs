//! What a connection waits for: the direction in which its stream becomes ready, and until when
//! without that.

use super::{CONNECT_LIMIT, NodeConnection};
use crate::algorithm::time::Timestamp;
use crate::engine::socket_state::SocketState;
use crate::os::stream::Stream;
use crate::os::watch::Interest;
use crate::protocol::session::Log;
use std::sync::Arc;
use std::time::Duration;

/// How long the answer to a release may stay unread. Long against the time that nodes take, so that
/// the next call of a program that does many reads it; short against a time to live.
const UNREAD_LIMIT: Duration = Duration::from_millis(100);

impl NodeConnection {
    /// What to poll for, if anything. `log`: what the node may follow.
    pub(in crate::engine) fn interest(&self, log: &Log) -> Option<Interest> {
        let has_unsent = !self.session.pipeline.unsent(log).is_empty();
        match self.probing.ended {
            Some(_) => None,
            None => self.link.socket.interest(has_unsent),
        }
    }

    /// Whether this is the connection's present stream.
    pub(in crate::engine) fn is_on(&self, stream: &Arc<Stream>) -> bool {
        self.link.socket.is_on(stream)
    }

    /// When to [`advance`](NodeConnection::advance) though the stream is not ready: another address
    /// may have to be tried, or a silent server to be asked whether it speaks TLS.
    pub(in crate::engine) fn due(&self, now: Timestamp) -> Timestamp {
        if self.probing.ended.is_some() || self.link.awaits_first_byte() {
            return self.probing.due(self.probed_at(), now);
        }
        self.link.due(now)
    }

    /// Whether there are bytes that the socket has not taken.
    pub(in crate::engine) fn has_unsent(&self, log: &Log) -> bool {
        !self.session.pipeline.unsent(log).is_empty() || self.link.socket.holds_unsent()
    }

    /// Whether a release is unanswered whose key may be on the node.
    pub(in crate::engine) fn awaits_release(&self, log: &Log) -> bool {
        let is_unanswered = self.session.pipeline.unanswered_releases(log) > 0;
        is_unanswered
            && (self.is_open()
                || self.pending.carried_until > Timestamp::ORIGIN && !self.is_closed())
    }

    /// Whether such a release is unsent.
    pub(in crate::engine) fn has_unsent_release(&self, log: &Log) -> bool {
        self.awaits_release(log) && self.has_unsent(log)
    }

    /// When a thread has to drive for what was queued of releases: now, while something is unsent,
    /// or is sent when what was asked is answered; or when no thread has looked for answers for a
    /// while. Never for keys that have ended.
    pub(in crate::engine) fn release_due(&self, log: &Log, now: Timestamp) -> Timestamp {
        let is_sendable =
            !self.pending.is_empty() && !self.is_closed() && now >= self.pending.paused_until();
        let is_held_up = is_sendable && self.backlog().requests > 0;
        if is_held_up || self.has_unsent_release(log) {
            now
        } else if self.awaits_release(log) && now < self.pending.carried_until {
            self.session.incoming.read_at.after(UNREAD_LIMIT)
        } else {
            Timestamp::NEVER
        }
    }

    /// When something can be done next for the releases that the node has not run, if the node
    /// sends nothing until then.
    pub(in crate::engine) fn pending_due(&self) -> Timestamp {
        let due = match self.link.socket {
            SocketState::Closed => self.health.not_before(),
            SocketState::Resolving | SocketState::Connecting(_) => {
                self.link.opened_at.after(CONNECT_LIMIT)
            }
            // What was asked is answered first.
            SocketState::Open(_)
                if self.session.pipeline.cursor().is_some() || self.backlog().requests > 0 =>
            {
                Timestamp::NEVER
            }
            SocketState::Open(_) if self.runs_releases() => self.pending.paused_until(),
            SocketState::Open(_) => self.health.not_before(),
        };
        due.min(self.pending.first_end())
    }
}
