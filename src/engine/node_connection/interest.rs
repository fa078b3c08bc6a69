//! What a connection waits for: its stream, and the direction in which it becomes ready. Also where it leads, for a
//! second connection to the same place.

use super::NodeConnection;
use super::probe::{self, Probe};
use crate::algorithm::time::Timestamp;
use crate::engine::socket_state::SocketState;
use crate::os::resolve;
use crate::os::stream::Stream;
use crate::os::transport::TransportConfig;
use crate::os::watch::Interest;
use crate::protocol::endpoint::Address;
use crate::protocol::handshake::Handshake;
use crate::protocol::session::Log;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long the answer to a release may stay unread. Long against the time that nodes take, so that the next call of a
/// program that does many reads it; short against a time to live.
const UNREAD_LIMIT: Duration = Duration::from_millis(100);

impl NodeConnection {
    /// What to poll for, if anything. `log`: what the node may follow.
    pub(in crate::engine) fn interest(&self, log: &Log) -> Option<Interest> {
        if self.ended.is_some() { None } else { self.socket.interest(!self.session.unsent(log).is_empty()) }
    }

    /// Whether this is what the connection has to poll for now.
    pub(in crate::engine) fn is_interested_in(&self, interest: Option<&Interest>, log: &Log) -> bool {
        match self.ended {
            Some(_) => interest.is_none(),
            None => self.socket.is_interested_in(!self.session.unsent(log).is_empty(), interest),
        }
    }

    /// Whether this is the connection's present stream.
    pub(in crate::engine) fn is_on(&self, stream: &Arc<Stream>) -> bool {
        self.socket.is_on(stream)
    }

    /// Begins another connection to where this one leads, if it is open.
    pub(in crate::engine) fn connect_beside(&self) -> Option<io::Result<Stream>> {
        if !self.is_open() {
            return None;
        }
        match self.endpoint.address() {
            Address::Unix(path) => Some(Stream::connect_unix(path)),
            Address::Tcp(host, port) => {
                resolve::literal(host, *port).or_else(|| self.race.first()).map(Stream::connect_tcp)
            }
        }
    }

    /// When to [`advance`](NodeConnection::advance) though the stream is not ready: another address may have to be
    /// tried, or a silent server to be asked whether it speaks TLS.
    pub(in crate::engine) fn due(&self, now: Timestamp) -> Timestamp {
        if let Some((_, until)) = self.ended {
            return until.min(now.after(probe::LOOK));
        }
        match (&self.socket, &self.probe) {
            (SocketState::Connecting(_), _) => self.race.due(now),
            (SocketState::Open(transport), probe) if transport.awaits_first_byte() => match probe {
                Probe::NotBegun => self.probe_at(),
                Probe::Connecting(..) | Probe::Asked(..) => now.after(probe::LOOK),
                Probe::Ended | Probe::SpeaksTls => Timestamp::NEVER,
            },
            _ => Timestamp::NEVER,
        }
    }

    /// How connections to the node are protected.
    pub(in crate::engine) fn transport(&self) -> &TransportConfig {
        &self.transport
    }

    /// Whether there are bytes that the socket has not taken.
    pub(in crate::engine) fn has_unsent(&self, log: &Log) -> bool {
        !self.session.unsent(log).is_empty() || self.socket.holds_unsent()
    }

    /// The handshake of connections to the node.
    pub(in crate::engine) fn handshake(&self) -> &Handshake {
        self.endpoint.handshake()
    }

    /// Whether a release is unanswered whose key may be on the node.
    pub(in crate::engine) fn awaits_release(&self, log: &Log) -> bool {
        let is_unanswered = self.session.unanswered_releases(log) > 0;
        is_unanswered && (self.is_open() || self.pending.is_carried() && !self.is_closed())
    }

    /// Whether such a release is unsent.
    pub(in crate::engine) fn has_unsent_release(&self, log: &Log) -> bool {
        self.awaits_release(log) && self.has_unsent(log)
    }

    /// When a thread has to drive for what was queued of releases: now, while something is unsent, or is sent when what
    /// was asked is answered; or when no thread has looked for answers for a while. Never for keys that have ended.
    pub(in crate::engine) fn release_due(&self, log: &Log, now: Timestamp) -> Timestamp {
        let is_sendable = !self.pending.is_empty() && !self.is_closed() && now >= self.pending.paused_until();
        let is_held_up = is_sendable && self.session.backlog() > 0;
        if is_held_up || self.has_unsent_release(log) {
            now
        } else if self.awaits_release(log) && now < self.pending.carried_until() {
            self.checked_at.after(UNREAD_LIMIT)
        } else {
            Timestamp::NEVER
        }
    }
}
