//! What a link waits for: its stream, and for which way it is to become ready.

use super::{Connection, Interest, Link};
use crate::net::stream::Stream;
use std::sync::Arc;

impl Link {
    /// What to poll for, if anything.
    pub(in crate::net) fn interest(&self) -> Option<Interest> {
        match &self.connection {
            Connection::Closed | Connection::Resolving => None,
            Connection::Connecting(stream) => Some(Interest { stream: Arc::clone(stream), writable: true }),
            Connection::Open(stream) => {
                Some(Interest { stream: Arc::clone(stream), writable: !self.session.unsent().is_empty() })
            }
        }
    }

    /// Whether this is what the link has to poll for now.
    pub(in crate::net) fn is_interested_in(&self, interest: Option<&Interest>) -> bool {
        match (&self.connection, interest) {
            (Connection::Closed | Connection::Resolving, None) => true,
            (Connection::Connecting(stream), Some(Interest { stream: listed, writable: true })) => {
                Arc::ptr_eq(stream, listed)
            }
            (Connection::Open(stream), Some(Interest { stream: listed, writable })) => {
                Arc::ptr_eq(stream, listed) && *writable != self.session.unsent().is_empty()
            }
            _ => false,
        }
    }

    /// Whether this is the link's present stream.
    pub(in crate::net) fn is_on(&self, stream: &Arc<Stream>) -> bool {
        match &self.connection {
            Connection::Closed | Connection::Resolving => false,
            Connection::Connecting(present) | Connection::Open(present) => Arc::ptr_eq(present, stream),
        }
    }
}
