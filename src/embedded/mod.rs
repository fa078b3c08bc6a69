//! A node inside your own process, for first runs, doctests and unit tests without a Redis server.
//!
//! **Not for production.** An [`EmbeddedNode`] listens on the loopback interface and answers what
//! this library asks, in the words of a real server, and nothing else. It keeps no data across its
//! own death, knows no other process's locks, and locks that live in the process they are to
//! protect protect nothing.
//!
//! It serves for faults, too: a test can make it hang, die, come back empty, run out of memory or
//! turn into a replica, which takes a process and some patience with a real server.
//!
//! ```
//! use quorumlock::{Redlock, embedded::EmbeddedNode};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = EmbeddedNode::start()?;
//! let redlock = Redlock::builder().node(node.url()).build()?;
//! let guard = redlock.mutex("orders/42").lock()?;
//! assert_eq!(node.keys(), ["orders/42"]);
//! # drop(guard);
//! # Ok(())
//! # }
//! ```

// One thread per node, ended and joined when the node is dropped. Its parts: `store` is the node
// without sockets, `store/info` what it reports about itself, `keyspace` its databases, `command`
// what it knows by name, `options` what those commands do that have options, `scripts` what it
// knows by text, `calls` the commands inside a script and how they fail, `queue` what all scripts
// have in common, `pubsub` the subscriptions, `reply` how it writes; `server` is the thread,
// `connection` one client of it, `wire` its bytes, `certificate` what it shows by TLS.

mod calls;
#[cfg(feature = "embedded-tls")]
mod certificate;
mod command;
mod config;
mod connection;
mod keyspace;
mod numbers;
mod options;
mod pubsub;
mod queue;
mod reply;
mod scripts;
mod server;
#[doc(hidden)]
pub mod store;
mod wire;

use crate::os::entropy;
use crate::os::waker::Waker;
use crate::protocol::key_space;
use getrandom::SysRng;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use server::{Listening, NodeClock, Order, Server, ServerState};
use store::Store;
use wire::Identity;

pub use config::{Condition, ServerKind};

/// A node in this process. Dropping it closes its connections, ends its thread and forgets its
/// keys.
///
/// A child made by `fork` has no node, only a copy of its parent's handle. Dropping that does
/// nothing.
pub struct EmbeddedNode {
    requests: Sender<Order>,
    shared: Arc<ServerState>,
    thread: Option<JoinHandle<()>>,
}

impl EmbeddedNode {
    /// Starts a node that pretends to be Redis 7.0, without a password, on a free port of
    /// 127.0.0.1.
    ///
    /// # Errors
    /// The system has no port, descriptor, thread or random bytes to give.
    pub fn start() -> io::Result<EmbeddedNode> {
        EmbeddedNode::builder().start()
    }

    /// Starts to set up a node with a password or TLS, or one that pretends to be another server.
    pub fn builder() -> NodeBuilder {
        NodeBuilder {
            kind: ServerKind::default(),
            password: None,
            scripts: true,
            identity: None,
        }
    }

    /// The certificate of the CA that has issued the node's, in PEM; none of a node without TLS.
    #[cfg(feature = "embedded-tls")]
    pub fn root_pem(&self) -> Option<&str> {
        Some(&self.shared.identity.as_ref()?.root_pem)
    }

    /// `redis://127.0.0.1:port`, or `rediss://` of a node with TLS. A password is not part of it.
    /// Stays the same through [`kill`](Self::kill) and [`revive`](Self::revive).
    pub fn url(&self) -> String {
        let scheme = if self.shared.identity.is_some() {
            "rediss"
        } else {
            "redis"
        };
        format!("{scheme}://{}", self.shared.address)
    }

    /// Stops it in its tracks, like SIGSTOP: the kernel goes on to accept connections and bytes for
    /// it, and nothing is read or answered until [`resume`](Self::resume). When this returns, it
    /// has stopped. Keys go on to expire. A dead node cannot hang.
    pub fn hang(&self) {
        // It fails only when the thread is gone, and then nothing is answered either.
        let _ = self.order(|server| server.is_hung = true);
    }

    /// Lets a hung node go on, like SIGCONT: it answers all that has arrived meanwhile. Does
    /// nothing otherwise.
    pub fn resume(&self) {
        let _ = self.order(|server| server.is_hung = false);
    }

    /// Ends it like kill -9: its connections are closed, new ones are refused, all its keys are
    /// lost. When this returns, it is dead. The port stays reserved. Does nothing to a dead node.
    pub fn kill(&self) {
        let _ = self.order(Server::kill);
    }

    /// Starts a dead node again: same port, same settings, no keys, a new `run_id`, an uptime that
    /// begins anew. Does nothing to a node that is alive.
    ///
    /// # Errors
    /// The port could not be kept when the node was killed and another socket has it now, or there
    /// are no random bytes.
    pub fn revive(&self) -> io::Result<()> {
        let run_id = fresh_run_id()?;
        self.order(|server| server.revive(run_id))?
    }

    /// Puts it into a condition, for all connections and until it is changed, restarts included.
    pub fn set_condition(&self, condition: Condition) {
        self.shared.store().set_condition(condition);
    }

    /// The keys of database 0 that are alive now, in byte order, without what the node remembers of
    /// itself. Bytes that are not UTF-8 are shown as U+FFFD.
    pub fn keys(&self) -> Vec<String> {
        let now = self.shared.clock.now();
        let store = self.shared.store();
        let keys = store.keys(now).map(String::from_utf8_lossy);
        keys.filter(|key| !key.starts_with(key_space::NODE))
            .map(String::from)
            .collect()
    }

    /// The value of a key of database 0, if it is alive now and a string.
    pub fn value(&self, key: impl AsRef<[u8]>) -> Option<Vec<u8>> {
        let now = self.shared.clock.now();
        self.shared
            .store()
            .value(key.as_ref(), now)
            .map(<[u8]>::to_vec)
    }

    /// How many connections it has accepted and not seen the end of. While it hangs, it sees
    /// neither.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Acquire)
    }

    /// Tells the thread what to do, and waits until it has done it. The thread never blocks
    /// elsewhere than in poll.
    fn order<T: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Server) -> T + Send + 'static,
    ) -> io::Result<T> {
        let (done, outcome) = mpsc::channel();
        let gone = || io::Error::other("the embedded node's thread is gone");
        if self.shared.waker.is_inherited() {
            return Err(gone());
        }
        // The caller may have gone away by then.
        let order = move |server: &mut Server| drop(done.send(order(server)));
        self.requests.send(Box::new(order)).map_err(|_| gone())?;
        self.shared.waker.wake();
        outcome.recv().map_err(|_| gone())
    }
}

impl Drop for EmbeddedNode {
    fn drop(&mut self) {
        if self.shared.waker.is_inherited() {
            // In a child made by `fork`: the node is the parent's, and goes on.
            return std::mem::forget(self.thread.take());
        }
        let _ = self.order(|server| server.is_stopped = true);
        if let Some(thread) = self.thread.take() {
            // Had it panicked, its sockets would be closed all the same.
            let _ = thread.join();
        }
    }
}

/// Shows the address and nothing that is stored.
impl fmt::Debug for EmbeddedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedNode")
            .field("address", &self.shared.address)
            .finish_non_exhaustive()
    }
}

/// Settings of an [`EmbeddedNode`], from [`EmbeddedNode::builder`].
#[derive(Clone)]
#[must_use = "a builder starts nothing before `start`"]
pub struct NodeBuilder {
    kind: ServerKind,
    password: Option<String>,
    scripts: bool,
    /// Makes what it shows by TLS.
    identity: Option<fn() -> io::Result<Identity>>,
}

impl NodeBuilder {
    /// Which server it pretends to be. Default: [`ServerKind::Redis`].
    pub fn kind(mut self, kind: ServerKind) -> NodeBuilder {
        self.kind = kind;
        self
    }

    /// The password of its only user, `default`. Default: none, every client is let in.
    pub fn password(mut self, password: impl Into<String>) -> NodeBuilder {
        self.password = Some(password.into());
        self
    }

    /// Makes `EVAL` an unknown command, as on a server that was built or configured without
    /// scripts.
    pub fn without_scripts(mut self) -> NodeBuilder {
        self.scripts = false;
        self
    }

    /// Listens by TLS, with a certificate for 127.0.0.1 and `localhost` and a CA of its own. The
    /// node's URL begins with `rediss://`, and clients trust it by its
    /// [`root_pem`](EmbeddedNode::root_pem). It requires no client certificate.
    ///
    /// ```
    /// use quorumlock::{Redlock, Tls, embedded::EmbeddedNode};
    ///
    /// let nodes = [EmbeddedNode::builder().tls().start()?, EmbeddedNode::builder().tls().start()?];
    /// let tls = nodes.iter().fold(Tls::new(), |tls, node| tls.roots_pem(node.root_pem().unwrap()));
    /// let redlock = Redlock::builder().nodes(nodes.iter().map(EmbeddedNode::url)).tls(tls).build()?;
    /// let guard = redlock.mutex("orders/42").lock()?;
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "embedded-tls")]
    pub fn tls(mut self) -> NodeBuilder {
        self.identity = Some(|| Identity::make().map_err(io::Error::other));
        self
    }

    /// Starts the node on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// The system has no port, descriptor, thread or random bytes to give.
    pub fn start(self) -> io::Result<EmbeddedNode> {
        let identity = self.identity.map(|make| make()).transpose()?;
        let clock = NodeClock::start();
        let mut store = Store::new(self.kind, fresh_run_id()?, clock.now());
        store.set_password(self.password);
        store.set_scripts(self.scripts);
        let listener = server::listen(0)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(ServerState {
            address,
            clock,
            connections: AtomicUsize::new(0),
            identity,
            store: Mutex::new(store),
            waker: Waker::new()?,
        });
        let (requests, orders) = mpsc::channel();
        let server = Server {
            connections: Vec::new(),
            is_hung: false,
            is_stopped: false,
            listening: Listening::Yes(listener),
            requests: orders,
            shared: Arc::clone(&shared),
        };
        let thread = thread::Builder::new()
            .name(format!("embedded-{}", address.port()))
            .spawn(move || server.run())?;
        Ok(EmbeddedNode {
            requests,
            shared,
            thread: Some(thread),
        })
    }
}

/// Shows whether there is a password, not which.
impl fmt::Debug for NodeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeBuilder")
            .field("kind", &self.kind)
            .field("password", &self.password.as_ref().map(|_| "..."))
            .field("scripts", &self.scripts)
            .finish()
    }
}

/// 40 random hex digits.
fn fresh_run_id() -> io::Result<String> {
    let token = entropy::draw(&mut SysRng).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(String::from_utf8_lossy(&token.digits()).into_owned())
}

#[cfg(test)]
mod clock_tests;
#[cfg(test)]
mod tests;
