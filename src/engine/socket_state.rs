//! How far a connection to a node has come, and what to poll it for.

use crate::os::stream::Stream;
use crate::os::transport::Transport;
use crate::os::watch::Interest;
use std::sync::Arc;

/// A connection.
pub(super) enum SocketState {
    Closed,
    Resolving,
    Connecting(Arc<Stream>),
    Open(Transport),
}

impl SocketState {
    /// What to poll for, if anything. `has_unsent`: there is something to be written.
    pub(super) fn interest(&self, has_unsent: bool) -> Option<Interest> {
        let writable = match self {
            SocketState::Open(transport) => transport.wants_write(has_unsent),
            _ => true,
        };
        self.stream().map(|stream| Interest {
            stream: Arc::clone(stream),
            writable,
        })
    }

    /// Whether this is the present stream.
    pub(super) fn is_on(&self, stream: &Arc<Stream>) -> bool {
        self.stream()
            .is_some_and(|present| Arc::ptr_eq(present, stream))
    }

    /// The present stream.
    pub(super) fn stream(&self) -> Option<&Arc<Stream>> {
        match self {
            SocketState::Closed | SocketState::Resolving => None,
            SocketState::Connecting(stream) => Some(stream),
            SocketState::Open(transport) => Some(transport.stream()),
        }
    }

    /// Whether bytes are held back between the commands and the socket.
    pub(super) fn holds_unsent(&self) -> bool {
        matches!(self, SocketState::Open(transport) if transport.has_unsent())
    }
}
