//! One node's subscriber connection: made when somebody waits, closed when nobody does.
//!
//! It leads to where the node's ordered connection leads, and is made only while that one is there: a node that cannot be
//! asked has nothing to tell. Whatever goes wrong with it costs promptness and nothing else, so it is closed then, and
//! made again after a while. A server that will not let us listen is left alone for longer.

use super::node_connection::NodeConnection;
use super::socket_state::SocketState;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::health::{Health, LAST_DELAY};
use crate::algorithm::node::NodeId;
use crate::algorithm::time::Timestamp;
use crate::os::poll::Interest;
use crate::os::stream::{self, Stream};
use crate::protocol::subscription::{Event, Key, Subscription};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long a connection may take to be made, and a request to be answered.
const LIMIT: Duration = Duration::from_secs(3);
/// For how long a server is left alone that will not let us listen.
const DEAF: Duration = Duration::from_secs(60);
/// How often one connection is read from before others have their turn.
const READS: usize = 8;

/// One node's subscriber connection.
pub(super) struct Subscriber {
    node: NodeId,
    connection: SocketState,
    subscription: Subscription,
    health: Health,
    opened_at: Timestamp,
    not_before: Timestamp,
}

impl Subscriber {
    pub(super) fn new(node: NodeId) -> Subscriber {
        Subscriber {
            node,
            connection: SocketState::Closed,
            subscription: Subscription::open(&Default::default(), Timestamp::ORIGIN),
            health: Health::new(),
            opened_at: Timestamp::ORIGIN,
            not_before: Timestamp::ORIGIN,
        }
    }

    /// Sees to it that the connection is there, if it may, and listens for all of these keys. Gives up a hopeless one: true
    /// when that happened.
    pub(super) fn tend<'k>(
        &mut self,
        link: &NodeConnection,
        keys: impl Iterator<Item = &'k Key>,
        now: Timestamp,
    ) -> bool {
        let is_late = match self.connection {
            SocketState::Closed => false,
            SocketState::Open(_) => self.subscription.waiting_since().is_some_and(|since| now.since(since) > LIMIT),
            SocketState::Connecting(_) | SocketState::Resolving => now.since(self.opened_at) > LIMIT,
        };
        if is_late {
            self.fail(Fault::new(Phase::Reply, Cause::TimedOut), now);
        }
        if now >= self.due(link) {
            match link.connect_again() {
                None => return is_late,
                Some(Err(error)) => self.fail(broken(&error), now),
                Some(Ok(stream)) => {
                    self.connection = SocketState::Connecting(Arc::new(stream));
                    self.opened_at = now;
                    self.subscription = Subscription::open(link.greeting(), now);
                    keys.for_each(|key| self.subscription.subscribe(key, now));
                    self.advance(now);
                }
            }
        }
        is_late
    }

    /// When to [`tend`](Subscriber::tend) to it because the connection may be made then that is missing.
    pub(super) fn due(&self, link: &NodeConnection) -> Timestamp {
        match self.connection {
            SocketState::Closed if link.is_open() => self.not_before.max(self.health.not_before()),
            _ => Timestamp::NEVER,
        }
    }

    /// Listens for a key, if there is a connection.
    pub(super) fn subscribe(&mut self, key: &Key, now: Timestamp) {
        if !matches!(self.connection, SocketState::Closed) {
            self.subscription.subscribe(key, now);
            self.flush();
        }
    }

    /// Listens for a key no more.
    pub(super) fn unsubscribe(&mut self, key: &[u8], now: Timestamp) {
        if !matches!(self.connection, SocketState::Closed) {
            self.subscription.unsubscribe(key, now);
            self.flush();
        }
    }

    /// The stream is ready for something. Takes in what there is; false when the connection was lost.
    pub(super) fn ready(&mut self, now: Timestamp, mut hear: impl FnMut(Event)) -> bool {
        self.advance(now);
        for _ in 0..READS {
            let SocketState::Open(stream) = &self.connection else { break };
            let space = self.subscription.space();
            let size = space.len();
            let count = match stream.read(space) {
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
            self.subscription.received(count);
            loop {
                match self.subscription.next_event() {
                    Ok(None) => break,
                    Ok(Some(Event::Refused(fault))) => {
                        self.fail(fault, now);
                        self.not_before = now.after(DEAF);
                        hear(Event::Refused(fault));
                        return false;
                    }
                    Ok(Some(event)) => {
                        // A connection that works is one that lasts.
                        if now.since(self.opened_at) >= LAST_DELAY {
                            self.health.answered();
                        }
                        hear(event);
                    }
                    Err(error) => {
                        self.fail(Fault::new(Phase::Reply, Cause::Protocol(error)), now);
                        break;
                    }
                }
            }
            if count < size {
                break;
            }
        }
        !matches!(self.connection, SocketState::Closed)
    }

    /// Closes the connection, if there is one. What is known of the server stays.
    pub(super) fn close(&mut self) {
        self.connection = SocketState::Closed;
    }

    /// Whether there is no connection, nor one being made.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.connection, SocketState::Closed)
    }

    /// What to poll for, if anything.
    pub(super) fn interest(&self) -> Option<Interest> {
        self.connection.interest(!self.subscription.unsent().is_empty())
    }

    /// Whether this is what there is to poll for now.
    pub(super) fn is_interested_in(&self, interest: Option<&Interest>) -> bool {
        self.connection.is_interested_in(!self.subscription.unsent().is_empty(), interest)
    }

    /// Whether this is the present stream.
    pub(super) fn is_on(&self, stream: &Arc<Stream>) -> bool {
        self.connection.is_on(stream)
    }

    /// Takes a connection that is being made as far as it goes without waiting, and sends.
    fn advance(&mut self, now: Timestamp) {
        if let SocketState::Connecting(stream) = &self.connection
            && stream.is_settled()
        {
            match stream.finish_connecting() {
                Ok(()) => {
                    self.connection = SocketState::Open(Arc::clone(stream));
                    self.subscription.connected(now);
                }
                Err(error) => return self.fail(broken(&error), now),
            }
        }
        self.flush();
    }

    /// Sends what the kernel takes. What is wrong with the connection shows at the next read.
    fn flush(&mut self) {
        let SocketState::Open(stream) = &self.connection else { return };
        while !self.subscription.unsent().is_empty() {
            match stream.write(self.subscription.unsent()) {
                Ok(count) => self.subscription.sent(count),
                Err(_) => return,
            }
        }
    }

    fn fail(&mut self, fault: Fault, now: Timestamp) {
        let salt = self.node.index() as u64 + 101;
        if matches!(self.connection, SocketState::Open(_)) && fault.cause == Cause::Closed {
            self.health.disconnected(fault, now.since(self.opened_at), now, salt);
        } else {
            self.health.failed(fault, now, salt);
        }
        self.connection = SocketState::Closed;
    }
}

fn broken(error: &io::Error) -> Fault {
    Fault::new(Phase::Connect, stream::cause_of(error))
}
