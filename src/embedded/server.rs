//! The thread behind an embedded node: one poll loop over a listener, its connections and a waker.
//!
//! Orders (hang, kill, ...) come through a channel and are confirmed when they have been carried
//! out, so that what a test does next happens after them. This is the only part of the node that
//! touches a socket; the clock it reads is [`NodeClock`], the only one there is.
//!
//! A killed node closes its listener but keeps its port, on a socket that is bound and does not
//! listen: connecting is refused, as on a machine without the server, and no other program can take
//! the port until the node is revived.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Socket, Type};

use super::connection::Connection;
use super::store::{Millis, Store};
use super::wire::Identity;
use crate::os::waker::Waker;

/// How much is read from one connection before the next one has its turn.
const CHUNK: usize = 16 * 1024;
/// Connections that the kernel accepts for a node that hangs.
const BACKLOG: i32 = 128;
/// How long a listener is left alone that cannot accept, for want of descriptors for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// The node's time: the wall clock when it was created, and from then on the monotonic one.
#[derive(Clone, Copy)]
pub(super) struct NodeClock {
    epoch: Millis,
    origin: Instant,
}

impl NodeClock {
    /// Starts at the present wall-clock time.
    pub(super) fn start() -> NodeClock {
        let since_epoch = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        NodeClock {
            epoch: millis(since_epoch),
            origin: Instant::now(),
        }
    }

    /// The present.
    pub(super) fn now(&self) -> Millis {
        self.epoch.saturating_add(millis(self.origin.elapsed()))
    }
}

/// What the thread and the node's owner both see.
pub(super) struct ServerState {
    pub(super) address: SocketAddr,
    pub(super) clock: NodeClock,
    pub(super) connections: AtomicUsize,
    pub(super) identity: Option<Identity>,
    pub(super) store: Mutex<Store>,
    pub(super) waker: Waker,
}

impl ServerState {
    /// The store. A panic elsewhere does not make it unusable: each command leaves it whole.
    pub(super) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What to do next. It confirms that it was carried out.
pub(super) type Order = Box<dyn FnOnce(&mut Server) + Send>;

/// Listens on a port of the loopback interface; 0 takes any free one.
pub(super) fn listen(port: u16) -> io::Result<TcpListener> {
    let socket = reserve(port)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The state of the thread.
pub(super) struct Server {
    pub(super) connections: Vec<Connection>,
    pub(super) is_hung: bool,
    pub(super) is_stopped: bool,
    pub(super) listening: Listening,
    pub(super) requests: Receiver<Order>,
    pub(super) shared: Arc<ServerState>,
}

/// What has become of the listener.
pub(super) enum Listening {
    /// The node was killed. The socket holds the port, if it could be had again.
    No(Option<Socket>),
    Yes(TcpListener),
}

impl Server {
    /// Runs until it is stopped, or its owner is gone.
    pub(super) fn run(mut self) {
        let mut chunk = vec![0; CHUNK];
        let mut accepting = true;
        loop {
            let Ok(ready) = self.wait(accepting) else {
                return;
            };
            if ready[0] {
                self.shared.waker.drain();
                while let Ok(order) = self.requests.try_recv() {
                    order(&mut self);
                }
                if self.is_stopped {
                    return;
                }
                // The sockets that were ready may be gone by now: look again.
                continue;
            }
            let incoming = ready.get(1 + self.connections.len()) == Some(&true);
            self.advance(&ready[1..], &mut chunk);
            accepting = !incoming || self.accept();
            self.shared
                .connections
                .store(self.connections.len(), Ordering::Release);
        }
    }

    /// Waits until something is ready. Which is: the waker, each of the connections, the listener.
    fn wait(&self, accepting: bool) -> io::Result<Vec<bool>> {
        let mut sockets = vec![PollFd::new(self.shared.waker.source(), PollFlags::IN)];
        if !self.is_hung {
            for connection in &self.connections {
                let mut interest = PollFlags::empty();
                interest.set(PollFlags::IN, connection.wants_to_read());
                interest.set(PollFlags::OUT, connection.wants_to_write());
                sockets.push(PollFd::new(connection.stream(), interest));
            }
            if let Listening::Yes(listener) = &self.listening
                && accepting
            {
                sockets.push(PollFd::new(listener, PollFlags::IN));
            }
        }
        let pause = Timespec::try_from(ACCEPT_PAUSE).ok();
        match poll(&mut sockets, pause.filter(|_| !accepting).as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = sockets.iter().map(|socket| !socket.revents().is_empty());
        Ok(ready.collect())
    }

    pub(super) fn kill(&mut self) {
        if let Listening::No(_) = self.listening {
            return;
        }
        // Assigned empty first, so that the listener is closed before its port is bound again.
        self.listening = Listening::No(None);
        self.connections.clear();
        self.shared.connections.store(0, Ordering::Release);
        self.listening = Listening::No(reserve(self.shared.address.port()).ok());
        self.is_hung = false;
        self.shared.store().clear();
    }

    /// With the new run id.
    pub(super) fn revive(&mut self, run_id: String) -> io::Result<()> {
        let Listening::No(reserved) = &mut self.listening else {
            return Ok(());
        };
        let listener = match reserved.take() {
            Some(socket) => socket.listen(BACKLOG).map(|()| socket.into())?,
            None => listen(self.shared.address.port())?,
        };
        self.listening = Listening::Yes(listener);
        let now = self.shared.clock.now();
        self.shared.store().restart(run_id, now);
        Ok(())
    }

    /// Serves the connections that are ready, and drops those that have come to their end.
    fn advance(&mut self, ready: &[bool], chunk: &mut [u8]) {
        if !ready.contains(&true) {
            return;
        }
        let now = self.shared.clock.now();
        let mut store = self.shared.store();
        let mut ready = ready.iter();
        self.connections.retain_mut(|connection| {
            let is_ready = ready.next() == Some(&true);
            let is_alive = !is_ready || connection.advance(&mut store, now, chunk);
            if !is_alive {
                connection.forget(&mut store);
            }
            is_alive
        });
        let messages = store.take_messages();
        if !messages.is_empty() {
            self.connections.retain_mut(|connection| {
                let is_alive = connection.hear(&messages);
                if !is_alive {
                    connection.forget(&mut store);
                }
                is_alive
            });
        }
    }

    /// Accepts all waiting connections; false when the system could not give us one of them.
    fn accept(&mut self) -> bool {
        let Listening::Yes(listener) = &self.listening else {
            return true;
        };
        loop {
            match listener.accept() {
                // A client that is gone again before its options are set is no loss.
                Ok((stream, _)) => self
                    .connections
                    .extend(Connection::new(stream, self.shared.identity.as_ref()).ok()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }
}

/// A socket that has the port and does not listen.
fn reserve(port: u16) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    // Without it, connections that were closed lately keep the port from being bound again. On
    // Windows they do not, and the option would let another process take the port.
    #[cfg(not(windows))]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    Ok(socket)
}

fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}
