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
        match self {
            SocketState::Closed | SocketState::Resolving => None,
            SocketState::Connecting(stream) => Some(Interest {
                stream: Arc::clone(stream),
                writable: true,
            }),
            SocketState::Open(transport) => {
                let writable = transport.wants_write(has_unsent);
                Some(Interest {
                    stream: Arc::clone(transport.stream()),
                    writable,
                })
            }
        }
    }

    /// Whether this is what there is to poll for now.
    pub(super) fn is_interested_in(&self, has_unsent: bool, interest: Option<&Interest>) -> bool {
        match (self, interest) {
            (SocketState::Closed | SocketState::Resolving, None) => true,
            (
                SocketState::Connecting(stream),
                Some(Interest {
                    stream: listed,
                    writable: true,
                }),
            ) => Arc::ptr_eq(stream, listed),
            (
                SocketState::Open(transport),
                Some(Interest {
                    stream: listed,
                    writable,
                }),
            ) => {
                Arc::ptr_eq(transport.stream(), listed)
                    && *writable == transport.wants_write(has_unsent)
            }
            _ => false,
        }
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
