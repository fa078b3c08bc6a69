//! The client: the nodes of one quorum, shared by all threads that lock on it.

use crate::algorithm;
use crate::api::client::{Client, SharedClient};
use crate::api::guard::MutexGuard;
use crate::api::kind::sealed::Sealed;
use crate::api::kind::{Kind, Read, Set, Slot, Write};
use crate::api::lease::Lease;
use crate::api::lock::Lock;
use crate::api::mutex::Mutex;
use crate::api::node_status::NodeStatus;
use crate::api::shared_lock::SharedLocks;
use crate::api::shutdown::{self, ShutdownOutcome};
use crate::events::error::Result;
use crate::events::metrics::nodes::{NodeSample, NodeSource};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A client of N independent Redis or Valkey masters: makes [`Mutex`]es, and holds the connections
/// they share.
///
/// One connection per node carries the commands of all threads. Cloning is cheap, and clones share
/// everything; a program usually has one client and clones it into its threads. The connections are
/// made when first needed, or by [`connect`](Redlock::connect), made again when lost, and closed
/// with the last clone, guard and mutex. Dropping the last of these waits for the answers to
/// releases: until no node has sent anything for a node timeout, and for 5 s at most, or one node
/// timeout if that is longer; and a node timeout at most for a callback that runs on the watchdog's
/// thread: what still runs then ends with the callback. Background threads serve only locks that
/// are watched, providers of credentials, files of passwords and certificates, and channels that
/// cancel waits. Short-lived ones look up host names, and send releases again that are unanswered
/// while no thread is in a call.
#[derive(Clone)]
pub struct Redlock {
    pub(crate) client: Client,
    /// The leases to read that its threads share.
    reads: Arc<SharedLocks>,
}

impl Redlock {
    /// The lock of a name. Makes no connection; a name that cannot be used is reported when it is
    /// locked.
    ///
    /// A name has 1 to 4096 bytes. Mutexes of the same name and kind are the same lock, in this
    /// process and in every other one that uses the same nodes and prefix.
    pub fn mutex(&self, name: impl AsRef<str>) -> Mutex {
        Mutex::new(Lock::plain(&self.client, name.as_ref()))
    }

    /// The reading side of the read-write lock of a name: many readers, or one
    /// [writer](Redlock::write_mutex). The rules are the same as for [`Write`].
    #[doc(alias = "RwLock")]
    pub fn read_mutex(&self, name: impl AsRef<str>) -> Mutex<Read> {
        Mutex::new(Lock::marked(
            &self.client,
            name.as_ref(),
            algorithm::kind::Kind::Read,
            &self.reads,
        ))
    }

    /// The writing side of the read-write lock of a name. It is another lock than the
    /// [`mutex`](Redlock::mutex) of the same name. See [`Write`].
    #[doc(alias = "RwLock")]
    pub fn write_mutex(&self, name: impl AsRef<str>) -> Mutex<Write> {
        Mutex::new(Lock::marked(
            &self.client,
            name.as_ref(),
            algorithm::kind::Kind::Write(None),
            &self.reads,
        ))
    }

    /// The lock of several names, all or none of them. Makes no connection; names that cannot be
    /// used are reported when they are locked.
    ///
    /// The order of the names does not matter, and a name that is given more than once counts once.
    /// There are 1 to 64, each as for a [`mutex`](Redlock::mutex). See [`Set`].
    pub fn mutex_set(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Mutex<Set> {
        Mutex::new(Lock::set(&self.client, names))
    }

    /// A lock of which at most `permits` are held at once, 1 to 256. Makes no connection; a name or
    /// a number that cannot be used is reported when a permit is taken.
    ///
    /// Semaphores of the same name share their permits, in this process and in every other one that
    /// uses the same nodes and prefix. Their slots are the locks `name#0`, `name#1` and so on. See
    /// [`Slot`].
    pub fn semaphore(&self, name: impl AsRef<str>, permits: usize) -> Mutex<Slot> {
        Mutex::new(Lock::semaphore(&self.client, name.as_ref(), permits))
    }

    /// Makes a guard of the lease of a lock that is held, in whatever thread, process or program it
    /// was taken. Sends nothing and does not wait. The guard has no watchdog; [`Mutex::attach`]
    /// adds one, and describes the rest.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// let guard = redlock.mutex("orders/42").lock()?;
    /// let lease = guard.detach()?;
    ///
    /// // Another client, of the same nodes.
    /// # let another = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// let guard = another.attach(lease)?;
    /// assert_eq!(guard.name(), "orders/42");
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A text has to be parsed as a lease of some kind first: `let lease: Lease = text.parse()?`,
    /// or `Lease<Any>` where the kind is not known.
    ///
    /// # Errors
    /// As [`Mutex::attach`].
    pub fn attach<K: Kind>(&self, lease: Lease<K>) -> Result<MutexGuard<K>> {
        self.client.check_process()?;
        let lock = lease
            .detached
            .lock(&self.client, &self.reads, <K as Sealed>::IS_REENTRANT)?;
        Mutex::new(lock).attach(lease)
    }

    /// Makes all connections, and returns what each node is. Optional: without it, the first lock
    /// makes them.
    ///
    /// A program calls it when it starts, so that a wrong password, a replica or a node named twice
    /// shows at once and the first lock is as quick as any; and as a health check as often as it
    /// likes. Nodes that there is a connection to are asked whether they still are masters, so
    /// those that hang are found out.
    ///
    /// Each node is tried once, and it waits for all of them, for `timeout` at most. A node that is
    /// down is not waited for, nor is one that has failed a moment ago asked again before its
    /// back-off is over. What only a lock can show is not seen: missing permissions, a full memory.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// use quorumlock::{NodeState, Redlock};
    /// use std::time::Duration;
    ///
    /// let redlock = Redlock::builder().node(node.url()).build()?;
    /// for node in redlock.connect(Duration::from_secs(1))? {
    ///     assert_eq!(node.state(), NodeState::Voting, "{node}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when fewer than a quorum of nodes can vote
    /// now, with the cause at each of the others; [`nodes`](Redlock::nodes) returns the statuses
    /// all the same. [`Forked`](crate::ErrorKind::Forked) in a child of the process that built the
    /// client.
    pub fn connect(&self, timeout: Duration) -> Result<Vec<NodeStatus>> {
        self.client.check_process()?;
        let count = self.client.engine.check(timeout);
        self.client.report.deliver_queued();
        if count.is_won() {
            self.nodes()
        } else {
            Err(self
                .client
                .unavailable_for("connect", self.client.unavailability(&count)))
        }
    }

    /// How the nodes look to this client now, in the order in which they were named. Asks none of
    /// them, connects to none, and waits for nothing: it is what the client has found out while it
    /// was used, and which connections have been closed since. A server that was killed a moment
    /// ago is still shown as voting, and as [not connected](NodeStatus::is_connected): an idle
    /// connection may have ended for other reasons.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// use quorumlock::{NodeState, Redlock};
    ///
    /// let redlock = Redlock::builder().node(node.url()).build()?;
    /// assert_eq!(redlock.nodes()?[0].state(), NodeState::Unknown);
    /// let _ = redlock.mutex("orders/42").lock()?.unlock()?;
    ///
    /// for node in redlock.nodes()? {
    ///     println!("{node}");
    ///     assert_eq!(node.state(), NodeState::Voting);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Forked`](crate::ErrorKind::Forked) in a child of the process that built the client.
    pub fn nodes(&self) -> Result<Vec<NodeStatus>> {
        self.client.check_process()?;
        let named = self.client.names.nodes.iter().zip(&self.client.durable);
        let status =
            named
                .zip(self.client.engine.status())
                .map(|((address, &is_durable), snapshot)| {
                    NodeStatus::new(Arc::clone(address), is_durable, snapshot)
                });
        let status = status.collect();
        self.client.report.deliver_queued();
        Ok(status)
    }

    /// Waits until every node has run the pending releases of this client, for `timeout` at most:
    /// the releases of dropped guards and lost attempts that are not sent or not answered yet, and
    /// those that are sent again because a node was down or answered with an error. Closes nothing:
    /// the client can be used on.
    ///
    /// Call it before a program ends by `exit`, which runs no destructors: what is not sent by then
    /// is lost, and those locks stay held for their time to live. Dropping the last handle waits by
    /// itself, but only while answers arrive, for 5 s at most, and not for nodes that are down.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use std::time::Duration;
    ///
    /// drop(redlock.mutex("orders/42").lock()?);
    /// redlock.flush_releases(Duration::from_secs(1))?;
    /// assert!(node.keys().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when a node has not run all of them in time;
    /// the causes name each such node. They are still sent as before.
    /// [`Forked`](crate::ErrorKind::Forked) in a child of the process that built the client.
    pub fn flush_releases(&self, timeout: Duration) -> Result<()> {
        self.client.flush_releases(timeout)
    }

    /// Ends the work of this client and of all its clones, and waits for `timeout` at most: for a
    /// program that is told to end, by `SIGTERM` or otherwise.
    ///
    /// From its first moment on, no lock is granted: each call for one returns an error of kind
    /// [`ShutDown`](crate::ErrorKind::ShutDown), and so do the calls that wait, wherever they are.
    /// One whose attempt is in flight returns when that ends; a lock that it acquires is released.
    /// What is held remains held: guards are valid and extended as before, and their owners may
    /// take a [reentrant](crate::kind::Reentrant) lock again.
    ///
    /// Then it waits until all guards are dropped and every node has run the releases. It may be
    /// called again, to wait for longer, and by several threads at once. A timeout of zero begins
    /// the shutdown and returns what it would wait for. Called by an
    /// [observer](crate::Builder::observer), or by a callback of [`on_lost`](MutexGuard::on_lost)
    /// on the watchdog's thread, it does not wait either. A lock whose guard is
    /// [detached](MutexGuard::detach) is not waited for.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use quorumlock::{ErrorKind, ShutdownOutcome};
    /// use std::{thread, time::Duration};
    ///
    /// let guard = redlock.mutex("orders/42").lock()?;
    /// let worker = thread::spawn(move || {
    ///     // The rest of the work.
    ///     drop(guard);
    /// });
    ///
    /// let outcome = redlock.shutdown(Duration::from_secs(20))?;
    /// assert_eq!(outcome, ShutdownOutcome::Complete, "{outcome}");
    /// let error = redlock.mutex("orders/43").try_lock().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::ShutDown);
    /// # worker.join().unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A [recipe](crate::docs::recipes#pods) has a whole program.
    ///
    /// # Errors
    /// [`Forked`](crate::ErrorKind::Forked) in a child of the process that built the client.
    pub fn shutdown(&self, timeout: Duration) -> Result<ShutdownOutcome> {
        shutdown::shut_down(&self.client, &self.reads, timeout)
    }

    pub(crate) fn new(client: Client) -> Redlock {
        Redlock {
            client,
            reads: Arc::default(),
        }
    }
}

impl NodeSource for SharedClient {
    fn samples(self: Arc<Self>) -> Vec<NodeSample> {
        let client = Client(self);
        if client.is_inherited() {
            return Vec::new();
        }
        let named = client.names.nodes.iter().zip(client.engine.status());
        named.map(|(name, status)| status.sample(name)).collect()
    }
}

impl fmt::Debug for Redlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redlock")
            .field("nodes", &self.client.names.nodes)
            .finish_non_exhaustive()
    }
}
