//! Read-write locks: many readers, or one writer.
//!
//! A [`RwMutex`] is two [`Mutex`]es of one key: one that locks it to read, and one that locks it to write. To write is
//! all a `Mutex` does. To read is that too, and the threads of a client share one lease: a thread that finds it asks no
//! node, unless the nodes were asked a while ago.

pub(crate) mod fenced;
mod joining;
mod read_guard;
mod write_guard;

pub use read_guard::RwReadGuard;
pub use write_guard::RwWriteGuard;

use super::Mutex;
use super::attempts::{Attempts, Won};
use crate::algorithm::kind::Access;
use crate::algorithm::time::Timestamp;
use crate::api::client::Client;
use crate::api::guard::MutexGuard;
use crate::api::guard::shared::SharedGuards;
use crate::api::lease::Lease;
use crate::api::wait::{CancelHandle, Wait};
use crate::api::watchdog::Watchdog;
use crate::events::error::Result;
use crate::protocol::key_space::KeyKind;
use crate::protocol::lock_key::LockKey;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The read-write lock of one resource, from [`Redlock::rw_mutex`](crate::Redlock::rw_mutex): any number of readers, or
/// one writer. Each way to lock a [`Mutex`] is there to read and to write.
///
/// ```
/// # let node = quorumlock::embedded::EmbeddedNode::start()?;
/// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
/// # let another = quorumlock::Redlock::builder().node(node.url()).build()?;
/// let prices = redlock.rw_mutex("prices");
///
/// let here = prices.read()?;
/// let elsewhere = another.rw_mutex("prices").try_read()?.expect("readers share the lock");
/// assert!(prices.try_write()?.is_none(), "a writer waits for all of them");
/// drop((here, elsewhere));
///
/// let guard = prices.write()?;
/// // … and goes on reading what it has written, together with others.
/// let guard = guard.downgrade()?;
/// assert!(another.rw_mutex("prices").try_read()?.is_some());
/// # drop(guard);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// * Every reader and every writer has a lease of its own, with the [`ttl`](RwMutex::ttl) and the
///   [`watchdog`](RwMutex::watchdog) of its mutex. A reader that crashes keeps a writer out for its own time to live,
///   and no longer; no reader's end changes that of another one.
/// * Readers and writers that wait form one queue: the lock goes to them in the order in which they came, and readers
///   next to each other have it together. So neither side starves. A writer that waits keeps new readers out,
///   `try_read` too; `try_write` keeps no other call out. An entry whose program has crashed lets others wait for no
///   longer than [`Builder::place_lease`](crate::Builder::place_lease).
/// * **A thread must not read again while it reads.** If a writer begins to wait in between, the thread waits for the
///   writer, and the writer for the thread, until the lease ends. For the same reason there is no way from a
///   [`RwReadGuard`] to a [`RwWriteGuard`]: two threads that both want it would wait for each other.
/// * The threads of a program that share a client share one lease to read: it is lost for all of them at once. Up to
///   64 programs read at once; the next one finds the lock held. A lease that has a watchdog is extended until the last
///   guard goes, within the widest limits of their watchdogs. A thread with a watchdog has a lease of its own if
///   another one has asked for the signal of a lease without.
/// * **It is another lock than a [`Mutex`] of the same name: the two do not exclude each other.** Its key is
///   `quorumlock-rw:`, the prefix and the name, and no other library understands it. No name with its prefix may begin
///   with that.
/// * Nodes need scripts: one that runs none, or none for this user, does not count
///   ([`Cause::NoScripts`](crate::Cause::NoScripts)). The user needs `EVAL`, `EVALSHA`, `GET`, `SET`, `DEL`, `PEXPIRE`
///   and `TIME`. A key that holds something else is left as it is
///   ([`Cause::UnexpectedValue`](crate::Cause::UnexpectedValue)). Writers have a number if they are
///   [fenced](RwMutex::fenced); entries have no [label](crate::Builder::label).
///
/// Rule 14 has the rest, and the header of `protocol/kinds/read_write.rs` the proof that a writer is alone.
#[derive(Clone)]
pub struct RwMutex {
    read: Mutex,
    write: Mutex,
    /// The leases that threads of the client share.
    reads: Arc<SharedGuards>,
}

impl RwMutex {
    pub(crate) fn new(client: Client, reads: Arc<SharedGuards>, resource: &str) -> RwMutex {
        let key = KeyKind::ReadWrite.key(&client.settings().prefix, resource).into();
        let plain = Mutex::of_key(client, LockKey::One(key));
        let [read, write] = [Access::Read, Access::Write].map(|access| Mutex { access: Some(access), ..plain.clone() });
        RwMutex { read, write, reads }
    }

    /// Sets how long a lock lasts unless it is released or extended, as [`Mutex::ttl`]. Of readers that share a lease,
    /// each has its time to live, less 10 ms or a quarter of the validity.
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> RwMutex {
        RwMutex { read: self.read.ttl(ttl), write: self.write.ttl(ttl), ..self }
    }

    /// Extends a lock automatically for as long as its guard lives, as [`Mutex::watchdog`].
    #[must_use]
    pub fn watchdog(self, watchdog: Watchdog) -> RwMutex {
        RwMutex { read: self.read.watchdog(watchdog.clone()), write: self.write.watchdog(watchdog), ..self }
    }

    /// The name of the resource, without the prefix.
    pub fn resource(&self) -> &str {
        self.read.resource()
    }

    /// Locks to read; blocks while a writer has the lock or waits for it. Otherwise as [`Mutex::lock`].
    ///
    /// # Errors
    /// As [`Mutex::lock`].
    pub fn read(&self) -> Result<RwReadGuard> {
        self.read_without_limit(&Wait::unlimited())
    }

    /// Makes exactly one attempt to lock to read, as [`Mutex::try_lock`]. `None` when a writer has the lock or waits
    /// for it, or 64 other programs read.
    ///
    /// # Errors
    /// As [`Mutex::try_lock`].
    pub fn try_read(&self) -> Result<Option<RwReadGuard>> {
        let came_at = self.read.client().engine().now();
        if let Some(guard) = self.join(came_at, Some(Timestamp::NEVER))? {
            return Ok(Some(guard));
        }
        Ok(self.read.try_lock()?.map(|guard| RwReadGuard::first((&self.read, &self.reads), guard)))
    }

    /// Locks to read, waiting for at most this long, as [`Mutex::lock_timeout`].
    ///
    /// # Errors
    /// As [`Mutex::lock_timeout`].
    pub fn read_timeout(&self, timeout: Duration) -> Result<Option<RwReadGuard>> {
        self.read_with(&Wait::timeout(timeout))
    }

    /// Locks to read, waiting until then at the latest, as [`Mutex::lock_deadline`].
    ///
    /// # Errors
    /// As [`Mutex::lock_deadline`].
    pub fn read_deadline(&self, deadline: Instant) -> Result<Option<RwReadGuard>> {
        self.read_with(&Wait::deadline(deadline))
    }

    /// Locks to read, waiting as `wait` says, as [`Mutex::lock_with`].
    ///
    /// # Errors
    /// As [`Mutex::lock_with`].
    pub fn read_with(&self, wait: &Wait) -> Result<Option<RwReadGuard>> {
        // A call that has not waited came after the nodes were asked.
        if let Some(guard) = self.join(Timestamp::NEVER, None)? {
            return Ok(Some(guard));
        }
        self.read.take_with(wait, |attempts: &mut Attempts<'_, '_>| {
            let (came_at, until) = attempts.time_to_join();
            let has_lease = self.reads.find(self.read.key().title()).is_some();
            if let Some(guard) = self.join(came_at, Some(until))? {
                return attempts.joined(guard).map(Some);
            }
            if has_lease {
                attempts.not_joined();
            }
            let Some(won) = attempts.run()? else { return Ok(None) };
            // The thread's place in the queue outlasts this: the next one finds the lease.
            let Won { guard, ticket } = won;
            let guard = RwReadGuard::first((&self.read, &self.reads), guard);
            drop(ticket);
            Ok(Some(guard))
        })
    }

    /// Locks to read, waiting until another thread cancels the wait, as [`Mutex::lock_cancellable`].
    ///
    /// # Errors
    /// As [`Mutex::lock_cancellable`].
    pub fn read_cancellable(&self, cancel: &CancelHandle) -> Result<RwReadGuard> {
        self.read_without_limit(&Wait::unlimited().cancelled_by(cancel))
    }

    /// Locks to write; blocks while the lock is held. Otherwise as [`Mutex::lock`].
    ///
    /// # Errors
    /// As [`Mutex::lock`].
    pub fn write(&self) -> Result<RwWriteGuard> {
        self.write.lock().map(|guard| self.written(guard))
    }

    /// Makes exactly one attempt to lock to write, as [`Mutex::try_lock`]. It keeps no reader out if it fails.
    ///
    /// # Errors
    /// As [`Mutex::try_lock`].
    pub fn try_write(&self) -> Result<Option<RwWriteGuard>> {
        Ok(self.write.try_lock()?.map(|guard| self.written(guard)))
    }

    /// Locks to write, waiting for at most this long, as [`Mutex::lock_timeout`].
    ///
    /// # Errors
    /// As [`Mutex::lock_timeout`].
    pub fn write_timeout(&self, timeout: Duration) -> Result<Option<RwWriteGuard>> {
        self.write_with(&Wait::timeout(timeout))
    }

    /// Locks to write, waiting until then at the latest, as [`Mutex::lock_deadline`].
    ///
    /// # Errors
    /// As [`Mutex::lock_deadline`].
    pub fn write_deadline(&self, deadline: Instant) -> Result<Option<RwWriteGuard>> {
        self.write_with(&Wait::deadline(deadline))
    }

    /// Locks to write, waiting as `wait` says, as [`Mutex::lock_with`].
    ///
    /// # Errors
    /// As [`Mutex::lock_with`].
    pub fn write_with(&self, wait: &Wait) -> Result<Option<RwWriteGuard>> {
        Ok(self.write.lock_with(wait)?.map(|guard| self.written(guard)))
    }

    /// Locks to write, waiting until another thread cancels the wait, as [`Mutex::lock_cancellable`].
    ///
    /// # Errors
    /// As [`Mutex::lock_cancellable`].
    pub fn write_cancellable(&self, cancel: &CancelHandle) -> Result<RwWriteGuard> {
        self.write.lock_cancellable(cancel).map(|guard| self.written(guard))
    }

    /// Goes on with a lock to read that is held already, as [`Mutex::attach`]. Threads of this client that lock to read
    /// share its lease from then on.
    ///
    /// # Errors
    /// As [`Mutex::attach`]; [`Config`](crate::ErrorKind::Config) for the lease of a writer, or of another kind of
    /// lock.
    pub fn attach_read(&self, lease: Lease) -> Result<RwReadGuard> {
        Ok(RwReadGuard::first((&self.read, &self.reads), self.read.attach(lease)?))
    }

    /// Goes on with a lock to write that is held already, as [`Mutex::attach`].
    ///
    /// # Errors
    /// As [`Mutex::attach`]; [`Config`](crate::ErrorKind::Config) for the lease of a reader, or of another kind of
    /// lock.
    pub fn attach_write(&self, lease: Lease) -> Result<RwWriteGuard> {
        self.write.attach(lease).map(|guard| self.written(guard))
    }

    fn read_without_limit(&self, wait: &Wait) -> Result<RwReadGuard> {
        loop {
            if let Some(guard) = self.read_with(wait)? {
                return Ok(guard);
            }
        }
    }

    fn written(&self, guard: MutexGuard) -> RwWriteGuard {
        RwWriteGuard::new(guard, self.read.clone(), Arc::clone(&self.reads))
    }
}

impl fmt::Debug for RwMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwMutex")
            .field("resource", &self.resource())
            .field("ttl", &self.read.ttl)
            .finish_non_exhaustive()
    }
}
