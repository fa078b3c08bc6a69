//! A network with a long round trip: a proxy for each node, that holds all bytes for half of it in
//! each direction.
//!
//! One thread serves the proxies of all nodes, on the servers' cores. Bytes keep their order, and a
//! pause in what one connection reads holds up no other. What is held is bounded: a connection with
//! too much in flight is not read from until some of it has been passed on. Only the handshake of a
//! connection takes no time.

use crate::setting::Setting;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Pieces that one direction of a connection holds at most.
const MOST_HELD: usize = 256;
/// The longest piece, in bytes.
const LONGEST_PIECE: usize = 16 * 1024;
/// How long the end of the proxies may take.
const LONGEST_POLL: Duration = Duration::from_millis(50);

/// Proxies that end with this value.
pub(crate) struct Proxies {
    addresses: Vec<SocketAddr>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Proxies {
    /// A proxy for each node.
    pub(crate) fn start(setting: &Setting, nodes: &[SocketAddr], round_trip: Duration) -> Proxies {
        let listener = |&node: &SocketAddr| {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            listener.set_nonblocking(true)?;
            io::Result::Ok((listener, node))
        };
        let listeners: Vec<_> = nodes
            .iter()
            .map(|node| listener(node).expect("a port to listen on"))
            .collect();
        let addresses = listeners
            .iter()
            .map(|(listener, _)| listener.local_addr().expect("its address"))
            .collect();
        let is_over = Arc::new(AtomicBool::new(false));
        let mut network = Network {
            listeners,
            passages: Vec::new(),
            delay: round_trip / 2,
            is_over: Arc::clone(&is_over),
        };
        let thread = setting
            .cores
            .for_servers(|| thread::spawn(move || network.run()));
        Proxies {
            addresses,
            is_over,
            thread: Some(thread),
        }
    }

    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for Proxies {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("proxies that do not fail");
        }
    }
}

/// What the thread of the proxies has.
struct Network {
    /// Each with its node.
    listeners: Vec<(TcpListener, SocketAddr)>,
    passages: Vec<Passage>,
    delay: Duration,
    is_over: Arc<AtomicBool>,
}

/// A connection to a proxy, and the proxy's connection to its node.
struct Passage {
    ends: [TcpStream; 2],
    /// What came from the end of the same index, for the other one.
    held: [VecDeque<Piece>; 2],
}

struct Piece {
    bytes: Vec<u8>,
    passed: usize,
    due: Instant,
}

impl Network {
    fn run(&mut self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let now = Instant::now();
            self.passages
                .retain_mut(|passage| passage.pass_on(now).is_ok());
            let ready = self.poll(now);
            let (of_listeners, of_ends) = ready.split_at(self.listeners.len());
            let due = Instant::now() + self.delay;
            let mut of_ends = of_ends.chunks_exact(2);
            self.passages.retain_mut(|passage| {
                let ready = of_ends.next().unwrap_or_default();
                (0..2)
                    .zip(ready)
                    .filter(|(_, ready)| **ready)
                    .all(|(end, _)| passage.receive(end, due).is_ok())
            });
            for ((listener, node), _) in self
                .listeners
                .iter()
                .zip(of_listeners)
                .filter(|(_, ready)| **ready)
            {
                self.passages.extend(
                    listener
                        .accept()
                        .and_then(|(client, _)| Passage::new(client, *node)),
                );
            }
        }
    }

    /// Waits until there is something to accept, to receive or to pass on. Returns what can be
    /// accepted and received: each listener, then both ends of each passage.
    fn poll(&self, now: Instant) -> Vec<bool> {
        let mut descriptors: Vec<PollFd<'_>> = self
            .listeners
            .iter()
            .map(|(listener, _)| PollFd::new(listener, PollFlags::IN))
            .collect();
        descriptors.extend(
            self.passages
                .iter()
                .flat_map(|passage| passage.interests(now)),
        );
        let due = self
            .passages
            .iter()
            .flat_map(|passage| passage.due(now))
            .min();
        let timeout = due
            .map_or(LONGEST_POLL, |due| due.saturating_duration_since(now))
            .min(LONGEST_POLL);
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        poll(&mut descriptors, Some(&timeout)).expect("a poll");
        let can_be_read = PollFlags::IN | PollFlags::ERR | PollFlags::HUP;
        descriptors
            .iter()
            .map(|descriptor| descriptor.revents().intersects(can_be_read))
            .collect()
    }
}

impl Passage {
    fn new(client: TcpStream, node: SocketAddr) -> io::Result<Passage> {
        let ends = [client, TcpStream::connect(node)?];
        for end in &ends {
            end.set_nodelay(true)?;
            end.set_nonblocking(true)?;
        }
        Ok(Passage {
            ends,
            held: Default::default(),
        })
    }

    /// What is polled at each end: input while there is room for it, output where a piece could not
    /// be passed on.
    fn interests(&self, now: Instant) -> [PollFd<'_>; 2] {
        [0, 1].map(|end| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, self.held[end].len() < MOST_HELD);
            flags.set(
                PollFlags::OUT,
                self.held[1 - end]
                    .front()
                    .is_some_and(|piece| piece.due <= now),
            );
            PollFd::new(&self.ends[end], flags)
        })
    }

    /// When the next piece of each direction is to be passed on. What is overdue waits for its end
    /// and not for a time.
    fn due(&self, now: Instant) -> impl Iterator<Item = Instant> {
        self.held
            .iter()
            .filter_map(|held| held.front())
            .map(|piece| piece.due)
            .filter(move |&due| due > now)
    }

    /// Passes on all that is due. An error ends both connections.
    fn pass_on(&mut self, now: Instant) -> io::Result<()> {
        for (from, held) in self.held.iter_mut().enumerate() {
            while let Some(piece) = held.front_mut().filter(|piece| piece.due <= now) {
                match self.ends[1 - from].write(&piece.bytes[piece.passed..]) {
                    Ok(size) => piece.passed += size,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
                if piece.passed == piece.bytes.len() {
                    held.pop_front();
                }
            }
        }
        Ok(())
    }

    /// Receives a piece. An error, or the end of a connection, ends both.
    fn receive(&mut self, end: usize, due: Instant) -> io::Result<()> {
        if self.held[end].len() >= MOST_HELD {
            return Ok(());
        }
        let mut buffer = [0; LONGEST_PIECE];
        match self.ends[end].read(&mut buffer) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(size) => {
                self.held[end].push_back(Piece {
                    bytes: buffer[..size].to_vec(),
                    passed: 0,
                    due,
                });
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }
}
