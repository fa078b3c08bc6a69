//! The thread that extends locks automatically and reports their loss, one for each client that
//! needs it.
//!
//! ```text
//!   guard ── watch ──────► schedule ──► thread: ended? report it. due? one batch: extend, wait, note, repair.
//!                                               a node has come back without its data? all are due.
//!         ◄─ lease ───────  leases
//!         ── unregister ─►  (lock state first, then the wire)
//! ```
//!
//! A lock that is watched has its lease here, where guard and thread both see it. Invariants:
//! 1. A lock is unregistered before it is released. From then on nothing more is sent for it from
//!    here: a batch is queued while the schedule is held, and a repair while the lock's own state
//!    is. So they go before the release on every connection, or not at all. A guard that lets go of
//!    a lock *without* releasing it also waits for the result of an extension in flight, which must
//!    not overtake the commands of the next holder.
//! 2. A loss is signalled once, with the schedule held, when the lock is taken out of it. An owner
//!    that has unregistered the lock before gets no signal.
//! 3. A lease changes in the schedule and in the lock's own state at once, with the schedule held.
//!    So does the state that keeps extensions by hand and by the thread apart.
//! 4. The schedule goes by leases that end earlier than they really do, by the margin, and a batch
//!    waits for no answer longer than the first of them lasts. So a loss is signalled before the
//!    end, also when nodes hang.
//! 5. The observer and other callbacks are called when no mutex is held, and when all results of a
//!    batch have been noted.
//! 6. The end of the client waits for a callback for a limited time. Then the thread is left
//!    behind: it ends when the callback has returned.
//! 7. What the thread finds about a lock is reported after it was reported acquired: findings wait
//!    for that.
//! 8. The thread reports its own findings before anything else. Events that other threads have left
//!    it reports one at a time, and looks at the schedule after each.

mod batch;
mod ending;
mod last_events;
mod reporting;
pub(crate) mod watched;

use crate::algorithm::lease::{Ttl, Validity};
use crate::algorithm::node::NodeSet;
use crate::algorithm::renewal::{LeaseId, RenewalConfig, Renewals};
use crate::algorithm::time::{LeaseTime, Timestamp};
use crate::engine::calls::{AttemptRecord, Engine, RoundResult, Stragglers};
use crate::engine::local_queue::LocalLock;
use crate::events::event::LossReason;
use crate::events::report::Reporter;
use crate::os::sync::{Condvar, JoinHandle, Mutex, MutexGuard, lock, spawn};
use batch::{Batch, Finding};
use last_events::report_last_events;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
pub(crate) use watched::{AutomaticExtension, Unregistered, WatchedLock};

/// Most locks that are extended in one batch: little, so that other requests are not kept waiting
/// behind it.
const BATCH: usize = 512;
/// Longest sleep. While a machine is suspended, the time of a sleep does not pass.
pub(crate) const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The locks of one client that are watched.
pub(crate) struct WatchdogThread {
    engine: Arc<Engine>,
    report: Reporter,
    shared: Arc<WatchdogShared>,
}

struct WatchdogShared {
    schedule: Mutex<Schedule>,
    /// Notified when the schedule has something earlier, or the thread is to end.
    changed: Condvar,
    /// Notified when no extension of some lock is in flight any more; at the end of the client,
    /// also when the thread begins to report, and ends.
    noted: Condvar,
}

#[derive(Default)]
struct Schedule {
    renewals: Renewals,
    locks: HashMap<LeaseId, Arc<WatchedLock>>,
    thread: Option<JoinHandle<()>>,
    /// How many owners wait for the result of an extension.
    unregistering: usize,
    closing: bool,
    /// The thread may be in a callback of the program.
    is_reporting: bool,
    /// The thread has nothing left to do.
    has_ended: bool,
}

impl Schedule {
    /// Takes a lock out; false when another thread was first.
    fn remove(&mut self, id: LeaseId) -> bool {
        self.locks.remove(&id);
        self.renewals.remove(id)
    }
}

impl WatchdogThread {
    pub(crate) fn new(engine: Arc<Engine>, report: Reporter) -> WatchdogThread {
        let shared = WatchdogShared {
            schedule: Mutex::default(),
            changed: Condvar::new(),
            noted: Condvar::new(),
        };
        WatchdogThread {
            engine,
            report,
            shared: Arc::new(shared),
        }
    }

    /// Starts the thread, unless it runs.
    ///
    /// # Errors
    /// The system does not start a thread.
    pub(crate) fn start(&self) -> io::Result<()> {
        let mut schedule = lock(&self.shared.schedule);
        if schedule.thread.is_none() {
            let thread = WatchdogLoop {
                engine: Arc::clone(&self.engine),
                report: self.report.without_queued(),
                shared: Arc::clone(&self.shared),
                batch: Batch::default(),
                reconnect_at: Timestamp::ORIGIN,
            };
            schedule.thread = Some(spawn("quorumlock watchdog", move || thread.run())?);
        }
        Ok(())
    }

    /// Watches a lock from now on: extends it, or only reports its loss. One whose acquisition was
    /// not reported yet (`is_announced`) is to be [`announce`](WatchdogThread::announce)d. The
    /// thread must have been [`start`](WatchdogThread::start)ed.
    pub(crate) fn watch(
        &self,
        local: &LocalLock,
        record: &AttemptRecord,
        lease: Validity,
        extension: Option<AutomaticExtension>,
        is_announced: bool,
    ) -> Arc<WatchedLock> {
        let config = extension.map_or(RenewalConfig::REPORT_ONLY, |extension| extension.config);
        let mut schedule = lock(&self.shared.schedule);
        let next_at = schedule.renewals.next_at();
        let now = self.engine.lease_now();
        // The margin takes at most half of a lease that was attached late.
        let margin = extension
            .map_or(Duration::ZERO, |extension| extension.margin)
            .min(lease.remaining(now) / 2);
        let less_margin = Validity::until(lease.end().before(margin));
        let id = schedule
            .renewals
            .insert(config, record.t0.lease, less_margin, now);
        let watched = Arc::new(WatchedLock::new(local, record, lease, extension, id));
        if is_announced {
            watched.announce();
        }
        schedule.locks.insert(id, Arc::clone(&watched));
        // A step of the clock has made a lease overdue, and the sleeping thread does not notice
        // that.
        if schedule.renewals.next_at() < next_at || next_at <= now {
            self.shared.changed.notify_one();
        }
        watched
    }

    /// The acquisition of a lock has been reported: so may be from now on what the thread has found
    /// about it.
    pub(crate) fn announce(&self, watched: &WatchedLock) {
        if watched.announce() {
            let _schedule = lock(&self.shared.schedule);
            self.shared.changed.notify_one();
        }
    }

    /// Lets a lock that is extended be extended as long as this one allows, if that is longer.
    /// False when it is lost.
    pub(crate) fn allow(&self, watched: &WatchedLock, extension: AutomaticExtension) -> bool {
        let is_there = lock(&self.shared.schedule).renewals.allow(
            watched.id,
            extension.config,
            self.engine.lease_now(),
        );
        self.shared.changed.notify_one();
        is_there
    }

    /// To be called before the lock is released: from now on nothing is sent for it. Returns what
    /// is held.
    pub(crate) fn unregister(&self, watched: &WatchedLock) -> Unregistered {
        lock(&self.shared.schedule).remove(watched.id);
        let mut held = lock(&watched.held);
        held.is_over = true;
        Unregistered {
            lease: held.lease,
            reached: held.reached,
            loss_reported: held.loss_reported,
        }
    }

    /// To be called before the lock is let go without being released. Nothing is sent for it any
    /// more, and a quorum has answered what was sent, or the time for that is over. Returns the
    /// lease, ended if the loss of the lock was signalled.
    pub(crate) fn unregister_and_wait(&self, watched: &WatchedLock) -> Validity {
        let mut schedule = lock(&self.shared.schedule);
        let deadline = self.engine.now().after(self.engine.node_timeout() * 2);
        schedule.unregistering += 1;
        while schedule.renewals.is_in_flight(watched.id)
            && let timeout = deadline.since(self.engine.now())
            && !timeout.is_zero()
        {
            schedule = self
                .shared
                .noted
                .wait_timeout(schedule, timeout)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        schedule.unregistering -= 1;
        let is_held = schedule.remove(watched.id);
        drop(schedule);
        let mut held = lock(&watched.held);
        held.is_over = true;
        if is_held {
            held.lease
        } else {
            Validity::until(self.engine.lease_now())
        }
    }

    /// Begins an extension by hand, and returns its start. Until its result is known, nothing is
    /// sent from here: a node goes by the last command. None: the lock lasts for that long already,
    /// and nothing is begun.
    pub(crate) fn begin_extend(&self, watched: &WatchedLock, ttl: Ttl) -> Option<LeaseTime> {
        // The thread holds the schedule while it sends: what it has sent was sent before `now`.
        let _schedule = lock(&self.shared.schedule);
        let now = self.engine.lease_now();
        let mut held = lock(&watched.held);
        let asked = ttl.lease_from(now);
        if !held.is_over && held.lease.end() >= asked.end() {
            return None;
        }
        held.by_hand.begin(asked.end());
        Some(now)
    }

    /// The owner has extended the lock by hand, at `start`: automatic extensions last at least as
    /// long from now on. False when its loss has been signalled.
    pub(crate) fn extended(&self, watched: &WatchedLock, start: LeaseTime, ttl: Ttl) -> bool {
        let lease = ttl.lease_from(start);
        let less_margin = watched.lease_less_margin(lease, ttl);
        let mut schedule = lock(&self.shared.schedule);
        let now = self.engine.lease_now();
        // What was sent automatically meanwhile then counts as sent before.
        let order = if watched.kind.keeps_longest() {
            now
        } else {
            start
        };
        let counted = schedule
            .renewals
            .extended(watched.id, order, less_margin, now);
        self.shared.changed.notify_one();
        {
            let mut held = lock(&watched.held);
            held.ttl = held.ttl.map(|own| own.max(ttl));
            held.by_hand.on_extended();
        }
        if counted == Some(less_margin) {
            watched.renew(lease);
        }
        counted.is_some()
    }

    /// The nodes have lost the key: signals the loss, unless another thread was first. True when
    /// the observer is still to be notified.
    pub(crate) fn lose(&self, watched: &WatchedLock) -> bool {
        let mut schedule = lock(&self.shared.schedule);
        schedule.remove(watched.id) && watched.end(self.engine.lease_now())
    }
}

/// The thread, with what it works on.
struct WatchdogLoop {
    engine: Arc<Engine>,
    report: Reporter,
    shared: Arc<WatchdogShared>,
    batch: Batch,
    /// When to look next whether connections have ended.
    reconnect_at: Timestamp,
}

impl WatchdogLoop {
    fn run(mut self) {
        self.work();
        self.report_batch();
        // Where a callback on this thread has dropped the last handle, no other thread reports the
        // remaining events.
        report_last_events(&self.report, &self.engine);
        lock(&self.shared.schedule).has_ended = true;
        self.shared.noted.notify_all();
    }

    /// Calls back into the program, with the schedule free.
    fn report<'s>(
        &mut self,
        shared: &'s WatchdogShared,
        mut schedule: MutexGuard<'s, Schedule>,
        report: impl FnOnce(&mut WatchdogLoop),
    ) -> MutexGuard<'s, Schedule> {
        schedule.is_reporting = true;
        if schedule.closing {
            shared.noted.notify_all();
        }
        drop(schedule);
        report(self);
        schedule = lock(&shared.schedule);
        schedule.is_reporting = false;
        schedule
    }

    fn work(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut schedule = lock(&shared.schedule);
        while !schedule.closing {
            let now = self.engine.lease_now();
            self.batch.take_ended(&mut schedule, now);
            if !self.batch.lost.is_empty() {
                for watched in self.batch.lost.drain(..) {
                    let found = Finding::Lost(LossReason::LeaseEnded, watched.signal_loss());
                    self.batch.unreported.push((watched, found));
                }
                shared.noted.notify_all();
                schedule = self.report(&shared, schedule, WatchdogLoop::report_batch);
                continue;
            }
            let until_look = self.reconnect(&mut schedule);
            self.batch.take_due(&mut schedule, now);
            if self.batch.extending.is_empty() {
                if self.report.has_queued() || self.batch.has_reportable() {
                    schedule = self.report(&shared, schedule, WatchdogLoop::report_batch);
                    continue;
                }
                let sleep = schedule.renewals.next_at().since(now).min(until_look);
                schedule = shared
                    .changed
                    .wait_timeout(schedule, sleep)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                continue;
            }
            self.extend(schedule);
            schedule = self.report(&shared, lock(&shared.schedule), WatchdogLoop::report_batch);
        }
        // All that follows are callbacks.
        schedule.is_reporting = true;
        shared.noted.notify_all();
    }

    /// Once a second: connects again to nodes whose connections have ended. Where one has come back
    /// without its data, all locks are extended now, and repaired there: a third of a time to live
    /// may be long. Returns the time until it is to look again, [`CLOCK_CHECK_INTERVAL`] at most.
    fn reconnect(&mut self, schedule: &mut Schedule) -> Duration {
        if !schedule.locks.values().any(|watched| watched.is_extended()) {
            return CLOCK_CHECK_INTERVAL;
        }
        let now = self.engine.now();
        if now >= self.reconnect_at {
            let (returned, is_connecting) = self.engine.reconnect();
            let nap = if is_connecting {
                self.engine.node_timeout()
            } else {
                CLOCK_CHECK_INTERVAL
            };
            self.reconnect_at = now.after(nap);
            if !returned.is_empty() {
                schedule.renewals.hurry(self.engine.lease_now());
            }
        }
        self.reconnect_at.since(now).min(CLOCK_CHECK_INTERVAL)
    }

    /// Extends all leases that are due, in one batch. The schedule is released when they have been
    /// queued: a lock that is unregistered after that is released behind its extension.
    fn extend(&mut self, schedule: MutexGuard<'_, Schedule>) {
        let extending = std::mem::take(&mut self.batch.extending);
        let mut tickets = std::mem::take(&mut self.batch.tickets);
        // Unless the end of a lease is near, there is time to wait for all nodes, and to find those
        // that have lost a key.
        let is_long = schedule.renewals.next_end().since(self.engine.lease_now())
            > self.engine.node_timeout() * 2;
        let requests = extending.iter().map(|(watched, ttl)| watched.request(*ttl));
        let start = self.engine.begin_to_extend(requests, &mut tickets);
        drop(schedule);
        let mut stragglers = if is_long {
            Stragglers::AwaitedSince(start.steady)
        } else {
            Stragglers::LeftBehind
        };
        let answered_by = start.steady.after(self.engine.node_timeout());
        for ((watched, ttl), ticket) in extending.iter().zip(tickets.drain(..)) {
            let deadline = || {
                let next_end = lock(&self.shared.schedule).renewals.next_end();
                answered_by.min(self.engine.readings().steady_at(next_end))
            };
            let count = self.engine.extended(ticket, &mut stragglers, deadline);
            if let Some(found) = self.note(watched, *ttl, start.lease, count)
                && (self.report.is_observed() || matches!(found, Finding::Lost(..)))
            {
                self.batch.unreported.push((Arc::clone(watched), found));
            }
        }
        self.batch.extending = extending;
        self.batch.tickets = tickets;
    }

    /// Notes the result of an extension.
    fn note(
        &self,
        watched: &WatchedLock,
        ttl: Ttl,
        start: LeaseTime,
        count: RoundResult,
    ) -> Option<Finding> {
        let lease = ttl.lease_from(start);
        let now = self.engine.lease_now();
        let mut schedule = lock(&self.shared.schedule);
        if schedule.unregistering > 0 {
            // The waiting owners read the schedule when it is free.
            self.shared.noted.notify_all();
        }
        if count.is_extended() {
            let end = lock(&watched.held)
                .by_hand
                .on_automatic_extension(start, lease.end());
            let lease = Validity::until(end);
            let less_margin = watched.lease_less_margin(lease, ttl);
            let counted = schedule
                .renewals
                .renewed(watched.id, start, less_margin, now);
            if counted == Some(less_margin) {
                watched.renew(lease);
            }
            drop(schedule);
            counted?;
            // Threads of this client that wait for the lock go on to wait for its guard, and ask no
            // node.
            self.hold_until(watched, watched.lease().end());
            Some(Finding::Extended(
                ttl,
                self.repair(watched, ttl, count.tally.absent()),
            ))
        } else if !count.is_lost() {
            // A node that has not answered may have extended its key all the same. That lasts
            // longer than what is relied on: nothing shorter is ever sent after an extension by
            // hand.
            let is_held = schedule.renewals.failed(watched.id, now);
            is_held.then_some(Finding::Failed(count.faults))
        } else {
            // A quorum cannot hold the key any more, so the lock is gone, though its lease has not
            // ended.
            if !schedule.remove(watched.id) {
                return None;
            }
            let is_unreported = watched.end(now);
            drop(schedule);
            self.hold_until(watched, now);
            Some(Finding::Lost(LossReason::KeyGone, is_unreported))
        }
    }

    fn hold_until(&self, watched: &WatchedLock, end: LeaseTime) {
        if let Some(hold) = watched.hold {
            watched.local.hold_until(hold, end, self.engine.readings());
        }
    }

    /// Sets the key again on nodes that have lost it, and returns the nodes that may get it.
    fn repair(&self, watched: &WatchedLock, ttl: Ttl, nodes: NodeSet) -> NodeSet {
        if nodes.is_empty() {
            return NodeSet::EMPTY;
        }
        let mut held = lock(&watched.held);
        if held.is_over {
            return NodeSet::EMPTY;
        }
        let repaired = self.engine.repair(&watched.request(ttl), nodes);
        held.reached = held.reached.union(repaired);
        repaired
    }
}

impl Batch {
    /// Takes the locks that have ended out of the schedule.
    fn take_ended(&mut self, schedule: &mut Schedule, now: LeaseTime) {
        schedule.renewals.ended(now, &mut self.ended);
        self.lost.extend(
            self.ended
                .drain(..)
                .filter_map(|id| schedule.locks.remove(&id)),
        );
    }

    /// Collects what is to be extended now.
    fn take_due(&mut self, schedule: &mut Schedule, now: LeaseTime) {
        let Schedule {
            renewals, locks, ..
        } = schedule;
        renewals.due(now, BATCH, &mut self.due);
        self.extending.extend(self.due.drain(..).filter_map(|id| {
            let watched = locks.get(&id)?;
            let held = *lock(&watched.held);
            if held.by_hand.is_awaited() {
                renewals.failed(id, now);
                return None;
            }
            Some((Arc::clone(watched), held.ttl?))
        }));
    }
}
