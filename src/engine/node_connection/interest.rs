//! What a connection waits for: its stream, and the direction in which it becomes ready. Also where it leads, for a
//! second connection to the same place.

use super::NodeConnection;
use crate::algorithm::time::Timestamp;
use crate::os::resolve;
use crate::os::stream::Stream;
use crate::os::watch::Interest;
use crate::protocol::endpoint::Address;
use crate::protocol::handshake::Handshake;
use std::io;
use std::sync::Arc;

impl NodeConnection {
    /// What to poll for, if anything.
    pub(in crate::engine) fn interest(&self) -> Option<Interest> {
        self.socket.interest(!self.session.traffic.unsent().is_empty())
    }

    /// Whether this is what the connection has to poll for now.
    pub(in crate::engine) fn is_interested_in(&self, interest: Option<&Interest>) -> bool {
        self.socket.is_interested_in(!self.session.traffic.unsent().is_empty(), interest)
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

    /// The handshake of connections to the node.
    pub(in crate::engine) fn handshake(&self) -> &Handshake {
        self.endpoint.handshake()
    }

    /// Whether a release is unanswered whose key may be on the node.
    pub(in crate::engine) fn awaits_release(&self) -> bool {
        self.session.unanswered_releases() > 0 && (self.is_open() || self.pending.is_carried && !self.is_closed())
    }

    /// Whether such a release is on its way out, or its answer may come in time.
    pub(in crate::engine) fn has_release_on_its_way(&self, now: Timestamp) -> bool {
        let is_recent = || self.wrote_at.is_some_and(|wrote_at| now.since(wrote_at) <= self.node_timeout);
        self.awaits_release() && (!self.session.traffic.unsent().is_empty() || is_recent())
    }

    /// Whether such a release is unsent.
    pub(in crate::engine) fn has_unsent_release(&self) -> bool {
        self.awaits_release() && !self.session.traffic.unsent().is_empty()
    }
}
