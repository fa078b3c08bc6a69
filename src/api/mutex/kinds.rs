//! What a lock can be made into, or asked, by its kind.

use super::Mutex;
use crate::api::guard::MutexGuard;
use crate::api::kind::{Any, Fenced, Kind, Plain, Reentrant, Set, Slot, Write};
use crate::api::lock::holder::Holder;
use crate::api::owner::Owner;
use crate::api::wait::Wait;
use crate::api::watchdog::Watchdog;
use crate::events::error::Result;

impl Mutex<Plain> {
    /// Numbers every acquisition. Each number is greater than all numbers before it:
    /// [`MutexGuard::fence`]. Default: no number, and a lock that other libraries understand.
    ///
    /// A lease can end while its holder is stopped and does not know. When it continues it still
    /// writes, and no lock can keep it from that. The resource can, if every write brings its
    /// number and the resource refuses a smaller one than it has seen:
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
    /// The numbers grow whatever clocks, networks and clients do, as long as no node forgets what
    /// it has written. If nodes do forget, the numbers continue from the wall clocks: they are
    /// microseconds since 1970, or more. One acquisition takes one round trip, as for a plain lock,
    /// unless clients compete for it in that very moment, or this machine's wall clock is more than
    /// a minute ahead: then it may take two, each with the node timeout.
    ///
    /// A number that is more than a day ahead of the wall clock of its node or of this machine is
    /// damage, or was written with a wrong clock. Such a node does not count for this lock
    /// ([`Cause::FenceAhead`](crate::Cause::FenceAhead)), and nothing is written there; the others
    /// continue, and their numbers stay as they are. The key ends with its retention, or delete it
    /// on that node. **A machine whose own wall clock is more than a day behind takes no fenced
    /// lock that others use:** to it, all nodes are ahead.
    ///
    /// **A fenced lock and a plain lock of the same name are two different locks: a holder of one
    /// does not exclude a holder of the other.** All programs that use a resource must agree on
    /// which it is. The key of a fenced lock is `quorumlock-fence:`, the prefix and the name, and
    /// no other library understands it. No name with its prefix may begin with that.
    ///
    /// Nodes need scripts: one that runs none, or none for this user, does not count
    /// ([`Cause::NoScripts`](crate::Cause::NoScripts)). The user needs `EVAL`, `EVALSHA`, `GET`,
    /// `SET` and `TIME`. A key that holds something else is left as it is
    /// ([`Cause::UnexpectedValue`](crate::Cause::UnexpectedValue)). A node whose memory is full
    /// extends and releases what is held, if the user may run `PEXPIRE` too. Keys stay on the nodes
    /// for [`Builder::fence_retention`](crate::Builder::fence_retention) after the last use.
    #[must_use]
    pub fn fenced(self) -> Mutex<Fenced> {
        Mutex::new(self.lock.fenced())
    }

    /// Serves programs in the order in which they begin to wait, without exception. Default: as a
    /// rule (rule 8.4).
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
    /// Programs that wait for any lock are in its queue, in the order in which they came; but a
    /// call of a plain mutex tries once before it waits, and may find the lock free just then. A
    /// call of a fair mutex does not come in between so. Among the threads of a program, the order
    /// is the same as for any mutex; the head of their queue has the program's entry, and a new one
    /// for each lock that it takes.
    ///
    /// A program that ends, or is cut off, leaves the queue. One that is stopped while it is first
    /// lets the others wait for [`Builder::place_lease`](crate::Builder::place_lease), once.
    ///
    /// The key of the lock is the key of a plain lock, and so is its queue. So fair and plain
    /// clients of any library exclude each other, and clients of this library take turns.
    /// [`try_lock`](Mutex::try_lock) stores no entry, and fails while others wait. The same holds
    /// for a lock that is [fenced](Mutex::fenced) as well, whose key is the key of a fenced lock. A
    /// call takes one round trip when the lock is free and none waits.
    ///
    /// Nodes need scripts ([`Cause::NoScripts`](crate::Cause::NoScripts)), and the user the
    /// commands of queues and the channels `quorumlock:*`, as the [operations
    /// page](crate::docs::operations) lists them. Without the right to them the lock is refused
    /// ([`Cause::NoPermission`](crate::Cause::NoPermission)), and so it is with
    /// [`release_notifications(false)`](crate::Builder::release_notifications), by
    /// [`Config`](crate::ErrorKind::Config).
    ///
    /// The rules are in section 15 of the [rules](crate::docs::rules); what the order rests on is
    /// in `src/algorithm/queue/mod.rs`.
    #[must_use]
    pub fn fair(mut self) -> Self {
        self.lock.is_fair = true;
        self
    }

    /// Lets its owner take the lock again while it holds it, see [`Reentrant`]. Default: a thread
    /// that locks what it holds waits for itself, until the lease ends; with a watchdog, for ever.
    #[must_use]
    pub fn reentrant(self) -> Mutex<Reentrant> {
        Mutex::new(self.lock.reentrant())
    }

    /// Which client holds the lock now, if any does on a quorum of nodes. Asks every node once and
    /// changes nothing; waits until a quorum of answers decides, for the node timeout at most, and
    /// once more if connections have to be made. The lock may have changed hands when the answer is
    /// there: it is for messages and operators, and no reason to believe that the lock is free, or
    /// held.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// use quorumlock::{Redlock, host_label};
    ///
    /// let redlock = Redlock::builder().node(node.url()).label(host_label()).build()?;
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
    /// A user with an access control list needs `+get +pttl`, and for a fenced lock `+get +time`;
    /// for [`Holder::waiting`] also `+zcard` and the key of the queue.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when too few nodes answered to tell; its
    /// causes show where the user may not ask
    /// ([`Cause::NoPermission`](crate::Cause::NoPermission)). [`Config`](crate::ErrorKind::Config)
    /// for an unusable name; [`Forked`](crate::ErrorKind::Forked).
    pub fn holder(&self) -> Result<Option<Holder>> {
        Holder::of(&self.lock)
    }
}

impl Mutex<Fenced> {
    /// Serves programs in the order in which they begin to wait, as [`fair`](Mutex::fair) of a
    /// plain lock. Those that are fenced and not fair are excluded, and tried once before they
    /// queue up.
    #[must_use]
    pub fn fair(mut self) -> Self {
        self.lock.is_fair = true;
        self
    }

    /// Lets its owner take the lock again while it holds it, see [`Reentrant`]. Every level has the
    /// same number.
    #[must_use]
    pub fn reentrant(self) -> Mutex<Reentrant<Fenced>> {
        Mutex::new(self.lock.reentrant())
    }

    /// Which client holds the lock now, as [`holder`](Mutex::holder) of a plain lock.
    ///
    /// # Errors
    /// As [`holder`](Mutex::holder) of a plain lock.
    pub fn holder(&self) -> Result<Option<Holder>> {
        Holder::of(&self.lock)
    }
}

impl Mutex<Write> {
    /// The same lock, with a number for each writer: [`MutexGuard::fence`]. It is greater than the
    /// numbers of all writers before that had one, as [`fenced`](Mutex::fenced) of a plain lock has
    /// it.
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
    /// * The number is for what is *written* under the lock: readers have none. What a reader
    ///   passes on may be of any writer before it.
    /// * It is the lock of the unfenced [`Redlock::write_mutex`](crate::Redlock::write_mutex) of
    ///   that name: all exclude each other as ever, and writers without a number may come in
    ///   between.
    /// * Nodes keep the last number in the key of the lock, for
    ///   [`fence_retention`](crate::Builder::fence_retention) from when a writer got it or extended
    ///   it. The key of a free lock outlives it by that.
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
    /// Takes the lock, or takes it again, for an owner that is not a thread, waiting as `wait`
    /// allows. The guard may be sent to another thread.
    ///
    /// # Errors
    /// As [`lock_with`](Mutex::lock_with).
    pub fn lock_as(&self, owner: &Owner, wait: &Wait) -> Result<Option<MutexGuard<K>>> {
        Ok(self.lock.take(Some(owner), Some(wait))?.map(MutexGuard::of))
    }
}

/// What only some kinds have, for a caller that knows the kind at run time only.
#[allow(dead_code, reason = "the C interface uses it")]
impl Mutex<Any> {
    /// Whether it is [`fair`](Mutex::fair), of a plain or fenced lock.
    pub(crate) fn fair(mut self, is_fair: bool) -> Self {
        self.lock.is_fair = is_fair;
        self
    }

    /// Changes the settings of the watchdog, and switches it on or off.
    pub(crate) fn watch(mut self, with: impl FnOnce(Watchdog) -> Option<Watchdog>) -> Self {
        self.lock.watchdog = with(self.lock.watchdog.take().unwrap_or_default());
        self
    }

    /// Takes a plain or fenced lock, or takes it again, for this owner. Without a wait it makes one
    /// attempt.
    pub(crate) fn lock_as(
        self,
        owner: &Owner,
        wait: Option<&Wait>,
    ) -> Result<Option<MutexGuard<Any>>> {
        Ok(self.lock.take(Some(owner), wait)?.map(MutexGuard::of))
    }

    /// As [`holder`](Mutex::holder) of a plain or fenced lock.
    pub(crate) fn holder(&self) -> Result<Option<Holder>> {
        Holder::of(&self.lock)
    }
}

#[cfg(feature = "cli")]
impl Mutex<Any> {
    /// The keys on the nodes: one, or for a semaphore one for each permit.
    pub fn keys(&self) -> Vec<String> {
        self.lock.keys().iter().map(ToString::to_string).collect()
    }
}

impl Mutex<Set> {
    /// The names, without the prefix: sorted, and each once.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.lock.client.resources(self.lock.key())
    }
}

impl Mutex<Slot> {
    /// How many slots there are.
    pub fn permits(&self) -> usize {
        self.lock.permits()
    }
}
