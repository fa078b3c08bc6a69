//! A held lock: how long it is valid, and how it is extended, released and detached.

mod downgrading;
mod ensure;
mod held;
mod resources;
pub(crate) mod shared;
mod standing;
mod unlocking;
mod watching;

use crate::algorithm::fence::FencingToken;
use crate::algorithm::lease::{Ttl, Validity};
use crate::algorithm::node::NodeSet;
use crate::algorithm::time::{LeaseTime, Readings};
use crate::api::client::Client;
use crate::api::lease::Lease;
use crate::engine::calls::{AttemptRecord, LeaseRequest};
use crate::engine::local_queue::LocalLock;
use crate::engine::watchdog_thread::{Unregistered, WatchedLock};
use crate::events::error::{NodeFault, Result};
use crate::events::event::LossReason;
use crate::events::extension::ExtendOutcome;
use crate::events::release::ReleaseOutcome;
use crate::protocol::lock_key::LockKey;
use crossbeam_channel::Receiver;
use held::{Held, HeldCell};
use std::fmt;
use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

/// A lock that was taken, until it is released or its lease ends.
///
/// **Check [`remaining`](MutexGuard::remaining) before every step that must not be done twice.** A guard cannot stop
/// time: when the lease ends, another client may take the lock, whether this guard is still there or not.
///
/// Dropping a guard releases the lock without waiting for an answer. The release is on its way when `drop` returns, or
/// waits, for 2 ms at most, for what other threads of the client have under way. A program that ends right after calls
/// [`flush_releases`](crate::Redlock::flush_releases).
/// A short-lived thread sends what the connection did not take at once, and retries releases that a node could not run
/// or that were lost with a connection, until the key has ended. [`unlock`](MutexGuard::unlock) waits for a quorum of
/// answers and gives the outcome; for a dropped guard only an observer receives [it](crate::event). A guard may be
/// sent to another thread and dropped there.
///
/// Drop a guard where its outcome changes nothing: a release that is not waited for takes about two thirds of the
/// processor time, and with several threads half of the context switches (`cargo bench -- drop`). Call
/// [`unlock`](MutexGuard::unlock) where the program must know whether the lease lasted until the release.
///
/// In a child made by `fork` a guard stands for nothing: the lock is its parent's. Nothing is left of it there, and
/// dropping it releases nothing.
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard {
    client: Client,
    local: LocalLock,
    claim: AttemptRecord,
    held: HeldCell,
    watched: OnceLock<Arc<WatchedLock>>,
    /// Until when the lock stands, however early it is released.
    stands_until: LeaseTime,
}

impl MutexGuard {
    pub(crate) fn new(client: Client, local: LocalLock, claim: AttemptRecord, lease: Validity, ttl: Ttl) -> MutexGuard {
        let held = HeldCell::new(Held::since_taken(lease, ttl, claim.reached));
        MutexGuard { client, local, claim, held, watched: OnceLock::new(), stands_until: LeaseTime::ORIGIN }
    }

    /// The watchdog's thread has its lease, if it is watched.
    pub(crate) fn watched(mut self, watched: Option<Arc<WatchedLock>>) -> MutexGuard {
        self.watched = watched.map_or_else(OnceLock::new, OnceLock::from);
        self
    }

    /// For how long the lock may still be relied on, by the clock as it is now. Zero once it may not.
    ///
    /// It counts from before the first byte of the winning attempt was sent, less the allowance for clock drift, and
    /// continues while the machine sleeps. The call waits for nothing: no node, no callback, no other thread.
    pub fn remaining(&self) -> Duration {
        if self.client.is_inherited() {
            return Duration::ZERO;
        }
        self.lease().remaining(self.client.engine().lease_now())
    }

    /// The number that this acquisition has been given, greater than that of every acquisition before it: send it along
    /// with everything that is written under the lock, see [`FencingToken`]. None unless the mutex is
    /// [`fenced`](crate::Mutex::fenced); the guard of such a mutex has it as [`fence`](crate::FencedGuard::fence),
    /// without the `Option`. Of a read-write lock, [fenced](crate::RwMutex::fenced) writers have one, and readers none.
    ///
    /// It does not change while the lock is held, and stays true when the lease has ended: that is what it is for.
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.claim.kind.fence()
    }

    /// Releases the lock, and waits until a quorum of nodes has answered, for the node timeout at most. Right where the
    /// outcome matters; otherwise drop the guard, which waits for nothing and costs less.
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
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when too few nodes answered in time to tell whether a quorum has
    /// freed the lock, or none can have held it any more. The release has been sent to every node that can be reached,
    /// and nodes that hang run it when they go on; at the latest, the lock ends with its time to live.
    /// [`Forked`](crate::ErrorKind::Forked) in a child of the process that holds the lock: it is still held.
    pub fn unlock(self) -> Result<ReleaseOutcome> {
        self.unlock_and(|| ())
    }

    /// Makes the lock last for `ttl` from now on, and says what holds now. Waits for a quorum of answers, and for those
    /// of other nodes that answer, for the node timeout at most.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// use quorumlock::ExtendOutcome;
    /// use std::time::Duration;
    ///
    /// let mut guard = redlock.mutex("orders/42").ttl(Duration::from_secs(5)).lock()?;
    /// match guard.extend(Duration::from_secs(60))? {
    ///     ExtendOutcome::Extended => assert!(guard.remaining() > Duration::from_secs(50)),
    ///     ExtendOutcome::Failed(causes) => println!("still ours for {:?}: {causes:?}", guard.remaining()),
    ///     // Lost.
    ///     _ => println!("stop: another client may hold it"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The outcome is what the nodes replied. An observer that receives it may run for longer than a short lease lasts:
    /// [`remaining`](MutexGuard::remaining) returns what is left.
    ///
    /// A failed extension destroys nothing: what is left of the lease still holds, and another try may help. But a
    /// lease that has ended never comes back. A `ttl` that ends the lock sooner holds at once, whether or not a quorum
    /// answers. Nodes that have lost the key, because they were restarted, say, get it again.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) for an unusable time to live; [`Forked`](crate::ErrorKind::Forked).
    pub fn extend(&mut self, ttl: Duration) -> Result<ExtendOutcome> {
        self.extend_one_at_a_time(ttl)
    }

    /// [`extend`](MutexGuard::extend). No other thread may be at it.
    pub(crate) fn extend_one_at_a_time(&self, ttl: Duration) -> Result<ExtendOutcome> {
        self.client.check_process()?;
        let ttl = self.client.checked_ttl(ttl)?;
        let found = self.extend_by(ttl);
        let is_reported_here = if let ExtendResult::Lost(reason) = &found { self.lose(*reason) } else { true };
        // Threads of this client that wait for it may have to wait less, or longer.
        let (hold, now) = (self.hold_id(), self.client.engine().readings());
        self.local.hold_until(hold, self.lease().end(), now);
        let (report, key) = (self.client.report(), self.key().title());
        Ok(match found {
            ExtendResult::Extended(repaired) => {
                report.extended(key, ttl.duration(), false, repaired);
                ExtendOutcome::Extended
            }
            ExtendResult::Failed(causes) => {
                report.extension_failed(key, || self.remaining(), &causes);
                ExtendOutcome::Failed(causes)
            }
            ExtendResult::Lost(reason) => {
                report.extension_lost(key, false);
                if is_reported_here {
                    report.lost(key, reason, self.held_at(now));
                }
                ExtendOutcome::Lost
            }
        })
    }

    /// A channel that brings one message when the lock is lost: because its lease ends and could not be extended, or
    /// because so many nodes say that it is not ours any more that no quorum can hold it. The message comes before the
    /// end of the validity; how long before, [`Watchdog::notify_before`](crate::Watchdog::notify_before) says. Without
    /// a watchdog it comes at the end.
    ///
    /// The channel works in `crossbeam_channel::select!`. It is disconnected, without a message, when the guard is
    /// gone.
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
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when the lock has no watchdog and the thread that watches it
    /// cannot be started; [`Forked`](crate::ErrorKind::Forked). To a channel that was there before the fork, no message
    /// comes in the child.
    pub fn lost(&self) -> Result<Receiver<()>> {
        Ok(self.watch()?.lost())
    }

    /// Calls `callback` when the lock is lost: once, at the same time as [`lost`](MutexGuard::lost) brings its message,
    /// and at once if that time has passed. For event loops, which have no use for a channel.
    ///
    /// It is called on the watchdog's thread, or on the one in whose [`extend`](MutexGuard::extend) the loss was found
    /// out, while no lock of this library is held. The [rules for observers](crate::event#rules-for-observers) hold for
    /// it as well. A panic in it is caught and dropped. If the guard goes first, it is dropped and not called; on
    /// another thread it may just then be running.
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
        self.watch()?.on_lost(Box::new(callback));
        Ok(())
    }

    /// Lets go of the guard and not of the lock: gives what another thread, process or program needs to go on with it.
    /// Sends nothing. The lock stays held until the lease is [attached](crate::Redlock::attach) and released, or its
    /// time is up.
    ///
    /// ```
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// # let redlock = quorumlock::Redlock::builder().node(node.url()).build()?;
    /// let mutex = redlock.mutex("orders/42");
    /// let lease = mutex.lock()?.detach();
    /// assert!(mutex.try_lock()?.is_none(), "it is held without a guard");
    ///
    /// let guard = mutex.attach(lease)?;
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A [`Watchdog`](crate::Watchdog) extends it no more. If an extension of its own is under way, a quorum of answers
    /// is waited for, for the node timeout at most. A lock that was signalled as [`lost`](MutexGuard::lost) stays lost:
    /// its lease has ended. The channel is disconnected.
    ///
    /// A node that hangs is not waited for, and runs what this client had asked of it when it goes on. Another client
    /// has connections of its own, and may be served there before that. After its release the key may be set there once
    /// more, and goes with its time to live. After its extension by more than [`Lease::ttl`](crate::Lease::ttl) the key
    /// may live no longer there than that.
    ///
    /// In a child made by `fork` the lock is the parent's, and the lease that this gives has ended.
    pub fn detach(self) -> Lease {
        let client = self.client.clone();
        let lease = match self.watched.get() {
            _ if client.is_inherited() => Validity::until(LeaseTime::ORIGIN),
            Some(watched) => client.watchdog_thread().unregister_and_wait(watched),
            None => self.held.get().lease,
        };
        let wall = SystemTime::now();
        let now = client.engine().readings();
        // Threads of this client that wait for the lock ask the servers from now on: any client may release it.
        if !client.is_inherited() {
            self.local.release(self.hold_id(), now.steady);
            self.leave_queue();
            client.report().detached(self.key().title());
        }
        let ttl_millis = self.held.get().lasts.map_or(0, NonZeroU64::get);
        self.held.change(|held| held.lasts = None);
        Lease::detached(self.key().clone(), &self.claim, ttl_millis, lease, wall, now.lease)
    }

    fn extend_by(&self, ttl: Ttl) -> ExtendResult {
        const ENDED: ExtendResult = ExtendResult::Lost(LossReason::LeaseEnded);
        let begun = match self.watched.get() {
            Some(watched) => self.client.watchdog_thread().begin_extend(watched, ttl),
            None => self.client.engine().lease_now(),
        };
        if self.is_lost() || !self.lease().is_valid(begun) {
            return ENDED;
        }
        let ends_sooner = ttl.lease_from(begun).end() < self.lease().end();
        if ends_sooner && !self.rely_on(begun, ttl) {
            return ENDED;
        }
        // A node may do it though its answer never comes, or go by an earlier one because this one never reaches it.
        self.held.change(|held| held.longest = held.longest.max(ttl.longest()));
        let (engine, old) = (self.client.engine(), self.lease());
        let order = LeaseRequest {
            key: self.key().as_bytes(),
            token: &self.claim.token,
            ttl_millis: ttl.millis(),
            kind: self.claim.kind,
        };
        // Unless the end is near, there is time to wait for all nodes, and to find those that have lost the key.
        let is_long = old.remaining(begun) > engine.node_timeout() * 2;
        let (start, count) = engine.extend(&order, is_long);
        let now = engine.lease_now();
        if count.is_extended() && old.is_valid(now) {
            let repaired = engine.repair(&order, count.tally.absent());
            self.held.change(|held| held.reached = held.reached.union(repaired));
            return if self.rely_on(start, ttl) { ExtendResult::Extended(repaired) } else { ENDED };
        }
        if count.is_lost() {
            return ExtendResult::Lost(LossReason::KeyGone);
        }
        // A renewal that was under way may have put off the end meanwhile. Nodes go by what they were asked last.
        if ttl.lease_from(start).end() < self.lease().end() && !self.rely_on(start, ttl) {
            return ENDED;
        }
        if let Some(watched) = self.watched.get() {
            watched.note_unanswered(start, ttl);
        }
        if self.lease().is_valid(now) { ExtendResult::Failed(self.client.unavailability(&count).causes) } else { ENDED }
    }

    fn key(&self) -> &LockKey {
        self.local.key()
    }

    fn lease(&self) -> Validity {
        self.watched.get().map_or_else(|| self.held.get().lease, |watched| watched.lease())
    }

    /// Relies on the lease of an extension that was begun at `start`. False when the loss of the lock has been
    /// signalled.
    fn rely_on(&self, start: LeaseTime, ttl: Ttl) -> bool {
        self.held.change(|held| held.lasts = Some(ttl.longest()));
        match self.watched.get() {
            Some(watched) => self.client.watchdog_thread().extended(watched, start, ttl),
            None => {
                self.held.change(|held| held.lease = ttl.lease_from(start));
                true
            }
        }
    }

    /// Ends a lock that is lost. True when the caller is to report it to the observer.
    fn lose(&self, reason: LossReason) -> bool {
        match self.watched.get() {
            Some(watched) if reason == LossReason::KeyGone => {
                let is_untold = self.client.watchdog_thread().lose(watched);
                watched.run_loss_callbacks();
                is_untold
            }
            // The watchdog's thread reports its end.
            Some(_) => false,
            None => self.held.change(|held| std::mem::replace(&mut held.lease, Validity::LOST) != Validity::LOST),
        }
    }

    /// Removes the call's entry from the queue of the lock, which is held without it.
    fn leave_queue(&self) {
        if let Some(departure) = self.claim.departure {
            let (key, reached) = (&self.key().each()[usize::from(departure.key)], self.held.get().reached);
            self.client.engine().leave(key.as_bytes(), self.claim.kind, Some(departure.entry), reached);
        }
    }

    /// How long the lock has been held.
    fn held_at(&self, now: Readings) -> Duration {
        now.steady.since(self.claim.t0.steady)
    }

    /// Releases the lock without waiting. The caller delivers queued events.
    pub(super) fn post_release(&self) {
        let Unregistered { lease, reached, loss_reported } = self.leave_watch();
        let (client, key) = (&self.client, self.key());
        let now = client.engine().readings();
        let was_valid = lease.is_valid(now.lease);
        let is_loss_found = !was_valid && !loss_reported;
        let context =
            client.report().dropped(key.title(), (was_valid, loss_reported || is_loss_found), self.held_at(now));
        client.engine().post_release(self.release_at(now.lease, reached), now.steady, context);
        self.local.release(self.hold_id(), now.steady);
        if is_loss_found {
            client.report().without_queued().lost(key.title(), LossReason::LeaseEnded, self.held_at(now));
        }
        self.held.change(|held| held.lasts = None);
    }

    /// Stops the watch, so that nothing more is sent for this lock, and gives what is held.
    fn leave_watch(&self) -> Unregistered {
        let Held { lease, reached, .. } = self.held.get();
        match self.watched.get() {
            Some(watched) => {
                let left = self.client.watchdog_thread().unregister(watched);
                Unregistered { reached: reached.union(left.reached), ..left }
            }
            None => Unregistered { lease, reached, loss_reported: lease == Validity::LOST },
        }
    }
}

/// What came of an extension.
enum ExtendResult {
    /// The key is being set again on these nodes.
    Extended(NodeSet),
    Failed(Vec<NodeFault>),
    Lost(LossReason),
}

impl Drop for MutexGuard {
    fn drop(&mut self) {
        if self.client.is_inherited() {
            // The lock is the parent's. The channel of the watch is not dropped: another thread was perhaps waiting at
            // it.
            return std::mem::forget(self.watched.take());
        }
        if self.held.get().lasts.is_some() {
            self.post_release();
            self.client.report().deliver_queued();
        }
    }
}

/// Shows the resource and the time left, never the owner token.
impl fmt::Debug for MutexGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutexGuard")
            .field("resource", &self.resource())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
