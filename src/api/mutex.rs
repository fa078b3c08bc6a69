//! A lock by name, and the ways to take it.

use crate::api::guard::MutexGuard;
use crate::api::held::Held;
use crate::api::kind::{Any, Fenced, Kind, Plain, Reentrant, Set, Slot, Write};
use crate::api::lease::Lease;
use crate::api::lock::Lock;
use crate::api::lock::holder::Holder;
use crate::api::owner::Owner;
use crate::api::wait::Wait;
use crate::api::watchdog::Watchdog;
use crate::events::error::Result;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// A lock by name, with settings, of the kind `K`.
///
/// Locking returns a [`MutexGuard`]. While that is held and its lease lasts, no other client that follows the protocol
/// gets one that the [kind](crate::kind) excludes. A thread that locks what it holds waits for itself, until the lease
/// ends, unless the lock is [`reentrant`](Mutex::reentrant); an observer gets
/// [`WaitingForItself`](crate::event::WaitingForItself).
///
/// Threads that share a client and wait for the same lock queue up in their order, and only the head of the queue
/// asks the servers (rule 3.4). [`try_lock`](Mutex::try_lock) does not queue up.
///
/// A `Mutex` is a name with settings and costs only memory: make one where it is needed, or keep and clone it.
/// Settings that cannot be used are reported when it is locked.
pub struct Mutex<K: Kind = Plain> {
    lock: Lock,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Mutex<K> {
    pub(super) fn new(lock: Lock) -> Mutex<K> {
        Mutex { lock, kind: PhantomData }
    }

    /// The name of the lock, without the prefix. For a set, its names in order, separated by a comma and a blank.
    pub fn name(&self) -> &str {
        self.lock.name()
    }

    /// Sets how long the lock lasts unless it is released or extended: the servers free it then, also when its holder
    /// has crashed. Default: that of the [client](crate::Builder::ttl), 10 s (rule 4.2).
    ///
    /// Choose it longer than the work takes, with room for a slow day, or let a [`watchdog`](Mutex::watchdog) extend
    /// it. At least 1 ms and more than the allowance for clock drift, at most
    /// [`Builder::max_ttl`](crate::Builder::max_ttl), 60 s by default; fractions of a millisecond are dropped.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.lock.ttl = ttl;
        self
    }

    /// Extends the lock automatically while its guard exists, and signals on the guard when it is
    /// [`lost`](MutexGuard::lost) all the same. Default: no watchdog; the lock ends with its time to live (rule 5).
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

    /// Keeps the lock for at least this long after it was taken, however early it is released: for a short job
    /// that several machines start at nearly the same time, by clocks that differ. Default: zero. At most
    /// [`Builder::max_ttl`](crate::Builder::max_ttl). The nodes count the time by their own clocks, which may run
    /// faster by [`Builder::drift_factor`](crate::Builder::drift_factor).
    ///
    /// A release that comes earlier, by [`unlock`](MutexGuard::unlock) or a drop, does not free the lock. It sets the
    /// end of the lock to that time on the nodes, and no watchdog extends it any more.
    /// [`Released`](crate::ReleaseOutcome::Released) then means that a quorum of nodes has done so. A node that does
    /// not get the release keeps the lock until its time to live, and so does every node if the program crashes: choose
    /// a [`ttl`](Mutex::ttl) that is no shorter. A lease that is [detached](MutexGuard::detach) keeps no such time.
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
    /// [`Builder::unavailable_after`](crate::Builder::unavailable_after) if no quorum of nodes responds (rule 3.1).
    ///
    /// A thread that has the guard of the lock already waits for itself: until the lease ends, and with a
    /// [`watchdog`](Mutex::watchdog) for ever. Then an observer gets the event
    /// [`WaitingForItself`](crate::event::WaitingForItself), once for the call (rule 3.10).
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
    /// [`Builder::unavailable_after`](crate::Builder::unavailable_after), 3 s by default, or the lock is held by a key
    /// that has no expiry ([`Cause::NoExpiry`](crate::Cause::NoExpiry)); [`Config`](crate::ErrorKind::Config) for an
    /// unusable name or setting; [`Entropy`](crate::ErrorKind::Entropy) when the system has no random bytes;
    /// [`Forked`](crate::ErrorKind::Forked) in a child of the process that built the client.
    /// [`LeaseLost`](crate::ErrorKind::LeaseLost) only where an owner takes a [reentrant](Mutex::reentrant) lock again
    /// that is lost.
    #[doc(alias = "acquire")]
    pub fn lock(&self) -> Result<MutexGuard<K>> {
        MutexGuard::of(&self.lock, self.lock.take_at_last()?)
    }

    /// Makes one attempt, and never waits for a holder or in a queue: at most the node timeout passes, one more
    /// if connections have to be made first, one more for a [fenced](Mutex::fenced) lock, and two more for a
    /// [permit](crate::kind::Slot). `None`: the lock is held by another client, or so many tried at once that none got
    /// a quorum.
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
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when too few nodes replied to tell; otherwise as
    /// [`lock`](Mutex::lock).
    #[doc(alias = "try_acquire")]
    pub fn try_lock(&self) -> Result<Option<MutexGuard<K>>> {
        self.guard(self.lock.take(None)?)
    }

    /// Takes the lock, waiting for at most this long; zero is one attempt, as by [`try_lock`](Mutex::try_lock). `None`:
    /// the time has passed, and the lock was still held (rule 3.2).
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
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when the time has passed and too few nodes replied to the last
    /// attempt; and before that when so many nodes have [permanent](crate::Cause::is_permanent) faults for
    /// [`Builder::unavailable_after`](crate::Builder::unavailable_after) that no quorum is possible, or when the lock
    /// is held by a key that has no expiry ([`Cause::NoExpiry`](crate::Cause::NoExpiry)). Otherwise as
    /// [`lock`](Mutex::lock).
    #[doc(alias = "try_lock_for")]
    pub fn lock_timeout(&self, timeout: Duration) -> Result<Option<MutexGuard<K>>> {
        self.lock_with(&Wait::timeout(timeout))
    }

    /// Takes the lock, waiting as `wait` says: with a limit, with a [`CancelHandle`](crate::CancelHandle), or both.
    /// `None`: the limit has passed; never without a limit.
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
    /// [`Cancelled`](crate::ErrorKind::Cancelled) when the wait was cancelled; then nothing is held, and no key is left
    /// behind. Otherwise as [`lock`](Mutex::lock) and [`lock_timeout`](Mutex::lock_timeout).
    #[doc(alias = "try_lock_until")]
    pub fn lock_with(&self, wait: &Wait) -> Result<Option<MutexGuard<K>>> {
        self.guard(self.lock.take_with(wait)?)
    }

    /// Makes a guard of a lease, to extend and release a lock that is held already. Sends nothing and does not
    /// wait. A [`watchdog`](Mutex::watchdog) extends it from now on, for the mutex's [`ttl`](Mutex::ttl); its limits
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
    /// Missing connections to nodes are begun to be made, and the call does not wait for them. If the guard is
    /// *dropped* before a connection is made, the release for that node is sent when it is. In a program that only
    /// releases and then ends, use [`unlock`](MutexGuard::unlock) or
    /// [`Redlock::flush_releases`](crate::Redlock::flush_releases), which wait.
    ///
    /// # Errors
    /// [`LeaseLost`](crate::ErrorKind::LeaseLost) when the lease has ended. [`Config`](crate::ErrorKind::Config) when
    /// it is of another name or prefix, or its time to live is not within the settings of this client, or those of the
    /// mutex cannot be used. [`Forked`](crate::ErrorKind::Forked) in a child of the process that built the client.
    /// Nothing is sent, the lease is used up, and the lock, if it was still held, expires.
    pub fn attach(&self, lease: Lease<K>) -> Result<MutexGuard<K>> {
        MutexGuard::of(&self.lock, self.lock.attach(lease.detached())?)
    }

    fn guard(&self, held: Option<Held>) -> Result<Option<MutexGuard<K>>> {
        held.map(|held| MutexGuard::of(&self.lock, held)).transpose()
    }
}

impl<K: Kind + Send> Mutex<K> {
    /// Forgets the kind in the type, not in the lock: for a field or a collection that holds locks of any kind.
    pub fn erase(self) -> Mutex<Any> {
        Mutex::new(self.lock)
    }
}

impl Mutex<Plain> {
    /// Gives every acquisition a number, greater than that of every acquisition before it:
    /// [`MutexGuard::fence`]. Default: no number, and a lock that other libraries understand.
    ///
    /// A lease can end while its holder is stopped and does not know. When it continues it still writes, and no lock
    /// can keep it from that. The resource can, if every write brings its number and the resource refuses a smaller one
    /// than it has seen:
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use quorumlock::FenceChecker;
    ///
    /// // In front of whatever must not be written twice.
    /// let fence = FenceChecker::new();
    ///
    /// let mutex = redlock.mutex("orders/42").fenced();
    /// let slow = mutex.lock()?.fence();
    /// // Its lease ends, and another client takes the lock and writes.
    /// let quick = mutex.lock()?.fence();
    /// assert!(fence.check("orders/42", quick).is_ok());
    /// // Then the first continues.
    /// assert!(fence.check("orders/42", slow).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The numbers grow whatever clocks, networks and clients do, as long as no node forgets what it has written. If
    /// nodes do forget, the numbers continue from the wall clocks: they are microseconds since 1970, or more. One
    /// acquisition takes one round trip, as that of a plain lock, unless clients compete for it in that very moment, or
    /// this machine's wall clock is more than a minute ahead: then it may take two, each with the node timeout.
    ///
    /// A number that is more than a day ahead of the wall clock of its node or of this machine is damage, or was
    /// written with a wrong clock. Such a node does not count for this lock
    /// ([`Cause::FenceAhead`](crate::Cause::FenceAhead)), and nothing is written there; the others continue, and their
    /// numbers stay as they are. The key ends with its retention, or delete it on that node. **A machine whose own wall
    /// clock is more than a day behind takes no fenced lock that others use:** to it, all nodes are ahead.
    ///
    /// **A fenced lock and a plain lock of the same name are two different locks: a holder of one does not exclude a
    /// holder of the other.** All programs that use a resource must agree on which it is. The key of a fenced lock is
    /// `quorumlock-fence:`, the prefix and the name, and no other library understands it. No name with its prefix may
    /// begin with that.
    ///
    /// Nodes need scripts: one that runs none, or none for this user, does not count
    /// ([`Cause::NoScripts`](crate::Cause::NoScripts)). The user needs `EVAL`, `EVALSHA`, `GET`, `SET` and `TIME`. A
    /// key that holds something else is left as it is ([`Cause::UnexpectedValue`](crate::Cause::UnexpectedValue)). A
    /// node whose memory is full extends and releases what is held, if the user may run `PEXPIRE` too. Keys stay on the
    /// nodes for [`Builder::fence_retention`](crate::Builder::fence_retention) after the last use.
    #[must_use]
    pub fn fenced(self) -> Mutex<Fenced> {
        Mutex::new(self.lock.fenced())
    }

    /// Serves programs in the order in which they begin to wait, without exception. Default: as a rule (rule 8.4).
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// let mutex = redlock.mutex("orders/42").fair();
    /// let guard = mutex.lock()?;
    /// // Others that lock the same mutex now are served in their order.
    /// let _ = guard.unlock()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Programs that wait for any lock are in its queue, in the order in which they came; but a call of a plain mutex
    /// tries once before it waits, and may find the lock free just then. A call of a fair mutex does not come in
    /// between so. Among the threads of a program, the order is that of any mutex; the head of their queue has the
    /// program's entry, and a new one for each lock that it takes.
    ///
    /// A program that ends, or is cut off, leaves the queue. One that is stopped while it is first lets the others wait
    /// for [`Builder::place_lease`](crate::Builder::place_lease), once.
    ///
    /// The key of the lock is that of a plain lock, and so is its queue. So fair and plain clients of any library
    /// exclude each other, and those of this library take turns. [`try_lock`](Mutex::try_lock) stores no entry, and
    /// fails while others wait. The same holds for a lock that is [fenced](Mutex::fenced) as well, and its key is that
    /// of a fenced lock. A call takes one round trip when the lock is free and none waits.
    ///
    /// Nodes need scripts ([`Cause::NoScripts`](crate::Cause::NoScripts)), and the user the commands of queues and the
    /// channels `quorumlock:*`, as the [operations page](crate::docs::operations) lists them. Without the right to them
    /// the lock is refused ([`Cause::NoPermission`](crate::Cause::NoPermission)), and so it is with
    /// [`release_notifications(false)`](crate::Builder::release_notifications), by
    /// [`Config`](crate::ErrorKind::Config).
    ///
    /// The rules are those of section 15 of the [rules](crate::docs::rules); what the order rests on is in
    /// `src/algorithm/queue/mod.rs`.
    #[must_use]
    pub fn fair(self) -> Self {
        Mutex::new(self.lock.fair())
    }

    /// Lets its owner take the lock again while it holds it, see [`Reentrant`]. Default: a thread that locks what it
    /// holds waits for itself, until the lease ends; with a watchdog, for ever.
    #[must_use]
    pub fn reentrant(self) -> Mutex<Reentrant> {
        Mutex::new(self.lock.reentrant())
    }

    /// Which client holds the lock now, if any does on a quorum of nodes. Asks every node once and changes nothing;
    /// waits until a quorum of answers decides, for the node timeout at most, and once more if connections have to be
    /// made. The lock may have changed hands when the answer is there: it is for messages and operators, and no reason
    /// to believe that the lock is free, or held.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// use quorumlock::{Label, Redlock};
    ///
    /// let redlock = Redlock::builder().node(node.url()).label(Label::here()).build()?;
    /// let mutex = redlock.mutex("reports/2024-02");
    /// assert!(mutex.holder()?.is_none());
    ///
    /// let guard = mutex.lock()?;
    /// if let Some(holder) = mutex.holder()? {
    ///     // host7/4711, 9.99 s left, on 127.0.0.1:6379
    ///     println!("{holder}");
    /// }
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A user with an access control list needs `+get +pttl`, and for a fenced lock `+get +time`; for
    /// [`Holder::waiting`] also `+zcard` and the key of the queue.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when too few nodes answered to tell; its causes say where the
    /// user may not ask ([`Cause::NoPermission`](crate::Cause::NoPermission)). [`Config`](crate::ErrorKind::Config) for
    /// an unusable name; [`Forked`](crate::ErrorKind::Forked).
    pub fn holder(&self) -> Result<Option<Holder>> {
        self.lock.holder()
    }
}

impl Mutex<Fenced> {
    /// Serves programs in the order in which they begin to wait, as [`fair`](Mutex::fair) of a plain lock. Those that
    /// are fenced and not fair are excluded, and tried once before they queue up.
    #[must_use]
    pub fn fair(self) -> Self {
        Mutex::new(self.lock.fair())
    }

    /// Lets its owner take the lock again while it holds it, see [`Reentrant`]. Every level has the same number.
    #[must_use]
    pub fn reentrant(self) -> Mutex<Reentrant<Fenced>> {
        Mutex::new(self.lock.reentrant())
    }

    /// Which client holds the lock now, as [`holder`](Mutex::holder) of a plain lock.
    ///
    /// # Errors
    /// As [`holder`](Mutex::holder) of a plain lock.
    pub fn holder(&self) -> Result<Option<Holder>> {
        self.lock.holder()
    }
}

impl Mutex<Write> {
    /// The same lock, with a number for each writer: [`MutexGuard::fence`]. It is greater than those of all writers
    /// before that had one, as [`fenced`](Mutex::fenced) of a plain lock has it.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// let prices = redlock.write_mutex("prices").fenced();
    ///
    /// let first = prices.lock()?.fence();
    /// let reader = redlock.read_mutex("prices").lock()?;
    /// # drop(reader);
    /// let guard = prices.lock()?;
    /// // UPDATE prices SET …, fence = :fence WHERE id = 42 AND fence <= :fence
    /// let fence = i64::from(guard.fence());
    /// assert!(guard.fence() > first);
    /// // It reads from here on, and has no number any more.
    /// let guard = guard.downgrade()?;
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// * The number is for what is *written* under the lock: readers have none. What a reader passes on may be of any
    ///   writer before it.
    /// * It is the lock of the unfenced [`Redlock::write_mutex`](crate::Redlock::write_mutex) of that name: all exclude
    ///   each other as ever, and writers without a number may come in between.
    /// * Nodes keep the last number in the key of the lock, for [`fence_retention`](crate::Builder::fence_retention)
    ///   from when a writer got it or extended it. The key of a free lock outlives it by that.
    /// * A node whose number is more than a day ahead of the clocks does not count, with
    ///   [`Cause::FenceAhead`](crate::Cause::FenceAhead).
    #[must_use]
    pub fn fenced(self) -> Mutex<Fenced<Write>> {
        Mutex::new(self.lock.fenced())
    }
}

impl<K: Kind> Mutex<Reentrant<K>>
where
    Reentrant<K>: Kind,
{
    /// Takes the lock, or takes it again, for an owner that is not a thread, waiting as `wait` says. The guard may be
    /// sent to another thread.
    ///
    /// # Errors
    /// As [`lock_with`](Mutex::lock_with).
    pub fn lock_as(&self, owner: &Owner, wait: &Wait) -> Result<Option<MutexGuard<K>>> {
        let held = self.lock.take_as(owner, wait)?;
        held.map(|held| MutexGuard::of(&self.lock, held)).transpose()
    }
}

impl Mutex<Set> {
    /// The names, without the prefix: sorted, and each once.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.lock.names()
    }
}

impl Mutex<Slot> {
    /// How many slots there are.
    pub fn permits(&self) -> usize {
        self.lock.permits()
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
