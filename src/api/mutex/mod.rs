//! The lock of one resource, and the ways to take it.

mod account;
mod attach;
mod attempts;
mod call;
mod cancellable;
mod fair;
mod fenced;
pub(crate) mod fenced_mutex;
pub(crate) mod holder;
mod permits;
mod queueing;
pub(crate) mod read_write;
mod search;
pub(crate) mod slots;
mod waiter;

use crate::algorithm::acquire::WaitLimit;
use crate::algorithm::kind::Access;
use crate::algorithm::lease::Ttl;
use crate::algorithm::time::{Human, Readings};
use crate::api::client::Client;
use crate::api::guard::MutexGuard;
use crate::api::wait::{Limit, Wait};
use crate::api::watchdog::Watchdog;
use crate::engine::local_queue::LocalLock;
use crate::events::error::{Error, ErrorKind, Result};
use crate::events::event::GaveUpReason;
use crate::protocol::lock_key::{LockKey, MOST_KEYS};
use account::CallAccount;
use attempts::Attempts;
use call::LockCall;
use queueing::Queued;
use std::fmt;
use std::time::{Duration, Instant};

/// Longest resource name, in bytes: longer ones are mistakes, and would be sent to every node with every command.
const MAX_RESOURCE: usize = 4096;

/// The lock of one resource.
///
/// Locking gives a [`MutexGuard`]. While that is held and its lease lasts, no other client that follows the protocol
/// gets one. A thread that locks what it holds waits for itself, until the lease ends, unless the lock is
/// [`reentrant`](Mutex::reentrant); an observer gets [`WaitingForItself`](crate::event::WaitingForItself).
///
/// Threads that share a client and wait for the same resource queue up in their order, and only the head of the queue
/// asks the servers (rule 3.4). [`try_lock`](Mutex::try_lock) does not queue up.
///
/// A `Mutex` is a name with settings and costs only memory: create one where it is needed, or keep and clone it.
#[derive(Clone)]
pub struct Mutex {
    client: Client,
    /// Its key, and the queues of threads that want it.
    local: LocalLock,
    ttl: Duration,
    watchdog: Option<Watchdog>,
    is_fenced: bool,
    is_fair: bool,
    /// What it locks of a read-write lock, if it is one.
    access: Option<Access>,
    min_hold: Duration,
}

impl Mutex {
    pub(crate) fn new(client: Client, resource: &str) -> Mutex {
        let key = LockKey::behind(&client.settings().prefix, resource);
        Mutex::of_key(client, key)
    }

    pub(crate) fn of_key(client: Client, key: LockKey) -> Mutex {
        let (local, ttl) = (client.local_lock(&key), client.settings().ttl);
        Mutex {
            client,
            local,
            ttl,
            watchdog: None,
            is_fenced: false,
            is_fair: false,
            access: None,
            min_hold: Duration::ZERO,
        }
    }

    /// Sets how long the lock lasts unless it is released or extended: the servers free it then, also when its holder
    /// has crashed. Default: that of the [client](crate::Builder::ttl), 10 s (rule 4.2).
    ///
    /// Choose it longer than the work takes, with room for a slow day, or let a [`watchdog`](Mutex::watchdog) extend
    /// it. At least 1 ms and more than the allowance for clock drift, at most
    /// [`Builder::max_ttl`](crate::Builder::max_ttl), 60 s by default; fractions of a millisecond are dropped. A value
    /// that cannot be used is reported when the mutex is locked.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Mutex {
        self.ttl = ttl;
        self
    }

    /// Extends the lock automatically for as long as its guard lives, and signals on the guard when it is
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
    ///
    /// Settings that cannot be used are reported when the mutex is locked.
    #[must_use]
    pub fn watchdog(mut self, watchdog: Watchdog) -> Mutex {
        self.watchdog = Some(watchdog);
        self
    }

    /// Lets the lock stand for at least this long from when it was taken, however early it is released: for a short job
    /// that several machines start at nearly the same time, by clocks that differ. Default: zero. At most
    /// [`Builder::max_ttl`](crate::Builder::max_ttl). The nodes count the time by their own clocks, which may run
    /// faster by [`Builder::drift_factor`](crate::Builder::drift_factor).
    ///
    /// A release that comes earlier, by [`unlock`](MutexGuard::unlock) or a drop, does not free the lock. It sets the
    /// end of the lock to that time on the nodes, and no watchdog extends it any more.
    /// [`Released`](crate::ReleaseOutcome::Released) then says that a quorum of nodes has done so. A node that does not
    /// get the release keeps the lock until its time to live, and so does every node if the program crashes: choose a
    /// [`ttl`](Mutex::ttl) that is no shorter. A lease that is [detached](MutexGuard::detach) keeps no such time.
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
    pub fn min_hold(mut self, time: Duration) -> Mutex {
        self.min_hold = time;
        self
    }

    /// The name of the resource, without the prefix.
    pub fn resource(&self) -> &str {
        self.client.resource(self.key().title())
    }

    /// Takes the lock; blocks while it is held, and fails after
    /// [`Builder::unavailable_after`](crate::Builder::unavailable_after) if no quorum of nodes responds (rule 3.1).
    ///
    /// A thread that has the guard of the lock already waits for itself: until the lease ends, and with a
    /// [`watchdog`](Mutex::watchdog) for ever. Then an [`Observer`](crate::Observer) gets the event
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
    /// [`Unavailable`](ErrorKind::Unavailable) when no quorum of nodes has answered for
    /// [`Builder::unavailable_after`](crate::Builder::unavailable_after), 3 s by default, or the lock is held by a key
    /// that has no expiry ([`Cause::NoExpiry`](crate::Cause::NoExpiry)); [`Config`](ErrorKind::Config) for an unusable
    /// name or time to live; [`Entropy`](ErrorKind::Entropy) when the system has no random bytes;
    /// [`Forked`](ErrorKind::Forked) in a child of the process that built the client.
    pub fn lock(&self) -> Result<MutexGuard> {
        self.lock_without_limit(&Wait::unlimited())
    }

    /// Makes exactly one attempt, and never waits for a holder or in a queue: at most the node timeout passes, one more
    /// if connections have to be made first, and one more for a [fenced](Mutex::fenced) lock. `None` when another
    /// client holds the lock, or so many tried at once that none got a quorum.
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
    /// [`Unavailable`](ErrorKind::Unavailable) when too few nodes could answer to tell; [`Config`](ErrorKind::Config);
    /// [`Entropy`](ErrorKind::Entropy); [`Forked`](ErrorKind::Forked).
    pub fn try_lock(&self) -> Result<Option<MutexGuard>> {
        self.client.check_process()?;
        let called_at = self.client.engine().readings();
        let mut account = CallAccount::open(&self.client, self.key().title(), called_at);
        let call = self.call(WaitLimit::Once, called_at);
        let result = call.and_then(|call| {
            let wait = Wait::unlimited();
            let won = Attempts::new(call, None, &wait, &mut account).run()?;
            Ok(won.map(|won| won.guard))
        });
        account.close(&result, GaveUpReason::Held);
        result
    }

    /// Takes the lock, waiting for at most this long; zero is one attempt, as by [`try_lock`](Mutex::try_lock). `None`
    /// when the time was up and the lock still held (rule 3.2).
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
    /// [`Unavailable`](ErrorKind::Unavailable) when the time was up and too few nodes could answer the last attempt;
    /// and before that when so many nodes have [permanent](crate::Cause::is_permanent) faults for
    /// [`Builder::unavailable_after`](crate::Builder::unavailable_after) that no quorum is possible, or when the lock
    /// is held by a key that has no expiry ([`Cause::NoExpiry`](crate::Cause::NoExpiry));
    /// [`Config`](ErrorKind::Config); [`Entropy`](ErrorKind::Entropy); [`Forked`](ErrorKind::Forked).
    pub fn lock_timeout(&self, timeout: Duration) -> Result<Option<MutexGuard>> {
        self.lock_with(&Wait::timeout(timeout))
    }

    /// Takes the lock, waiting until then at the latest; a time in the past is one attempt. Otherwise like
    /// [`lock_timeout`](Mutex::lock_timeout).
    ///
    /// # Errors
    /// As [`lock_timeout`](Mutex::lock_timeout).
    pub fn lock_deadline(&self, deadline: Instant) -> Result<Option<MutexGuard>> {
        self.lock_with(&Wait::deadline(deadline))
    }

    /// Takes the lock, waiting as `wait` says: with a limit, with a [`CancelHandle`](crate::CancelHandle), or both.
    /// `None` when the limit came first. Without a limit there is [`lock_cancellable`](Mutex::lock_cancellable).
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
    /// [`Cancelled`](ErrorKind::Cancelled) when the wait was cancelled; then nothing is held, and no key is left
    /// behind. Otherwise as [`lock`](Mutex::lock) and [`lock_timeout`](Mutex::lock_timeout).
    pub fn lock_with(&self, wait: &Wait) -> Result<Option<MutexGuard>> {
        self.take_with(wait, |attempts| Ok(attempts.run()?.map(|won| won.guard)))
    }

    /// Takes the lock, waiting as `wait` says. `at_head` makes the attempts, when this thread is first.
    fn take_with<'m, G>(
        &'m self,
        wait: &Wait,
        at_head: impl FnOnce(&mut Attempts<'_, 'm>) -> Result<Option<G>>,
    ) -> Result<Option<G>> {
        self.client.check_process()?;
        wait.check_process()?;
        let called_at = self.client.engine().readings();
        let mut account = CallAccount::open(&self.client, self.key().title(), called_at);
        let result = self
            .call(self.wait_limit(wait, called_at), called_at)
            .and_then(|call| self.take_in_turn(call, wait, &mut account, at_head));
        account.close(&result, GaveUpReason::TimedOut);
        result
    }

    /// Waits to be first among the threads of this client, and then for the lock.
    fn take_in_turn<'m, G>(
        &'m self,
        mut call: LockCall<'m>,
        wait: &Wait,
        account: &mut CallAccount<'m>,
        at_head: impl FnOnce(&mut Attempts<'_, 'm>) -> Result<Option<G>>,
    ) -> Result<Option<G>> {
        let mut now = call.called_at;
        // A set waits for one of its keys at a time: the first that a guard of this client holds.
        let mut held = self.first_held(now);
        loop {
            let place = held.unwrap_or_default();
            let (ticket, position) = self.local.queues()[place].join(now);
            match queueing::wait_in_queue(&mut call, (&ticket, position, now), wait, account)? {
                Queued::Head => {}
                Queued::OutOfTime(None) => return Ok(None),
                Queued::OutOfTime(Some(cause)) => return Err(self.client.unavailable("lock", self.resource(), cause)),
            }
            if held.is_some() {
                now = self.client.engine().readings();
                held = self.first_held(now);
            }
            // Without time to wait, the call makes its one attempt, as with a single key.
            if held.is_none() || !queueing::may_wait(&call) {
                return at_head(&mut Attempts::new(call, Some((ticket, place)), wait, account));
            }
        }
    }

    /// The first key of a set that a guard of this client holds.
    fn first_held(&self, now: Readings) -> Option<usize> {
        if self.is_set() { self.local.first_held(now.lease) } else { None }
    }

    fn wait_limit(&self, wait: &Wait, called_at: Readings) -> WaitLimit {
        let now = called_at.steady;
        match wait.limit {
            Limit::Never => WaitLimit::WhileAvailable(self.client.settings().unavailable_after),
            Limit::Timeout(timeout) => WaitLimit::Until(now.after(timeout)),
            Limit::Deadline(deadline) => {
                WaitLimit::Until(now.after(deadline.saturating_duration_since(Instant::now())))
            }
        }
    }

    fn call(&self, limit: WaitLimit, called_at: Readings) -> Result<LockCall<'_>> {
        let ttl = self.prepare()?;
        let &Mutex { ref client, ref local, ref watchdog, is_fenced, is_fair, access, min_hold, .. } = self;
        let (watchdog, started) = (watchdog.as_ref(), called_at.steady);
        let permits = None;
        Ok(LockCall {
            client,
            local,
            ttl,
            watchdog,
            is_fenced,
            is_fair,
            access,
            min_hold,
            limit,
            called_at,
            started,
            permits,
        })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Whether it is of several resources.
    pub(crate) fn is_set(&self) -> bool {
        matches!(self.local, LocalLock::Set(_))
    }

    pub(crate) fn key(&self) -> &LockKey {
        self.local.key()
    }

    /// Its key with the queues of this client's threads.
    pub(crate) fn local(&self) -> &LocalLock {
        &self.local
    }

    #[allow(dead_code, reason = "the C interface uses it")]
    pub(crate) fn time_to_live(&self) -> Duration {
        self.ttl
    }

    pub(crate) fn automatic_extension(&self) -> Option<&Watchdog> {
        self.watchdog.as_ref()
    }

    /// Checks the name and the times, and starts the thread of the watchdog if there is to be one.
    pub(crate) fn prepare(&self) -> Result<Ttl> {
        self.check_name()?;
        let ttl = self.client.checked_ttl(self.ttl)?;
        if self.min_hold > self.client.settings().max_ttl {
            let [time, longest] = [self.min_hold, self.client.settings().max_ttl].map(Human);
            let message = format!(
                "min_hold of {time} is longer than max_ttl ({longest}): raise max_ttl to {time} in every client of \
                 these nodes"
            );
            return Err(Error::new(ErrorKind::Config, message));
        }
        if let Some(watchdog) = &self.watchdog {
            watchdog.check(ttl)?;
            self.client.start_watchdog_thread()?;
        }
        Ok(ttl)
    }

    fn check_name(&self) -> Result<()> {
        let keys = self.key().each();
        if keys.is_empty() || keys.len() > MOST_KEYS {
            let message = format!("a set of {} resources; it must have 1 to {MOST_KEYS}", keys.len());
            return Err(Error::new(ErrorKind::Config, message));
        }
        for key in keys {
            let resource = self.client.resource(key);
            if resource.is_empty() || resource.len() > MAX_RESOURCE {
                let message = format!("a resource name of {} bytes; it must have 1 to {MAX_RESOURCE}", resource.len());
                return Err(Error::new(ErrorKind::Config, message));
            }
        }
        self.check_key_space()
    }
}

impl fmt::Debug for Mutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").field("resource", &self.resource()).field("ttl", &self.ttl).finish_non_exhaustive()
    }
}
