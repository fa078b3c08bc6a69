//! How far a connection to a node has come, and what to poll it for.

use crate::os::stream::Stream;
use crate::os::watch::Interest;
use std::sync::Arc;

/// A connection.
pub(super) enum SocketState {
    Closed,
    Resolving,
    Connecting(Arc<Stream>),
    Open(Arc<Stream>),
}

impl SocketState {
    /// What to poll for, if anything. `has_unsent`: there is something to be sent.
    pub(super) fn interest(&self, has_unsent: bool) -> Option<Interest> {
        match self {
            SocketState::Closed | SocketState::Resolving => None,
            SocketState::Connecting(stream) => Some(Interest { stream: Arc::clone(stream), writable: true }),
            SocketState::Open(stream) => Some(Interest { stream: Arc::clone(stream), writable: has_unsent }),
        }
    }

    /// Whether this is what there is to poll for now.
    pub(super) fn is_interested_in(&self, has_unsent: bool, interest: Option<&Interest>) -> bool {
        match (self, interest) {
            (SocketState::Closed | SocketState::Resolving, None) => true,
            (SocketState::Connecting(stream), Some(Interest { stream: listed, writable: true })) => {
                Arc::ptr_eq(stream, listed)
            }
            (SocketState::Open(stream), Some(Interest { stream: listed, writable })) => {
                Arc::ptr_eq(stream, listed) && *writable == has_unsent
            }
            _ => false,
        }
    }

    /// Whether this is the present stream.
    pub(super) fn is_on(&self, stream: &Arc<Stream>) -> bool {
        match self {
            SocketState::Closed | SocketState::Resolving => false,
            SocketState::Connecting(present) | SocketState::Open(present) => Arc::ptr_eq(present, stream),
        }
    }
}
