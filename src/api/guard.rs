//! A held lock, as a program has it.

use crate::algorithm::fence::FencingToken;
use crate::api::held::Held;
use crate::api::kind::{Any, Fenced, Kind, Plain, Read, Reentrant, Set, Slot, Write};
use crate::api::lease::Lease;
use crate::events::error::Result;
use crate::events::extension::ExtendOutcome;
use crate::events::release::ReleaseOutcome;
use crate::os::caught::caught;
use crossbeam_channel::Receiver;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// A lock that was taken, until it is released or its lease ends.
///
/// **Check [`remaining`](MutexGuard::remaining) before every step that must not be done twice.** A
/// guard cannot stop time: when the lease ends, another client may take the lock, whether this
/// guard still exists or not.
///
/// Dropping a guard releases the lock without waiting for an answer. The release is on its way when
/// `drop` returns, or waits, for 2 ms at most, for what other threads of the client have under way.
/// A program that ends right after calls [`flush_releases`](crate::Redlock::flush_releases). A
/// short-lived thread sends what the connection did not take at once, and retries releases that a
/// node could not run or that were lost with a connection, until the key has ended.
/// [`unlock`](MutexGuard::unlock) waits for a quorum of answers and returns the outcome; of a
/// dropped guard only an observer gets it. A guard has no lifetime and may be sent to another
/// thread and dropped there, unless it is of a [reentrant](Reentrant) lock.
///
/// Drop a guard where its outcome changes nothing: a release that is not waited for takes about two
/// thirds of the processor time, and with several threads half of the context switches (`cargo
/// bench -- drop`). Call [`unlock`](MutexGuard::unlock) where the program must know whether the
/// lease lasted until the release.
///
/// Several guards of one client may share a lock: the levels of a [reentrant](Reentrant) one, and
/// threads that [read](Read). The last of them that is dropped releases it.
///
/// In a child made by `fork` a guard holds nothing: the lock is its parent's. Dropping it there
/// releases nothing.
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard<K: Kind = Plain> {
    pub(crate) held: Held,
    /// Guards of a reentrant lock stay on their thread.
    kind: PhantomData<K>,
}

/// What a program has called when a lock is lost. What it has captured may panic when it is dropped
/// uncalled, on the watchdog's thread perhaps: that ends here.
struct OnLoss<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> OnLoss<F> {
    fn call(&mut self) {
        self.0.take().into_iter().for_each(|callback| callback());
    }
}

impl<F: FnOnce()> Drop for OnLoss<F> {
    fn drop(&mut self) {
        _ = caught(|| drop(self.0.take()));
    }
}

impl<K: Kind> MutexGuard<K> {
    pub(super) fn of(held: Held) -> MutexGuard<K> {
        MutexGuard {
            held,
            kind: PhantomData,
        }
    }

    /// The name of the lock, without the prefix. For a set, its names in order, separated by a
    /// comma and a blank; for a permit, the name of the semaphore, `#` and the slot.
    pub fn name(&self) -> &str {
        self.held.lock().name()
    }

    /// How long the lock can still be relied on, by the clock as it is now. Zero when it cannot any
    /// more.
    ///
    /// It counts from before the first byte of the winning attempt was sent, less the allowance for
    /// clock drift, and continues while the machine sleeps. The call waits for nothing: no node, no
    /// callback, no other thread.
    pub fn remaining(&self) -> Duration {
        self.held.lock().remaining()
    }

    /// Fails unless the lock is valid for at least this long. To be called before every step that
    /// must not be done twice, with the longest time that the step may take. The call waits for
    /// nothing.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use std::time::Duration;
    ///
    /// let guard = redlock.mutex("orders/42").ttl(Duration::from_secs(5)).lock()?;
    /// guard.ensure(Duration::from_secs(2))?;
    /// assert!(guard.ensure(Duration::from_secs(6)).is_err(), "it does not last that long");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`LeaseTooShort`](crate::ErrorKind::LeaseTooShort) when [`remaining`](MutexGuard::remaining)
    /// is less; [`LeaseLost`](crate::ErrorKind::LeaseLost) when it is zero, or the loss of the lock
    /// has been [signalled](MutexGuard::lost); [`Forked`](crate::ErrorKind::Forked). The guard is
    /// as before.
    pub fn ensure(&self, remaining: Duration) -> Result<()> {
        self.held.lock().ensure(remaining)
    }

    /// Asks the nodes to let the lock last for at least `ttl` from now, and returns what holds now.
    /// Waits for the replies of a quorum, and of the other nodes that reply, for the node timeout
    /// at most.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use quorumlock::ExtendOutcome;
    /// use std::time::Duration;
    ///
    /// let guard = redlock.mutex("orders/42").ttl(Duration::from_secs(5)).lock()?;
    /// match guard.extend(Duration::from_secs(60))? {
    ///     ExtendOutcome::Extended => assert!(guard.remaining() > Duration::from_secs(50)),
    ///     ExtendOutcome::Failed(causes) => println!("still ours for {:?}: {causes:?}", guard.remaining()),
    ///     // Lost.
    ///     _ => println!("stop: another client may hold it"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// It never shortens a lease: where the lock lasts for that long already, nothing is sent, and
    /// the outcome is [`Extended`](ExtendOutcome::Extended). Calls of several threads, for one
    /// guard or for guards that share the lock, extend it one after the other, each for up to a
    /// node timeout and what an observer takes.
    ///
    /// The outcome is what the nodes replied. An observer that receives it may run for longer than
    /// a short lease lasts: [`remaining`](MutexGuard::remaining) returns the time that is left.
    ///
    /// A failed extension destroys nothing: the rest of the lease still counts, and another try may
    /// help. But a lease that has ended is never revived. Nodes that have lost the key, for example
    /// by a restart, get it again.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) for an unusable time to live, or in a callback that an
    /// extension of the same lock calls; [`Forked`](crate::ErrorKind::Forked).
    pub fn extend(&self, ttl: Duration) -> Result<ExtendOutcome> {
        self.held.lock().extend(ttl)
    }

    /// A channel that receives one message when the lock is lost: because its lease ends and could
    /// not be extended, or because so many nodes reply that it is not ours any more that no quorum
    /// can hold it. The message is sent before the end of the validity; how long before is
    /// [`Watchdog::notify_before`](crate::Watchdog::notify_before). Without a watchdog it is sent
    /// at the end.
    ///
    /// The channel works in `crossbeam_channel::select!`. It is disconnected, without a message,
    /// when the guard is dropped. Of several receivers of one guard, one gets the message.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use std::time::Duration;
    ///
    /// let guard = redlock.mutex("orders/42").ttl(Duration::from_millis(50)).lock()?;
    /// assert!(guard.lost()?.recv_timeout(Duration::from_secs(1)).is_ok(), "it has no watchdog");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when the lock has no watchdog and the thread
    /// that watches it cannot be started; [`Config`](crate::ErrorKind::Config) in a callback that
    /// an extension of the same lock calls; [`Forked`](crate::ErrorKind::Forked). A channel from
    /// before a fork receives no message in the child.
    pub fn lost(&self) -> Result<Receiver<()>> {
        self.held.lost()
    }

    /// Calls `callback` when the lock is lost: once, at the same time as [`lost`](MutexGuard::lost)
    /// sends its message, and at once if that time has passed. For event loops, which have no use
    /// for a channel.
    ///
    /// It is called on the watchdog's thread, on the one whose [`extend`](MutexGuard::extend)
    /// detects the loss, or on the thread that calls `on_lost` after the loss was signalled, while
    /// no lock of this library is held; the rules for an [observer](crate::Builder::observer)
    /// apply. A panic in it is caught and dropped, also in a drop of what it has captured. If this
    /// guard is dropped first, it is dropped and not called; on another thread it may just then be
    /// running.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use std::{io::{Read, Write, pipe}, time::Duration};
    ///
    /// // What `poll` sees: one end of a pipe becomes readable.
    /// let (mut reader, mut writer) = pipe()?;
    /// let guard = redlock.mutex("orders/42").ttl(Duration::from_millis(50)).lock()?;
    /// guard.on_lost(move || drop(writer.write_all(b"!")))?;
    /// reader.read_exact(&mut [0])?;
    /// assert!(guard.remaining().is_zero());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`lost`](MutexGuard::lost); then it is not called.
    pub fn on_lost(&self, callback: impl FnOnce() + Send + 'static) -> Result<()> {
        let mut callback = OnLoss(Some(callback));
        self.held.on_lost(Box::new(move || callback.call()))
    }

    /// Releases the lock, and waits until a quorum of nodes has answered, for the node timeout at
    /// most. Right where the outcome matters; otherwise drop the guard, which waits for nothing and
    /// costs less. If other guards of this client share the lock, nothing is sent and the outcome
    /// is [`StillHeld`](ReleaseOutcome::StillHeld).
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use quorumlock::ReleaseOutcome;
    /// use std::{thread, time::Duration};
    ///
    /// let guard = redlock.mutex("orders/42").lock()?;
    /// assert_eq!(guard.unlock()?, ReleaseOutcome::Released);
    ///
    /// // Work that took longer than the lock lasted.
    /// let guard = redlock.mutex("orders/42").ttl(Duration::from_millis(20)).lock()?;
    /// thread::sleep(Duration::from_millis(25));
    /// assert!(guard.remaining().is_zero());
    /// assert_eq!(guard.unlock()?, ReleaseOutcome::Expired);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when too few nodes answered in time to tell
    /// whether a quorum has freed the lock, or none can have held it any more. The release has been
    /// sent to every node that can be reached, and nodes that hang run it when they continue; at
    /// the latest, the lock ends with its time to live. [`Forked`](crate::ErrorKind::Forked) in a
    /// child of the process that holds the lock: it is still held.
    pub fn unlock(self) -> Result<ReleaseOutcome> {
        self.held.unlock()
    }

    /// Ends the guard and keeps the lock, for another thread, process or program. Asks no node. The
    /// lock stays held until the lease is [attached](crate::Redlock::attach) and released, or its
    /// time has passed.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// let mutex = redlock.mutex("orders/42");
    /// let lease = mutex.lock()?.detach()?;
    /// assert!(mutex.try_lock()?.is_none(), "it is held without a guard");
    ///
    /// let guard = mutex.attach(lease)?;
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A [`Watchdog`](crate::Watchdog) extends it no more. If an extension of its own is under way,
    /// a quorum of answers is waited for, for the node timeout at most. A lock that was signalled
    /// as [`lost`](MutexGuard::lost) stays lost: its lease has ended. The channel is disconnected.
    ///
    /// A node that hangs is not waited for, and runs what this client had asked of it when it
    /// continues. Another client has connections of its own, and may be served there before that.
    /// After its release the key may be set there once more, and expires with its time to live.
    /// After its extension by more than [`Lease::ttl`] the key may live no longer there than that.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) when other guards of this client share the lock, or
    /// another of its threads is just trying to; the guard is dropped.
    /// [`Forked`](crate::ErrorKind::Forked) in a child of the process that holds the lock.
    pub fn detach(self) -> Result<Lease<K>> {
        Lease::of(self.held.detach()?)
    }
}

impl<K: Kind + Send> MutexGuard<K> {
    /// Forgets the kind in the type, not in the guard: for a field or a collection that holds
    /// guards of any kind.
    pub fn erase(self) -> MutexGuard<Any> {
        MutexGuard::of(self.held)
    }
}

impl MutexGuard<Fenced> {
    /// The number of this acquisition, greater than the number of every acquisition before it: send
    /// it with everything that is written under the lock, see [`FencingToken`].
    ///
    /// It does not change while the lock is held, and stays true when the lease has ended.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// let guard = redlock.mutex("orders/42").fenced().lock()?;
    /// // UPDATE orders SET …, fence = :fence WHERE id = 42 AND fence <= :fence
    /// let fence = i64::from(guard.fence());
    /// # assert!(fence > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fence(&self) -> FencingToken {
        self.held.lock().kind().number()
    }
}

impl MutexGuard<Reentrant<Fenced>> {
    /// The number of this acquisition, the same at every level.
    pub fn fence(&self) -> FencingToken {
        self.held.lock().kind().number()
    }
}

impl MutexGuard<Any> {
    /// The number of this acquisition, if its kind has one.
    pub fn fence(&self) -> Option<FencingToken> {
        self.held.lock().kind().fence()
    }
}

/// What only some kinds have, for a caller that knows the kind at run time only.
#[allow(dead_code, reason = "the C interface uses it")]
impl MutexGuard<Any> {
    /// The slot of a permit; 0 for another lock.
    pub(crate) fn slot_number(&self) -> usize {
        self.held.slot()
    }

    /// Whether it holds the lock to write, beside readers.
    pub(crate) fn is_writer(&self) -> bool {
        matches!(self.held, Held::Writer(..))
    }

    /// The same lock to read.
    pub(crate) fn into_reader(self) -> Result<MutexGuard<Any>> {
        self.held.downgrade().map(MutexGuard::of)
    }
}

impl MutexGuard<Write> {
    /// Makes it a lock to read, without letting another writer in between, and extends it by the
    /// [`ttl`](crate::Mutex::ttl) of its mutex. Waits as [`extend`](MutexGuard::extend) does. Other
    /// readers are let in from then on; writers are not, for as long as the lease that it has
    /// lasts.
    ///
    /// If too few nodes answer, the lock is one to read all the same, and its lease is as long as
    /// before. Nodes that have not received it refuse other readers until they do, by the next
    /// extension, or the lock is released or ends.
    ///
    /// What [`lost`](MutexGuard::lost) and [`on_lost`](MutexGuard::on_lost) were given for the lock
    /// to write ends: the channel is disconnected.
    ///
    /// # Errors
    /// [`LeaseLost`](crate::ErrorKind::LeaseLost) when the lease has ended or the nodes do not have
    /// the lock any more. [`Config`](crate::ErrorKind::Config) and
    /// [`Forked`](crate::ErrorKind::Forked) as [`extend`](MutexGuard::extend). In each case the
    /// guard is dropped.
    pub fn downgrade(self) -> Result<MutexGuard<Read>> {
        self.held.downgrade().map(MutexGuard::of)
    }
}

impl MutexGuard<Fenced<Write>> {
    /// The number of this writer, greater than the number of every writer before it.
    pub fn fence(&self) -> FencingToken {
        self.held.lock().kind().number()
    }

    /// Makes it a lock to read, as [`downgrade`](MutexGuard::downgrade) of a writer without a
    /// number. The reader has none, because it does not write.
    ///
    /// # Errors
    /// As [`downgrade`](MutexGuard::downgrade) of a writer without a number.
    pub fn downgrade(self) -> Result<MutexGuard<Read>> {
        self.held.downgrade().map(MutexGuard::of)
    }
}

impl MutexGuard<Set> {
    /// The names, without the prefix: sorted, and each once.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        let lock = self.held.lock();
        lock.client.resources(lock.key())
    }
}

impl MutexGuard<Slot> {
    /// Which of the slots it is, from 0. No other holder has the same one meanwhile: it may choose
    /// one of k work directories, ports or devices.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// const PRINTERS: [&str; 2] = ["cellar", "attic"];
    ///
    /// let permit = redlock.semaphore("printers", PRINTERS.len()).lock()?;
    /// println!("print in the {}", PRINTERS[permit.slot()]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn slot(&self) -> usize {
        self.held.slot()
    }
}

/// Shows the name and the remaining time, never the owner token.
impl<K: Kind> fmt::Debug for MutexGuard<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutexGuard")
            .field("name", &self.name())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
