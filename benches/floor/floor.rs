//! The floor: the bare program that nothing with the same effect can undercut without sharing the
//! wire.
//!
//! One non-blocking socket per node and bytes that were built before. A turn is: send to all, poll,
//! receive what is ready, until a quorum has answered. The answers of stragglers are received on
//! the way, whenever a poll finds them. No allocation, no clock, no error handling worth the name;
//! a token is used again and again, which no lock may do. Each thread has a floor of its own.
//!
//! A node that is far behind is left out, as the library leaves it out after a while.

use crate::comparison::{Pair, timed};
use crate::release;
use quorumlock::algorithm::lease::OwnerToken;
use quorumlock::protocol::kinds::plain;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// The most nodes that are measured with.
pub(crate) const MOST_NODES: usize = 9;
/// Unanswered requests with which a node is left out.
const FAR_BEHIND: u64 = 64;
/// Seconds in which a quorum answers, unless it never will.
const TIME_LIMIT: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};

/// A connection to each node, and the bytes of one lock.
pub(crate) struct Floor {
    nodes: Vec<Node>,
    take: Vec<u8>,
    release: Vec<u8>,
}

/// The connection to a node.
pub(crate) struct Node {
    pub(crate) stream: TcpStream,
    buffer: [u8; 4096],
    pub(crate) answers: Answers,
    sent: u64,
    /// How many requests were sent before the last turn.
    pub(crate) sent_before: u64,
    /// Whether it was asked in the last turn, and is connected.
    pub(crate) asked: bool,
    closed: bool,
}

impl Floor {
    /// Connects. `owner` makes a token that differs from other floors' tokens.
    pub(crate) fn connect(addresses: &[SocketAddr], resource: &str, owner: u8) -> Floor {
        let (take, release) = requests(resource, owner);
        Floor::with(addresses, take, release)
    }

    /// Connects, and publishes this digit with each release, on the channel that is named as the
    /// lock.
    pub(crate) fn publishing(addresses: &[SocketAddr], resource: &str, owner: u8) -> Floor {
        let (take, _) = requests(resource, owner);
        let mut release = Vec::new();
        release::write(
            &mut release,
            resource,
            &token(owner).digits(),
            Some((resource, &owner.to_string())),
        );
        Floor::with(addresses, take, release)
    }

    fn with(addresses: &[SocketAddr], take: Vec<u8>, release: Vec<u8>) -> Floor {
        Floor {
            nodes: Node::connect(addresses),
            take,
            release,
        }
    }

    /// Tries to take the lock. False when others hold it, or too many of them.
    pub(crate) fn take(&mut self) -> bool {
        let Floor { nodes, take, .. } = self;
        ask(nodes, take)
    }

    /// Releases the lock. False when another token held it.
    pub(crate) fn release(&mut self) -> bool {
        let Floor { nodes, release, .. } = self;
        ask(nodes, release)
    }

    /// Takes back what a lost attempt may have got, and waits for nothing.
    pub(crate) fn undo(&mut self) {
        let Floor { nodes, release, .. } = self;
        nodes
            .iter_mut()
            .for_each(|node| node.send(release, 1, FAR_BEHIND));
    }

    /// Takes and releases the lock.
    pub(crate) fn pair(&mut self) -> Pair {
        let floor = std::cell::RefCell::new(self);
        timed(
            || {
                assert!(
                    floor.borrow_mut().take(),
                    "no other client has this resource"
                )
            },
            |()| {
                assert!(
                    floor.borrow_mut().release(),
                    "no other client has this token"
                )
            },
        )
    }
}

/// One turn: all nodes are asked, a quorum answers. True when a quorum consents.
fn ask(nodes: &mut [Node], request: &[u8]) -> bool {
    let quorum = nodes.len() / 2 + 1;
    for node in nodes.iter_mut() {
        node.send(request, 1, FAR_BEHIND);
    }
    loop {
        let granted = nodes
            .iter()
            .filter(|node| node.asked && !node.is_waiting() && node.answers.consent)
            .count();
        let undecided = nodes
            .iter()
            .filter(|node| node.asked && node.is_waiting())
            .count();
        if granted >= quorum {
            return true;
        }
        if granted + undecided < quorum || !receive(nodes) {
            return false;
        }
    }
}

/// Waits until something is ready, and receives it. False when nothing came for a long time.
fn receive(nodes: &mut [Node]) -> bool {
    let Some(ready) = ready(nodes, |node| (!node.closed).then_some(&node.stream)) else {
        return false;
    };
    for (node, _) in nodes.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
        node.receive(Answers::feed);
    }
    true
}

/// Waits until one of the nodes that are awaited is ready. Returns which of them are, or nothing
/// when nothing came for a long time.
pub(crate) fn ready<N>(
    nodes: &[N],
    awaited: impl Fn(&N) -> Option<&TcpStream>,
) -> Option<[bool; MOST_NODES]> {
    let any = nodes.iter().find_map(&awaited)?;
    let mut descriptors: [PollFd<'_>; MOST_NODES] =
        std::array::from_fn(|_| PollFd::new(any, PollFlags::IN));
    let mut map = [usize::MAX; MOST_NODES];
    let mut count = 0;
    for (index, node) in nodes.iter().enumerate() {
        let Some(stream) = awaited(node) else {
            continue;
        };
        descriptors[count] = PollFd::new(stream, PollFlags::IN);
        map[count] = index;
        count += 1;
    }
    if poll(&mut descriptors[..count], Some(&TIME_LIMIT)).unwrap_or(0) == 0 {
        return None;
    }
    let mut ready = [false; MOST_NODES];
    for (descriptor, index) in descriptors[..count].iter().zip(map) {
        ready[index] = !descriptor.revents().is_empty();
    }
    Some(ready)
}

impl Node {
    pub(crate) fn connect(addresses: &[SocketAddr]) -> Vec<Node> {
        let node = |stream| Node {
            stream,
            buffer: [0; 4096],
            answers: Answers::default(),
            sent: 0,
            sent_before: 0,
            asked: false,
            closed: false,
        };
        connect(addresses).into_iter().map(node).collect()
    }

    /// Sends so many requests, unless the node is so far behind.
    pub(crate) fn send(&mut self, bytes: &[u8], requests: u64, far_behind: u64) {
        self.asked = !self.closed && self.sent - self.answers.count < far_behind;
        if self.asked {
            self.sent_before = self.sent;
            match self.stream.write(bytes) {
                Ok(size) if size == bytes.len() => self.sent += requests,
                _ => self.close(),
            }
        }
    }

    /// Receives what is there, and feeds the answers with it.
    pub(crate) fn receive(&mut self, feed: impl FnOnce(&mut Answers, &[u8])) {
        match self.stream.read(&mut self.buffer) {
            Ok(0) => self.close(),
            Ok(size) => feed(&mut self.answers, &self.buffer[..size]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.close(),
        }
    }

    fn close(&mut self) {
        self.closed = true;
        self.asked = false;
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.closed && self.answers.count < self.sent
    }
}

/// Counts the answers in a stream of bytes. All that are asked for here are one line each.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) count: u64,
    /// Whether the last one was `+OK`, or a number that is not zero.
    pub(crate) consent: bool,
    line: u8,
}

impl Answers {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match (self.line, byte) {
                (_, b'\n') => {
                    self.count += 1;
                    self.line = 0;
                    continue;
                }
                (0, b'+') => self.consent = true,
                (0, b'-') => panic!("a server reports an error"),
                (0, _) => self.consent = false,
                (1, b'1'..=b'9') => self.consent = true,
                _ => {}
            }
            // `$-1` has its 1 in the third place, and is no consent.
            self.line = self.line.saturating_add(1);
        }
    }
}

/// The bytes that take a lock and release it.
pub(crate) fn requests(resource: &str, owner: u8) -> (Vec<u8>, Vec<u8>) {
    let mut take = Vec::new();
    let mut release = Vec::new();
    plain::acquire(&mut take, resource.as_bytes(), &token(owner), 600_000);
    release::write(&mut release, resource, &token(owner).digits(), None);
    (take, release)
}

fn token(owner: u8) -> OwnerToken {
    OwnerToken::from_entropy([owner; OwnerToken::ENTROPY])
}

/// A non-blocking connection to each node.
pub(crate) fn connect(addresses: &[SocketAddr]) -> Vec<TcpStream> {
    let connect = |address: &SocketAddr| {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        std::io::Result::Ok(stream)
    };
    addresses
        .iter()
        .map(|address| connect(address).expect("a connection to a server that was just started"))
        .collect()
}
