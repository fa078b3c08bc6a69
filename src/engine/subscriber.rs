//! One node's subscriber connection: made when a call waits, closed when none has for a while.
//!
//! It leads to where the node's ordered connection leads, and is made only while that one is in
//! use: a node that cannot be asked publishes nothing. A failure of it makes wake-ups later and
//! has no other effect, so it is closed then, and made again after a while; one that has lasted,
//! at once. A server that denies SUBSCRIBE is asked again after a longer pause; any other error
//! there is a failure like others.

use super::node_connection::NodeConnection;
use super::socket_state::SocketState;
use crate::algorithm::health::Health;
use crate::algorithm::node::NodeId;
use crate::algorithm::time::Timestamp;
use crate::fault::{Cause, Fault, Phase};
use crate::os::stream::{self, Stream};
use crate::os::transport::TransportConfig;
use crate::os::watch::Interest;
use crate::protocol::subscription::{Subscription, SubscriptionEvent};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long a connection may take to be made, and a request to be answered.
const LIMIT: Duration = Duration::from_secs(3);
/// Pause after a server has not permitted SUBSCRIBE.
const DENIED_PAUSE: Duration = Duration::from_secs(60);
/// A connection that lasted for so long works, whatever ends it. It bounds how often one is made
/// that is cut each time.
const LASTING: Duration = Duration::from_millis(100);
/// How often one connection is read before the next one is.
const MAX_READS: usize = 8;

/// One node's subscriber connection.
pub(super) struct Subscriber {
    node: NodeId,
    socket: SocketState,
    transport: TransportConfig,
    subscription: Subscription,
    health: Health,
    opened_at: Timestamp,
    not_before: Timestamp,
}

impl Subscriber {
    pub(super) fn new(node: NodeId) -> Subscriber {
        Subscriber {
            node,
            socket: SocketState::Closed,
            transport: TransportConfig::default(),
            subscription: Subscription::open(None, 0, Timestamp::ORIGIN),
            health: Health::new(node.index() as u64 + 101),
            opened_at: Timestamp::ORIGIN,
            not_before: Timestamp::ORIGIN,
        }
    }

    /// The node.
    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    /// Makes the connection if it is missing and may be made, and subscribes to the client's
    /// channel. Closes one that exceeded a limit: true when that happened.
    pub(super) fn maintain(&mut self, node: &NodeConnection, client: u64, now: Timestamp) -> bool {
        let is_late = match self.socket {
            SocketState::Closed => false,
            SocketState::Open(_) => self
                .subscription
                .waiting_since()
                .is_some_and(|since| now.since(since) > LIMIT),
            SocketState::Connecting(_) | SocketState::Resolving => {
                now.since(self.opened_at) > LIMIT
            }
        };
        if is_late {
            self.fail(Fault::new(Phase::Reply, Cause::TimedOut), now);
        }
        if now >= self.due(node) {
            match node.link.connect_beside() {
                None => return is_late,
                Some(Err(error)) => self.fail(broken(&error), now),
                Some(Ok(stream)) => {
                    self.socket = SocketState::Connecting(Arc::new(stream));
                    self.transport = node.link.protection();
                    self.opened_at = now;
                    self.subscription = Subscription::open(node.link.credentials(), client, now);
                    self.advance(now);
                }
            }
        }
        is_late
    }

    /// When to [`maintain`](Subscriber::maintain) it because the connection may be made then that
    /// is missing.
    pub(super) fn due(&self, node: &NodeConnection) -> Timestamp {
        match self.socket {
            // Not a replica, which names the master first.
            SocketState::Closed if node.is_in_use() => {
                self.not_before.max(self.health.not_before())
            }
            _ => Timestamp::NEVER,
        }
    }

    /// The stream is ready for something. Processes it; false when the connection was lost.
    pub(super) fn ready(
        &mut self,
        now: Timestamp,
        mut on_event: impl FnMut(SubscriptionEvent),
    ) -> bool {
        self.advance(now);
        for reads in 1.. {
            let SocketState::Open(transport) = &mut self.socket else {
                break;
            };
            let space = self.subscription.incoming.space();
            let size = space.len();
            let count = match transport.read(space) {
                Ok(0) => {
                    self.fail(Fault::new(Phase::Reply, Cause::Closed), now);
                    break;
                }
                Ok(count) => count,
                Err(error) if stream::would_block(&error) => break,
                Err(error) => {
                    self.fail(broken(&error), now);
                    break;
                }
            };
            // What poll does not show is read in any case.
            let is_enough = (count < size || reads >= MAX_READS) && !transport.has_unread();
            self.subscription.incoming.received(count);
            loop {
                match self.subscription.next_event() {
                    Ok(None) => break,
                    Ok(Some(SubscriptionEvent::Refused(fault))) => {
                        self.fail(fault, now);
                        // Any other error passes: too many clients, a script that runs, data that
                        // are loaded.
                        if fault.cause == Cause::NoPermission {
                            self.not_before = now.after(DENIED_PAUSE);
                            on_event(SubscriptionEvent::Refused(fault));
                        }
                        return false;
                    }
                    Ok(Some(event)) => on_event(event),
                    Err(error) => {
                        self.fail(Fault::protocol(Phase::Reply, error), now);
                        break;
                    }
                }
            }
            if is_enough {
                break;
            }
        }
        // The handshake of TLS may be over.
        self.flush();
        !matches!(self.socket, SocketState::Closed)
    }

    /// Closes the connection, if there is one. What is known of the server stays.
    pub(super) fn close(&mut self) {
        self.socket = SocketState::Closed;
    }

    /// Whether there is no connection, nor one being made.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.socket, SocketState::Closed)
    }

    /// What to poll for, if anything.
    pub(super) fn interest(&self) -> Option<Interest> {
        self.socket.interest(!self.subscription.unsent.is_empty())
    }

    /// Whether this is the present stream.
    pub(super) fn is_on(&self, stream: &Arc<Stream>) -> bool {
        self.socket.is_on(stream)
    }

    /// Takes a connection that is being made as far as it goes without waiting, and sends.
    fn advance(&mut self, now: Timestamp) {
        if let SocketState::Connecting(stream) = &self.socket
            && stream.is_settled()
        {
            let made = stream.finish_connecting();
            match made.and_then(|()| self.transport.begin(Arc::clone(stream))) {
                Ok(transport) => {
                    self.socket = SocketState::Open(transport);
                    self.subscription.connected(now);
                }
                Err(error) => return self.fail(broken(&error), now),
            }
        }
        self.flush();
    }

    /// Sends what the kernel takes. An error of the connection shows at the next read.
    fn flush(&mut self) {
        let SocketState::Open(transport) = &mut self.socket else {
            return;
        };
        while !self.subscription.unsent.is_empty() {
            match transport.write(&self.subscription.unsent) {
                Ok(count) => drop(self.subscription.unsent.drain(..count)),
                Err(_) => return,
            }
        }
        let _ = transport.flush();
    }

    fn fail(&mut self, fault: Fault, now: Timestamp) {
        let lasted = now.since(self.opened_at);
        let was_open = matches!(self.socket, SocketState::Open(_));
        if was_open && lasted >= LASTING {
            self.health.answered();
        }
        if was_open && fault.cause == Cause::Closed {
            self.health.disconnected(fault, lasted, now);
        } else {
            self.health.failed(fault, now);
        }
        self.socket = SocketState::Closed;
    }
}

fn broken(error: &io::Error) -> Fault {
    Fault::new(Phase::Connect, stream::cause_of(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::{PlayedServer, closed};

    #[test]
    #[cfg(not(feature = "simulated"))]
    fn a_connection_that_is_not_made_in_time_is_given_up() {
        let server = PlayedServer::new();
        let node = closed(&server.url(), LIMIT);
        let mut subscriber = Subscriber::new(NodeId::new(0));
        let stream = Stream::connect_tcp(server.address()).unwrap();
        subscriber.socket = SocketState::Connecting(Arc::new(stream));
        for (time, is_late) in [(LIMIT, false), (LIMIT + Duration::from_nanos(1), true)] {
            let now = Timestamp::ORIGIN.after(time);
            assert_eq!(subscriber.maintain(&node, 1, now), is_late);
            assert_eq!(subscriber.is_closed(), is_late);
        }
    }
}
