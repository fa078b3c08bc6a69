//! A wire that can be disturbed: a TCP proxy between a client and a real server.
//!
//! Each connection has two pumps, one per [`Direction`], each a thread that moves bytes from one
//! socket to the other. Between reading and writing a pump passes a gate, and all disturbances
//! happen there: [`Proxy::stall`] closes the gate (bytes wait, no connection breaks),
//! [`Proxy::cut_after`] lets so many more bytes through and then ends the connection in mid-reply,
//! [`Proxy::trickle`] lets them through one by one. [`Proxy::lose_all`] leaves connections half
//! open: they look well to both sides, and nothing arrives any more. [`Proxy::reset_all`] breaks
//! connections as a crashed machine or a firewall does, with RST to both sides. Undisturbed, the
//! end of one side's stream is passed on to the other.
//!
//! Dropping the proxy closes all connections and joins all threads.

use super::listener::{Listener, bind, lock, spawn};
use crate::prelude::*;
use std::io::{Read, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, Weak};

use socket2::SockRef;

/// How often a pump that is stuck in a write looks whether its connection is to end.
const GLANCE: Duration = Duration::from_millis(20);

/// Largest segment, as on Ethernet. The kernel's send buffers go by it: with those of loopback,
/// they take megabytes.
const SEGMENT: u32 = 1400;
/// How many bytes the kernel takes for a proxy that does not read.
const WINDOW: usize = 64 * 1024;
/// How many bytes are kept at most of what the server sends on a connection at first.
const BEGINNING: usize = 16 * 1024;
/// How many pieces, each of one read, are on a delayed wire at once, each way.
const IN_FLIGHT: usize = 4;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToClient,
    ToServer,
}

/// A proxy in front of one server.
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    listener: Listener,
}

impl Proxy {
    /// A proxy before each of these servers.
    pub(crate) fn before_each(servers: &[Server]) -> Vec<Proxy> {
        let before = |server: &Server| Proxy::before(server.port());
        servers.iter().map(before).collect()
    }

    /// A server, and a proxy before it.
    pub(crate) fn and_server() -> (Server, Proxy) {
        let server = Server::start().expect("a server");
        let proxy = Proxy::before(server.port());
        (server, proxy)
    }

    /// A proxy that leads to this port of 127.0.0.1. The server need not be there yet.
    pub(crate) fn before(server: u16) -> Proxy {
        let listener = bind();
        // The connections that it accepts have this too.
        SockRef::from(&listener)
            .set_tcp_mss(SEGMENT)
            .expect("a size of segments");
        SockRef::from(&listener)
            .set_recv_buffer_size(WINDOW)
            .expect("a size of a buffer");
        let state = Mutex::new(State {
            server,
            ..State::default()
        });
        let shared = Arc::new(Shared {
            changed: Condvar::new(),
            state,
        });
        let accepting = Arc::clone(&shared);
        let accept = move |listener: &TcpListener| accept(listener, &accepting);
        let listener = Listener::accepting("proxy listener", listener, accept);
        Proxy { shared, listener }
    }

    pub(crate) fn port(&self) -> u16 {
        self.listener.port
    }

    /// Leads each connection that is made from now on to this port: another server takes over the
    /// address.
    pub(crate) fn lead_to(&self, server: u16) {
        self.shared.state().server = server;
    }

    pub(crate) fn url(&self) -> String {
        let scheme = if std::env::var_os(TLS_VARIABLE).is_some() {
            "rediss"
        } else {
            "redis"
        };
        format!("{scheme}://{}:{}", Ipv4Addr::LOCALHOST, self.listener.port)
    }

    /// Holds back everything that goes this way, on connections old and new, until
    /// [`flow`](Proxy::flow).
    pub(crate) fn stall(&self, direction: Direction) {
        self.shared.state().gate(direction).stalled = true;
    }

    /// Lets bytes go this way one at a time, with a pause before each, until [`flow`](Proxy::flow).
    pub(crate) fn trickle(&self, direction: Direction, pause: Duration) {
        self.shared.state().gate(direction).pause = Some(pause);
    }

    /// Delays everything that goes either way from now on, on new connections: half of a round trip
    /// each way. Nothing waits for what went before, as on a long wire. No more than [`IN_FLIGHT`]
    /// pieces are on the way: what the wire does not take stays with its sender.
    pub(crate) fn delay(&self, round_trip: Duration) {
        self.shared.state().delay = round_trip / 2;
    }

    /// Lets this direction go on at full speed, beginning with what was held back.
    pub(crate) fn flow(&self, direction: Direction) {
        let mut state = self.shared.state();
        (state.gate(direction).stalled, state.gate(direction).pause) = (false, None);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Lets this many more bytes go this way, then ends the connection that they went on. Happens
    /// once.
    pub(crate) fn cut_after(&self, direction: Direction, bytes: u64) {
        self.shared.state().gate(direction).allowance = Some(bytes);
    }

    /// Leaves every open connection half open: whatever either side sends on it is lost. New ones
    /// are well.
    pub(crate) fn lose_all(&self) {
        let state = self.shared.state();
        let wires = state.connections.iter().map(|open| open.wire.upgrade());
        wires
            .flatten()
            .for_each(|wire| wire.is_lost.store(true, Ordering::Relaxed));
    }

    /// Breaks every open connection with RST to both sides. What was held back is lost. New ones
    /// are accepted.
    pub(crate) fn reset_all(&self) {
        let connections = std::mem::take(&mut self.shared.state().connections);
        self.shared.end(connections, Ending::Reset);
    }

    /// Resets each connection that is made from now on, or none any more.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.shared.state().refuses = refuses;
    }

    /// How many connections were ever accepted.
    pub(crate) fn connections(&self) -> usize {
        self.shared.state().accepted
    }

    /// How many connections are open.
    pub(crate) fn open(&self) -> usize {
        let state = self.shared.state();
        let connections = state.connections.iter();
        connections
            .filter(|connection| connection.is_open())
            .count()
    }

    /// Keeps what the server sends at first on connections that are made from now on without a
    /// delay, for as long as the proxy exists.
    pub(crate) fn keep_beginnings(&self) {
        self.shared.state().keeps_beginnings = true;
    }

    /// What [`keep_beginnings`](Proxy::keep_beginnings) has kept of each connection, in the order
    /// in which they were made.
    pub(crate) fn beginnings(&self) -> Vec<Vec<u8>> {
        self.shared.state().beginnings.clone()
    }

    /// How many bytes went this way so far, on all connections.
    pub(crate) fn bytes(&self, direction: Direction) -> u64 {
        self.shared.state().gate(direction).passed
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().stopping = true;
        self.listener.end();
        let connections = std::mem::take(&mut self.shared.state().connections);
        self.shared.end(connections, Ending::Close);
    }
}

struct Shared {
    changed: Condvar,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    accepted: usize,
    beginnings: Vec<Vec<u8>>,
    connections: Vec<Connection>,
    keeps_beginnings: bool,
    /// How long bytes are on the way, each way.
    delay: Duration,
    refuses: bool,
    /// The port that new connections lead to.
    server: u16,
    stopping: bool,
    to_client: Gate,
    to_server: Gate,
}

#[derive(Default)]
struct Gate {
    allowance: Option<u64>,
    passed: u64,
    /// Before each byte.
    pause: Option<Duration>,
    stalled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Close,
    Reset,
}

struct Connection {
    wire: Weak<Wire>,
    pumps: Vec<JoinHandle<()>>,
}

/// The two sockets of a connection and how it is to end. Only the pumps own it, so that the sockets
/// close when both have returned: a socket sends its RST when its last owner closes it.
struct Wire {
    client: TcpStream,
    server: TcpStream,
    ending: Mutex<Option<Ending>>,
    is_lost: AtomicBool,
    /// Where its beginning is kept.
    beginning: Option<usize>,
}

impl State {
    fn gate(&mut self, direction: Direction) -> &mut Gate {
        match direction {
            Direction::ToClient => &mut self.to_client,
            Direction::ToServer => &mut self.to_server,
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Ends the connections and returns when both sides have been closed.
    fn end(&self, connections: Vec<Connection>, ending: Ending) {
        for connection in &connections {
            if let Some(wire) = connection.wire.upgrade() {
                wire.end(ending);
            }
        }
        self.changed.notify_all();
        for connection in connections {
            for pump in connection.pumps {
                let _ = pump.join();
            }
        }
    }

    /// Waits while the gate is closed, then returns how many of `wanted` bytes may pass and whether
    /// that is the end. `None` when the connection ended meanwhile.
    fn pass(&self, wire: &Wire, direction: Direction, wanted: usize) -> Option<(usize, bool)> {
        let mut state = self.state();
        while state.gate(direction).stalled && wire.ending().is_none() {
            // A timeout too, as an ending is stored under another lock.
            let (woken, _) = self
                .changed
                .wait_timeout(state, GLANCE)
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
        }
        let pause = state.gate(direction).pause;
        if let Some(pause) = pause {
            drop(state);
            thread::sleep(pause);
            state = self.state();
        }
        if wire.ending().is_some() {
            return None;
        }
        let gate = state.gate(direction);
        let wanted = if pause.is_some() { 1 } else { wanted };
        let allowed = gate.allowance.map_or(wanted, |left| {
            wanted.min(usize::try_from(left).unwrap_or(wanted))
        });
        let mut last = false;
        if let Some(left) = &mut gate.allowance {
            *left -= allowed as u64;
            last = *left == 0;
        }
        if last {
            gate.allowance = None;
        }
        gate.passed += allowed as u64;
        Some((allowed, last))
    }
}

impl Connection {
    fn is_open(&self) -> bool {
        self.pumps.iter().any(|pump| !pump.is_finished())
    }
}

impl Wire {
    fn ending(&self) -> Option<Ending> {
        *lock(&self.ending)
    }

    fn end(&self, ending: Ending) {
        lock(&self.ending).get_or_insert(ending);
        let (side, linger) = match ending {
            Ending::Close => (Shutdown::Both, None),
            Ending::Reset => (Shutdown::Read, Some(Duration::ZERO)),
        };
        for stream in [&self.client, &self.server] {
            let _ = SockRef::from(stream).set_linger(linger);
            // Wakes the pump that reads here. Closing the reading half sends nothing to the other
            // side.
            let _ = stream.shutdown(side);
        }
    }

    fn ends(&self, direction: Direction) -> (&TcpStream, &TcpStream) {
        match direction {
            Direction::ToClient => (&self.server, &self.client),
            Direction::ToServer => (&self.client, &self.server),
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.state().stopping {
            break;
        }
        let Ok(client) = client else { continue };
        shared.state().accepted += 1;
        if shared.state().refuses {
            // Closed here, with RST.
            let _ = SockRef::from(&client).set_linger(Some(Duration::ZERO));
            continue;
        }
        // Without a server the client sees its connection closed.
        let server = shared.state().server;
        let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else {
            continue;
        };
        for stream in [&client, &server] {
            let _ = stream.set_nodelay(true);
            let _ = stream.set_write_timeout(Some(GLANCE));
        }
        // Until the connection is known, its pumps pass nothing: a disturbance reaches all that
        // have passed anything.
        let mut state = shared.state();
        let beginning = state.keeps_beginnings.then_some(state.beginnings.len());
        if beginning.is_some() {
            state.beginnings.push(Vec::new());
        }
        let wire = Arc::new(Wire {
            client,
            server,
            ending: Mutex::new(None),
            is_lost: AtomicBool::new(false),
            beginning,
        });
        let delay = state.delay;
        let pumps = [
            (Direction::ToClient, "proxy to client"),
            (Direction::ToServer, "proxy to server"),
        ]
        .map(|(direction, name)| {
            let wire = Arc::clone(&wire);
            let shared = Arc::clone(shared);
            spawn(name, move || match delay {
                Duration::ZERO => pump(&wire, direction, &shared),
                delay => pump_late(&wire, direction, delay, &shared),
            })
        })
        .into();
        state.connections.retain(Connection::is_open);
        state.connections.push(Connection {
            wire: Arc::downgrade(&wire),
            pumps,
        });
    }
}

fn pump(wire: &Wire, direction: Direction, shared: &Shared) {
    let (mut source, mut sink) = wire.ends(direction);
    let mut buffer = [0; 16 * 1024];
    let mut passed = 0;
    loop {
        let filled = match source.read(&mut buffer) {
            Ok(0) => {
                if wire.ending().is_none() {
                    let _ = sink.shutdown(Shutdown::Write);
                }
                return;
            }
            Ok(filled) => filled,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return wire.end(Ending::Reset),
        };
        if let (Direction::ToClient, Some(beginning)) = (direction, wire.beginning) {
            let kept = filled.min(BEGINNING.saturating_sub(passed));
            shared.state().beginnings[beginning].extend_from_slice(&buffer[..kept]);
        }
        passed += filled;
        let mut rest = if wire.is_lost.load(Ordering::Relaxed) {
            &[]
        } else {
            &buffer[..filled]
        };
        while !rest.is_empty() {
            let Some((allowed, last)) = shared.pass(wire, direction, rest.len()) else {
                return;
            };
            let (now, later) = rest.split_at(allowed);
            if write_all(&mut sink, now, wire).is_err() {
                return wire.end(Ending::Reset);
            }
            if last {
                return wire.end(Ending::Close);
            }
            rest = later;
        }
    }
}

/// Moves bytes that are on the way for so long, and the end of the stream as well. A reset ends
/// both ways at once, and loses what is on the way.
fn pump_late(wire: &Wire, direction: Direction, delay: Duration, shared: &Shared) {
    let (mut source, mut sink) = wire.ends(direction);
    let (sender, arrivals) = mpsc::sync_channel::<(Instant, Vec<u8>)>(IN_FLIGHT);
    thread::scope(move |scope| {
        scope.spawn(move || {
            for (at, bytes) in arrivals {
                thread::sleep(at.saturating_duration_since(Instant::now()));
                let is_end = bytes.is_empty();
                let may_pass = shared.pass(wire, direction, bytes.len()).is_some();
                if !may_pass || !is_end && write_all(&mut sink, &bytes, wire).is_err() {
                    return wire.end(Ending::Reset);
                }
                if is_end {
                    let _ = sink.shutdown(Shutdown::Write);
                }
            }
        });
        // Gone when this thread has read the last: the other one goes when it has written it.
        let sender = sender;
        let mut buffer = [0; 16 * 1024];
        loop {
            let filled = match source.read(&mut buffer) {
                Ok(filled) => filled,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return wire.end(Ending::Reset),
            };
            let _ = sender.send((Instant::now() + delay, buffer[..filled].to_vec()));
            if filled == 0 {
                return;
            }
        }
    });
}

/// Writes everything, unless the connection is ended meanwhile.
fn write_all(sink: &mut impl Write, mut bytes: &[u8], wire: &Wire) -> io::Result<()> {
    while !bytes.is_empty() {
        match sink.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && wire.ending().is_none() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
