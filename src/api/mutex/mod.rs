//! A lock by name, and the ways to take it. [`kinds`] has what only some kinds have.

mod kinds;

use crate::api::guard::MutexGuard;
use crate::api::kind::{Any, Kind, Plain};
use crate::api::lease::Lease;
use crate::api::lock::Lock;
use crate::api::wait::Wait;
use crate::api::watchdog::Watchdog;
use crate::events::error::Result;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// A lock by name, with settings, of the kind `K`.
///
/// Locking returns a [`MutexGuard`]. While that is held and its lease lasts, no other client that
/// follows the protocol gets one that the [kind](crate::kind) excludes. A thread that locks what it
/// holds waits for itself, until the lease ends, unless the lock is
/// [`reentrant`](Mutex::reentrant); an observer receives
/// [`WaitingForItself`](crate::event::Event::WaitingForItself).
///
/// Threads that share a client and wait for the same lock queue up in their order, and only the
/// head of the queue asks the servers (rule 3.4). [`try_lock`](Mutex::try_lock) does not queue up.
///
/// A `Mutex` is a name with settings and costs only memory: make one where it is needed, or keep
/// and clone it. Settings that cannot be used are reported when it is locked.
pub struct Mutex<K: Kind = Plain> {
    lock: Lock,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Mutex<K> {
    pub(super) fn new(lock: Lock) -> Mutex<K> {
        Mutex {
            lock,
            kind: PhantomData,
        }
    }

    /// The name of the lock, without the prefix. For a set, its names in order, separated by a
    /// comma and a blank.
    pub fn name(&self) -> &str {
        self.lock.name()
    }

    /// Sets how long the lock lasts unless it is released or extended: the servers free it then,
    /// also when its holder has crashed. Default: the ttl of the [client](crate::Builder::ttl), 10
    /// s (rule 4.2).
    ///
    /// Choose it longer than the work takes, with room for a slow day, or let a
    /// [`watchdog`](Mutex::watchdog) extend it. At least 1 ms and more than the allowance for clock
    /// drift, at most [`Builder::max_ttl`](crate::Builder::max_ttl), 60 s by default; fractions of
    /// a millisecond are dropped.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.lock.ttl = ttl;
        self
    }

    /// Extends the lock automatically while its guard exists, and signals on the guard when it is
    /// [`lost`](MutexGuard::lost) all the same. Default: no watchdog; the lock ends with its time
    /// to live (rule 5).
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use quorumlock::Watchdog;
    /// use std::{thread, time::Duration};
    ///
    /// let mutex = redlock.mutex("reports/2024-02").ttl(Duration::from_millis(200)).watchdog(Watchdog::new());
    /// let guard = mutex.lock()?;
    /// thread::sleep(Duration::from_millis(500));
    /// assert!(!guard.remaining().is_zero(), "the work took longer than the time to live, and is still alone");
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn watchdog(mut self, watchdog: Watchdog) -> Self {
        self.lock.watchdog = Some(watchdog);
        self
    }

    /// Keeps the lock for at least this long after it was taken, however early it is released: for
    /// a short job that several machines start at nearly the same time, by clocks that differ.
    /// Default: zero. At most [`Builder::max_ttl`](crate::Builder::max_ttl). The nodes count the
    /// time by their own clocks, which may run faster by
    /// [`Builder::drift_factor`](crate::Builder::drift_factor).
    ///
    /// A release that comes earlier, by [`unlock`](MutexGuard::unlock) or a drop, does not free the
    /// lock. It sets the end of the lock to that time on the nodes, and no watchdog extends it any
    /// more. [`Released`](crate::ReleaseOutcome::Released) then means that a quorum of nodes has
    /// done so. A node that does not get the release keeps the lock until its time to live, and so
    /// does every node if the program crashes: choose a [`ttl`](Mutex::ttl) that is no shorter. A
    /// lease that is [detached](MutexGuard::detach) keeps no such time.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use std::time::Duration;
    ///
    /// // Each machine of several runs this at midnight by its own clock.
    /// let nightly = redlock.mutex("nightly/2024-02-29").min_hold(Duration::from_secs(30));
    /// let guard = nightly.try_lock()?.expect("this machine is the first");
    /// let _ = guard.unlock()?;
    /// assert!(nightly.try_lock()?.is_none(), "the job is done, and no other machine does it again");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn min_hold(mut self, time: Duration) -> Self {
        self.lock.min_hold = time;
        self
    }

    /// Takes the lock; blocks while it is held, and fails after
    /// [`Builder::unavailable_after`](crate::Builder::unavailable_after) if no quorum of nodes
    /// responds (rule 3.1).
    ///
    /// A thread that has the guard of the lock already waits for itself: until the lease ends, and
    /// with a [`watchdog`](Mutex::watchdog) for ever. Then an observer receives the event
    /// [`WaitingForItself`](crate::event::Event::WaitingForItself), once for the call (rule 3.10).
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// let guard = redlock.mutex("orders/42").lock()?;
    /// assert!(!guard.remaining().is_zero());
    /// let _ = guard.unlock()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when no quorum of nodes has replied for
    /// [`Builder::unavailable_after`](crate::Builder::unavailable_after), 3 s by default, or the
    /// lock is held by a key that has no expiry ([`Cause::NoExpiry`](crate::Cause::NoExpiry));
    /// [`Config`](crate::ErrorKind::Config) for an unusable name or setting;
    /// [`Entropy`](crate::ErrorKind::Entropy) when the system has no random bytes;
    /// [`ShutDown`](crate::ErrorKind::ShutDown) when the client is
    /// [shut down](crate::Redlock::shutdown); [`Forked`](crate::ErrorKind::Forked) in a child of
    /// the process that built the client. [`LeaseLost`](crate::ErrorKind::LeaseLost) only where an
    /// owner takes a [reentrant](Mutex::reentrant) lock again that is lost.
    #[doc(alias = "acquire")]
    pub fn lock(&self) -> Result<MutexGuard<K>> {
        let wait = Wait::unlimited();
        loop {
            if let Some(held) = self.lock.take(None, Some(&wait))? {
                return Ok(MutexGuard::of(held));
            }
        }
    }

    /// Makes one attempt, and never waits for a holder or in a queue: at most the node timeout
    /// passes, one more if connections have to be made first, one more for a
    /// [fenced](Mutex::fenced) lock, and two more for a [permit](crate::kind::Slot). A
    /// [reader](crate::kind::Read) first tries to share the lease of another thread of its client,
    /// and waits for that thread while it extends the lock. `None`: the lock is held by another
    /// client, or so many tried at once that none got a quorum.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// let mutex = redlock.mutex("orders/42");
    /// let guard = mutex.try_lock()?.expect("the lock is free");
    /// assert!(mutex.try_lock()?.is_none(), "it is held now");
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when too few nodes replied to tell; otherwise
    /// as [`lock`](Mutex::lock).
    #[doc(alias = "try_acquire")]
    pub fn try_lock(&self) -> Result<Option<MutexGuard<K>>> {
        Ok(self.lock.take(None, None)?.map(MutexGuard::of))
    }

    /// Takes the lock, waiting for at most this long; zero is one attempt, as by
    /// [`try_lock`](Mutex::try_lock). `None`: the time has passed, and the lock was still held
    /// (rule 3.2).
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use std::time::Duration;
    ///
    /// let report = redlock.mutex("reports/2024-02").ttl(Duration::from_secs(30));
    /// let guard = report.lock_timeout(Duration::from_millis(100))?.expect("the lock is free");
    ///
    /// // For all others it is held. That is an answer, not an error.
    /// assert!(report.lock_timeout(Duration::from_millis(20))?.is_none());
    ///
    /// drop(guard);
    /// assert!(report.lock_timeout(Duration::from_millis(100))?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when the time has passed and too few nodes
    /// replied to the last attempt; and before that when so many nodes have
    /// [permanent](crate::Cause::is_permanent) faults for
    /// [`Builder::unavailable_after`](crate::Builder::unavailable_after) that no quorum is
    /// possible, or when the lock is held by a key that has no expiry
    /// ([`Cause::NoExpiry`](crate::Cause::NoExpiry)). Otherwise as [`lock`](Mutex::lock).
    #[doc(alias = "try_lock_for")]
    pub fn lock_timeout(&self, timeout: Duration) -> Result<Option<MutexGuard<K>>> {
        self.lock_with(&Wait::timeout(timeout))
    }

    /// Takes the lock, waiting as `wait` allows: with a limit, with a
    /// [`CancelHandle`](crate::CancelHandle), or both. `None`: the limit has passed; never without
    /// a limit.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use quorumlock::{CancelHandle, ErrorKind, Wait};
    /// use std::{thread, time::Duration};
    ///
    /// let mutex = redlock.mutex("orders/42");
    /// let guard = mutex.lock()?;
    ///
    /// // Another thread waits for the lock, until the program wants to end.
    /// let shutdown = CancelHandle::new();
    /// let wait = Wait::timeout(Duration::from_secs(60)).cancelled_by(&shutdown);
    /// let waiting = thread::spawn(move || mutex.lock_with(&wait));
    ///
    /// shutdown.cancel();
    /// let error = waiting.join().unwrap().expect_err("the wait was cancelled");
    /// assert_eq!(error.kind(), ErrorKind::Cancelled);
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Cancelled`](crate::ErrorKind::Cancelled) when the wait was cancelled; then nothing is
    /// held, and no key is left behind. Otherwise as [`lock`](Mutex::lock) and
    /// [`lock_timeout`](Mutex::lock_timeout).
    #[doc(alias = "try_lock_until")]
    pub fn lock_with(&self, wait: &Wait) -> Result<Option<MutexGuard<K>>> {
        Ok(self.lock.take(None, Some(wait))?.map(MutexGuard::of))
    }

    /// Makes a guard of a lease, to extend and release a lock that is held already. Sends nothing
    /// and does not wait. A [`watchdog`](Mutex::watchdog) extends it from now on, for the mutex's
    /// [`ttl`](Mutex::ttl) or the [`ttl`](Lease::ttl) of the lease, whichever is longer; its limits
    /// count from now.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// # let text = redlock.mutex("reports/2024-02").lock()?.detach()?.into_text();
    /// # let line = text.expose();
    /// use quorumlock::{ErrorKind, Watchdog};
    ///
    /// let mutex = redlock.mutex("reports/2024-02").watchdog(Watchdog::new());
    /// match mutex.attach(line.parse()?) {
    ///     Ok(guard) => println!("ours for {:?}, and longer", guard.remaining()),
    ///     Err(error) if error.kind() == ErrorKind::LeaseLost => println!("it came too late"),
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The validity is computed from the lease's end alone, see [`Lease`]. To be certain,
    /// [`extend`](MutexGuard::extend) it next.
    ///
    /// Missing connections to nodes are begun to be made, and the call does not wait for them. If
    /// the guard is *dropped* before a connection is made, the release for that node is sent when
    /// it is. In a program that only releases and then ends, use [`unlock`](MutexGuard::unlock) or
    /// [`Redlock::flush_releases`](crate::Redlock::flush_releases), which wait.
    ///
    /// # Errors
    /// [`LeaseLost`](crate::ErrorKind::LeaseLost) when the lease has ended.
    /// [`Config`](crate::ErrorKind::Config) when it is of another name or prefix, or its time to
    /// live is not within the settings of this client, or those of the mutex cannot be used.
    /// [`ShutDown`](crate::ErrorKind::ShutDown) when the client is
    /// [shut down](crate::Redlock::shutdown).
    /// [`Forked`](crate::ErrorKind::Forked) in a child of the process that built the client.
    /// Nothing is sent, the lease is used up, and the lock, if it was still held, expires.
    pub fn attach(&self, lease: Lease<K>) -> Result<MutexGuard<K>> {
        lease.detached.attach_to(&self.lock).map(MutexGuard::of)
    }
}

impl<K: Kind + Send> Mutex<K> {
    /// Forgets the kind in the type, not in the lock: for a field or a collection that holds locks
    /// of any kind.
    pub fn erase(self) -> Mutex<Any> {
        Mutex::new(self.lock)
    }
}

impl<K: Kind> Clone for Mutex<K> {
    fn clone(&self) -> Self {
        Mutex::new(self.lock.clone())
    }
}

impl<K: Kind> fmt::Debug for Mutex<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock.fmt(f)
    }
}
