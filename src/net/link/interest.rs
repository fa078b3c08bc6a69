//! What a link waits for: its stream, and for which way it is to become ready. And where it leads, for a connection beside it.

use super::{Interest, Link};
use crate::net::endpoint::Address;
use crate::net::resolve;
use crate::net::stream::Stream;
use crate::proto::greeting::Greeting;
use std::io;
use std::sync::Arc;

impl Link {
    /// What to poll for, if anything.
    pub(in crate::net) fn interest(&self) -> Option<Interest> {
        self.connection.interest(!self.session.unsent().is_empty())
    }

    /// Whether this is what the link has to poll for now.
    pub(in crate::net) fn is_interested_in(&self, interest: Option<&Interest>) -> bool {
        self.connection.is_interested_in(!self.session.unsent().is_empty(), interest)
    }

    /// Whether this is the link's present stream.
    pub(in crate::net) fn is_on(&self, stream: &Arc<Stream>) -> bool {
        self.connection.is_on(stream)
    }

    /// Begins another connection to where this one leads, if it is open.
    pub(in crate::net) fn connect_again(&self) -> Option<io::Result<Stream>> {
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

    /// How connections to the node introduce themselves.
    pub(in crate::net) fn greeting(&self) -> &Greeting {
        self.endpoint.greeting()
    }
}
