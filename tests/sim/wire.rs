//! Connections as TCP provides them: bytes in order, in pieces, late, or never; refused, reset, or
//! dead without notice.
//!
//! What was written and has not arrived is in a queue per direction; nothing overtakes anything in
//! it. A path that is blocked delivers nothing until it is free, and a connection whose bytes are
//! not acknowledged for long is given up by the client's system. A connection that is *void* has
//! been forgotten in between: nothing arrives on it any more, and neither side notices, until a
//! free path answers the client's bytes with a reset. A client that closes a connection with unread
//! replies, or before they come, resets it: what its system has not sent is discarded. Where
//! delivery is skewed, each connection lags behind the others of its node by a time of its own.

mod closing;

use crate::machine::Arrival;
use crate::plan::PathPlan;
use crate::world::{Event, Phase, World};
use quorumlock::embedded::store;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};

const MICROSECOND: u64 = 1_000;
/// After about how many messages one way the lag of a connection changes.
const LASTING_LAG: u64 = 16;
/// The two ways of a connection.
const TO_NODE: usize = 0;
const TO_CLIENT: usize = 1;
/// How long a system waits for its bytes to be acknowledged before it closes the connection.
const UNACKNOWLEDGED_LIMIT: u64 = 10_000_000_000;

/// The way from one client to one node.
pub(crate) struct Path {
    plan: PathPlan,
    /// Until then nothing passes, to the node and to the client.
    pub(crate) blocked_until: [u64; 2],
}

/// Something under way.
#[derive(Debug)]
struct Parcel {
    due: u64,
    written_at: u64,
    content: Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Closed,
    Reset,
    TimedOut,
}

impl End {
    pub(crate) fn of(is_reset: bool) -> End {
        match is_reset {
            true => End::Reset,
            false => End::Closed,
        }
    }
}

#[derive(Debug)]
enum Content {
    Bytes(Vec<u8>),
    End(End),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Making {
    Made,
    Refused,
    #[default]
    UnderWay,
}

/// One connection, from its beginning.
#[derive(Default)]
pub(crate) struct Connection {
    pub(crate) client: usize,
    pub(crate) node: usize,
    making: Making,
    /// Which life of the node it belongs to.
    pub(crate) life: u64,
    pub(crate) is_void: bool,
    /// It has asked to subscribe.
    pub(crate) is_subscriber: bool,
    pub(crate) is_closed_by_client: bool,
    is_closed_by_node: bool,
    resets_on_close: bool,
    /// The client's system has sent a reset for a connection that its program has closed.
    was_reset: bool,
    /// What is under way to the node and to the client.
    parcels: [VecDeque<Parcel>; 2],
    /// By how much it lags behind other connections of its node at present, to the node and to the
    /// client.
    lag: [u64; 2],
    /// Bytes that were written and have not arrived at the node's machine.
    under_way: usize,
    inbox: VecDeque<u8>,
    inbox_end: Option<End>,
    /// The node's side.
    pub(crate) session: store::ClientState,
    pub(crate) input: Vec<u8>,
    /// When the first byte of the command in `input` was written.
    pub(crate) command_written_at: u64,
}

/// Something arrives this way.
pub(crate) fn arrival(connection: usize, direction: usize) -> Event {
    if direction == TO_NODE {
        Event::ToNode { connection }
    } else {
        Event::ToClient { connection }
    }
}

impl Path {
    pub(crate) fn new(plan: &PathPlan) -> Path {
        Path {
            plan: plan.clone(),
            blocked_until: [0, 0],
        }
    }
}

impl World {
    pub(crate) fn path(&mut self, client: usize, node: usize) -> &mut Path {
        &mut self.paths[client * self.nodes.len() + node]
    }

    fn delay(&mut self, client: usize, node: usize) -> u64 {
        let path = &self.paths[client * self.nodes.len() + node].plan;
        let random = &mut self.random;
        let mut delay = path.delay + random.below(path.jitter + 1);
        if self.phase == Phase::Stormy {
            if random.once_in(self.plan.straggling) {
                delay += random.below(self.plan.longest_straggling);
            }
            // A lost packet is sent again, after a fifth of a second and then twice as long.
            let mut again = 200_000 * MICROSECOND;
            while random.once_in(self.plan.loss) && again < 4_000_000 * MICROSECOND {
                delay += again;
                again *= 2;
            }
        }
        delay
    }

    /// What a connection may lag behind: often nothing, often the most.
    fn lag(&mut self) -> u64 {
        match self.plan.skew {
            0 => 0,
            most => match self.random.below(4) {
                0 => 0,
                1 => most,
                _ => self.random.below(most),
            },
        }
    }

    /// [`delay`](World::delay) of what a connection carries this way. Now and then its lag changes.
    fn delay_on(&mut self, index: usize, direction: usize) -> u64 {
        if self.plan.skew > 0 && self.random.once_in(LASTING_LAG) {
            self.connections[index].lag[direction] = self.lag();
        }
        let Connection {
            client, node, lag, ..
        } = self.connections[index];
        self.delay(client, node) + lag[direction]
    }

    pub(crate) fn connect(&mut self, client: usize, node: usize) -> usize {
        let index = self.connections.len();
        let lag = [self.lag(), self.lag()];
        self.note_connection(client, node);
        self.connections.push(Connection {
            client,
            node,
            life: u64::MAX,
            lag,
            ..Connection::default()
        });
        if !self.clients[client].is_gone {
            let at = self.now + self.delay(client, node) + self.delay(client, node);
            self.schedule(at, Event::Connected { connection: index });
        }
        index
    }

    /// The answer to a connection attempt is there, unless the path is blocked.
    pub(crate) fn connected(&mut self, index: usize) {
        let client = self.connections[index].client;
        let node = self.connections[index].node;
        if self.connections[index].is_closed_by_client
            || self.connections[index].making != Making::UnderWay
        {
            return;
        }
        let free_at = self
            .path(client, node)
            .blocked_until
            .into_iter()
            .max()
            .unwrap_or(0);
        if free_at > self.now || self.nodes[node].is_dark {
            // Asked again and again, at longer and longer intervals.
            let again =
                self.now + 500_000 * MICROSECOND + self.random.below(1_000_000 * MICROSECOND);
            return self.schedule(again, Event::Connected { connection: index });
        }
        let is_up = self.nodes[node].is_up;
        self.saw(if is_up {
            "a connection that is made"
        } else {
            "a connection that is refused"
        });
        let life = self.nodes[node].life;
        let connection = &mut self.connections[index];
        connection.making = if is_up { Making::Made } else { Making::Refused };
        connection.life = life;
        self.record(|| {
            format!(
                "client {client} – node {node}: {}",
                if is_up {
                    "connected"
                } else {
                    "connection refused"
                }
            )
        });
        self.wake_pollers(index);
    }

    pub(crate) fn is_settled(&self, index: usize) -> bool {
        self.connections[index].making != Making::UnderWay
    }

    pub(crate) fn finish_connecting(&self, index: usize) -> io::Result<()> {
        if self.connections[index].making == Making::Refused {
            return Err(ErrorKind::ConnectionRefused.into());
        }
        Ok(())
    }

    /// Whether a poll would report that it can be read, and written.
    pub(crate) fn readiness(&self, index: usize) -> (bool, bool) {
        let connection = &self.connections[index];
        match connection.making {
            Making::UnderWay => (false, false),
            Making::Refused => (true, true),
            Making::Made => {
                let ended = connection.inbox_end.is_some();
                let is_broken = connection.inbox_end.is_some_and(|end| end != End::Closed);
                let has_room = connection.under_way < self.window;
                (ended || !connection.inbox.is_empty(), is_broken || has_room)
            }
        }
    }

    pub(crate) fn read(&mut self, index: usize, buffer: &mut [u8]) -> io::Result<usize> {
        let limit = match self.plan.piece {
            0 => buffer.len(),
            piece => buffer.len().min(self.random.between(1, piece) as usize),
        };
        let connection = &mut self.connections[index];
        if self.clients[connection.client].is_gone {
            return Err(ErrorKind::ConnectionReset.into());
        }
        if connection.inbox.is_empty() {
            return match connection.inbox_end {
                None => Err(ErrorKind::WouldBlock.into()),
                Some(End::Closed) => Ok(0),
                Some(End::Reset) => Err(ErrorKind::ConnectionReset.into()),
                Some(End::TimedOut) => Err(ErrorKind::TimedOut.into()),
            };
        }
        let count = limit.min(connection.inbox.len());
        for (place, byte) in buffer.iter_mut().zip(connection.inbox.drain(..count)) {
            *place = byte;
        }
        Ok(count)
    }

    pub(crate) fn write(&mut self, index: usize, bytes: &[u8]) -> io::Result<usize> {
        let now = self.now;
        let connection = &mut self.connections[index];
        let client = connection.client;
        match connection.inbox_end {
            _ if self.clients[client].is_gone => return Err(ErrorKind::BrokenPipe.into()),
            Some(End::Reset) => return Err(ErrorKind::ConnectionReset.into()),
            Some(End::TimedOut) => return Err(ErrorKind::TimedOut.into()),
            Some(End::Closed) | None => {}
        }
        let room = self.window.saturating_sub(connection.under_way);
        if room == 0 {
            self.saw("a write that must wait");
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = bytes.len().min(room);
        let is_first = connection.parcels[TO_NODE].is_empty();
        connection.under_way += count;
        let due = now + self.delay_on(index, TO_NODE);
        self.send(index, TO_NODE, due, Content::Bytes(bytes[..count].to_vec()));
        if is_first {
            self.schedule(
                now + UNACKNOWLEDGED_LIMIT,
                Event::Unacknowledged { connection: index },
            );
        }
        Ok(count)
    }

    /// Sends something behind all that is under way.
    fn send(&mut self, index: usize, direction: usize, due: u64, content: Content) {
        let queue = &mut self.connections[index].parcels[direction];
        let due = queue.back().map_or(due, |last| last.due.max(due));
        queue.push_back(Parcel {
            due,
            written_at: self.now,
            content,
        });
        self.schedule(due, arrival(index, direction));
    }

    pub(crate) fn send_to_client(&mut self, index: usize, bytes: Vec<u8>, service: u64) {
        let due = self.now + service + self.delay_on(index, TO_CLIENT);
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let length = match self.plan.piece {
                0 => rest.len(),
                piece => rest.len().min(self.random.between(1, piece * 4) as usize),
            };
            let (piece, others) = rest.split_at(length);
            self.send(index, TO_CLIENT, due, Content::Bytes(piece.to_vec()));
            rest = others;
        }
    }

    /// Takes what is due, unless the path is blocked.
    fn take_parcel(&mut self, index: usize, direction: usize) -> Option<Parcel> {
        let client = self.connections[index].client;
        let node = self.connections[index].node;
        let now = self.now;
        let blocked_until = self.path(client, node).blocked_until[direction];
        if self.connections[index].parcels[direction].front()?.due > now {
            return None;
        }
        // A machine that is off acknowledges nothing.
        let is_off = direction == TO_NODE && self.nodes[node].is_dark;
        let blocked_until = if is_off {
            blocked_until.max(now + 200_000 * MICROSECOND)
        } else {
            blocked_until
        };
        if blocked_until > now {
            // Sent again when nothing came of it, a little after the path is free.
            let lag = 1 + self.random.below(100_000 * MICROSECOND);
            self.schedule(blocked_until + lag, arrival(index, direction));
            return None;
        }
        self.connections[index].parcels[direction].pop_front()
    }

    /// The client's system asks the other one whether a connection is still there, when nothing has
    /// come for long.
    pub(crate) fn keep_alive(&mut self, index: usize) {
        let connection = &self.connections[index];
        let is_known = !connection.is_void && connection.life == self.nodes[connection.node].life;
        if !is_known && !connection.is_closed_by_client && connection.making == Making::Made {
            let now = self.now;
            self.send(index, TO_CLIENT, now, Content::End(End::Reset));
        }
    }

    pub(crate) fn arrive_at_client(&mut self, index: usize) {
        while let Some(parcel) = self.take_parcel(index, TO_CLIENT) {
            let connection = &mut self.connections[index];
            if connection.is_void && !matches!(parcel.content, Content::End(End::Reset)) {
                continue;
            }
            match parcel.content {
                // What a node has written before it learnt of the end comes behind the end, and is
                // discarded.
                Content::Bytes(_) if connection.inbox_end.is_some() => {}
                Content::Bytes(_) if connection.is_closed_by_client => {
                    // A connection whose end has arrived has nothing left to discard.
                    if !connection.parcels[TO_NODE].is_empty() && !connection.resets_on_close {
                        self.reset_by_system(index);
                    }
                }
                Content::Bytes(bytes) => connection.inbox.extend(bytes),
                Content::End(end) => connection.inbox_end = connection.inbox_end.or(Some(end)),
            }
        }
        if !self.connections[index].is_closed_by_client {
            self.wake_pollers(index);
        }
    }

    pub(crate) fn arrive_at_node(&mut self, index: usize) {
        while let Some(parcel) = self.take_parcel(index, TO_NODE) {
            let node = self.connections[index].node;
            if let Content::Bytes(bytes) = &parcel.content {
                let connection = &mut self.connections[index];
                connection.under_way = connection.under_way.saturating_sub(bytes.len());
            }
            let connection = &self.connections[index];
            if self.nodes[node].is_dark {
                continue;
            }
            if connection.is_void
                || connection.is_closed_by_node
                || connection.life != self.nodes[node].life
            {
                // The node does not know this connection.
                let is_closed = connection.is_closed_by_client;
                self.saw("bytes on a connection that its node does not know");
                if !is_closed {
                    self.end_by_node(index, End::Reset);
                }
                continue;
            }
            let content = match parcel.content {
                Content::Bytes(bytes) => Some((bytes, parcel.written_at)),
                Content::End(_) => None,
            };
            self.take_in(Arrival {
                connection: index,
                content,
            });
        }
        if !self.connections[index].is_closed_by_client {
            self.wake_pollers(index);
        }
    }

    /// The connections of this client and this node that are not closed.
    pub(crate) fn live_connections(
        &self,
        client: Option<usize>,
        node: Option<usize>,
    ) -> Vec<usize> {
        let alive = |connection: &Connection| {
            !connection.is_closed_by_client
                && !connection.is_closed_by_node
                && connection.making == Making::Made
                && client.is_none_or(|client| connection.client == client)
                && node.is_none_or(|node| connection.node == node)
        };
        (0..self.connections.len())
            .filter(|&index| alive(&self.connections[index]))
            .collect()
    }
}
