//! Permits: at most k holders at once, of a lock with k slots.
//!
//! A semaphore is k ordinary locks, `name#0` to `name#k-1`. What holds of a lock holds of each of them; nothing is
//! counted on the nodes, so that nothing can be miscounted.

pub(crate) mod permit;

use crate::api::client::Client;
use crate::api::mutex::Mutex;
use crate::api::mutex::slots::PermitSlots;
use crate::api::wait::{CancelHandle, Wait};
use crate::api::watchdog::Watchdog;
use crate::events::error::{Error, ErrorKind, Result};
use permit::Permit;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Most permits of one semaphore. Each node is asked about all of them when none is found at once.
const MOST_PERMITS: usize = 256;

/// Permits of which at most k are held at once, from [`Redlock::semaphore`](crate::Redlock::semaphore): for a licence
/// for three, or a service that bears ten calls at a time.
///
/// ```
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
/// let reports = redlock.semaphore("reports", 2);
/// let first = reports.acquire()?;
/// let second = reports.acquire()?;
/// assert_ne!(first.slot(), second.slot());
/// assert!(reports.try_acquire()?.is_none(), "both permits are out");
///
/// drop(first);
/// assert!(reports.try_acquire()?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Permits are slots
///
/// Counting over a quorum is unsound: with 5 nodes, majorities would admit 16 holders of 10 permits. So the permits are
/// k locks, named `name#0` to `name#k-1`, and the holder of one of them has a permit. Everything that is promised of a
/// [`Mutex`](crate::Mutex) goes for each permit: it is a lease with a time to live, it may have a
/// [`watchdog`](Semaphore::watchdog), and that of a program that was killed is back when its time is up. Plain locks
/// of these names exclude permits.
///
/// Programs may use different k for one name: never more permits are out than the largest k.
///
/// # What it costs
///
/// One round trip as long as permits are left, as a rule: the slot that this client released last is tried first, or
/// any one. If that is held, the nodes are asked for another one and reply which are free, and a free one is tried:
/// three round trips. If none is free, the call waits in the one queue of the semaphore on each node; a release tells
/// the first one, and which slot it is. Threads that share a client queue in their order, by the name; the first of
/// them has the program's entry.
///
/// # What it does not promise
///
/// There is no fencing token: the numbers of different slots could not be compared. Programs are served in their order
/// as a rule: a first attempt may come in between, and so may a slot that is free on some nodes only.
/// A call that takes several permits one after the other can deadlock with another one that does the same.
#[derive(Clone)]
pub struct Semaphore {
    /// Named like the semaphore. Its own key is never set.
    mutex: Mutex,
    permits: PermitSlots,
    /// As asked for; it may be unusable.
    count: usize,
}

impl Semaphore {
    pub(crate) fn new(client: Client, name: &str, count: usize) -> Semaphore {
        let mutex = Mutex::new(client, name);
        let used = count.min(MOST_PERMITS);
        let keys: Arc<[Arc<str>]> = (0..used).map(|slot| format!("{}#{slot}", mutex.key().title()).into()).collect();
        let permits = PermitSlots::new(mutex.client(), mutex.key().title(), keys);
        Semaphore { mutex, permits, count }
    }

    /// Sets how long a permit lasts unless it is released or extended, as [`Mutex::ttl`](crate::Mutex::ttl).
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Semaphore {
        self.mutex = self.mutex.ttl(ttl);
        self
    }

    /// Extends permits automatically while they are held, as [`Mutex::watchdog`](crate::Mutex::watchdog). Default: no
    /// watchdog.
    #[must_use]
    pub fn watchdog(mut self, watchdog: Watchdog) -> Semaphore {
        self.mutex = self.mutex.watchdog(watchdog);
        self
    }

    /// Lets a permit stand for at least this long from when it was acquired, however early it is released, as
    /// [`Mutex::min_hold`](crate::Mutex::min_hold): so many permits at most are given out in that time. Default: zero.
    #[must_use]
    pub fn min_hold(mut self, time: Duration) -> Semaphore {
        self.mutex = self.mutex.min_hold(time);
        self
    }

    /// The settings.
    #[allow(dead_code, reason = "the C interface uses it")]
    pub(crate) fn mutex(&self) -> &Mutex {
        &self.mutex
    }

    /// The same permits, with the settings of a mutex of the same name.
    #[allow(dead_code, reason = "the C interface uses it")]
    pub(crate) fn with_settings_of(self, mutex: Mutex) -> Semaphore {
        Semaphore { mutex, ..self }
    }

    /// The name, without the prefix.
    pub fn name(&self) -> &str {
        self.mutex.resource()
    }

    /// How many permits there are.
    pub fn permits(&self) -> usize {
        self.count
    }

    /// Acquires a permit; blocks while all are held, and fails after
    /// [`Builder::unavailable_after`](crate::Builder::unavailable_after) if no quorum of nodes responds.
    ///
    /// # Errors
    /// As [`Mutex::lock`](crate::Mutex::lock). [`Config`](ErrorKind::Config) also for a number of permits that is not 1
    /// to 256.
    pub fn acquire(&self) -> Result<Permit> {
        self.acquire_without_limit(&Wait::unlimited())
    }

    /// [`acquire`](Semaphore::acquire), until another thread cancels the wait.
    ///
    /// # Errors
    /// As [`Mutex::lock_cancellable`](crate::Mutex::lock_cancellable).
    pub fn acquire_cancellable(&self, cancel: &CancelHandle) -> Result<Permit> {
        self.acquire_without_limit(&Wait::unlimited().cancelled_by(cancel))
    }

    /// Makes one attempt, of three round trips at most, and waits for no holder and in no queue: at most three node
    /// timeouts pass, and one more if connections have to be made first. `None` when all permits are held, or so many
    /// calls tried at once that this one got none.
    ///
    /// # Errors
    /// As [`Mutex::try_lock`](crate::Mutex::try_lock).
    pub fn try_acquire(&self) -> Result<Option<Permit>> {
        self.take(None)
    }

    /// Acquires a permit, waiting for at most this long. `None` when the time was up and all permits still held.
    ///
    /// # Errors
    /// As [`Mutex::lock_timeout`](crate::Mutex::lock_timeout).
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Option<Permit>> {
        self.acquire_with(&Wait::timeout(timeout))
    }

    /// Acquires a permit, waiting as `wait` says. `None` when its limit came first.
    ///
    /// # Errors
    /// As [`Mutex::lock_with`](crate::Mutex::lock_with).
    pub fn acquire_with(&self, wait: &Wait) -> Result<Option<Permit>> {
        self.take(Some(wait))
    }

    fn acquire_without_limit(&self, wait: &Wait) -> Result<Permit> {
        loop {
            if let Some(permit) = self.acquire_with(wait)? {
                return Ok(permit);
            }
        }
    }

    fn take(&self, wait: Option<&Wait>) -> Result<Option<Permit>> {
        if self.count != self.permits.keys().len() || self.count == 0 {
            let message = format!("a semaphore of {} permits; it must have 1 to {MOST_PERMITS}", self.count);
            return Err(Error::new(ErrorKind::Config, message));
        }
        let taken = self.mutex.take_permit(&self.permits, wait)?;
        Ok(taken.map(|(guard, slot)| Permit::new(guard, slot)))
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").field("name", &self.name()).field("permits", &self.count).finish_non_exhaustive()
    }
}
