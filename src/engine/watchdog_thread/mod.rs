//! The thread that extends locks automatically and tells their loss, one for each client that needs it.
//!
//! ```text
//!   guard ── watch ──► schedule ──► thread: ended? tell it. due? one batch: extend, wait, note, repair.
//!         ◄─ lease ───  leases
//!         ── leave ──►  (lock state first, then the wire)
//! ```
//!
//! A lock that is watched has its lease here, where guard and thread both see it. Invariants:
//! 1. Whoever wants to release a lock leaves first. From then on nothing more is sent for it from here: a batch is queued
//!    while the schedule is held, and a repair while the lock's own state is, so they go before the release on every
//!    connection, or not at all. Whoever lets go of a lock *without* releasing it parts from it, which waits for what comes
//!    of an extension in flight: it must not overtake what the next holder asks for.
//! 2. A loss is told once: by whoever takes the lock out of the schedule, while the schedule is held, and not if its owner was
//!    first.
//! 3. A lease changes in the schedule and in the lock's own state at once, with the schedule held, and so do those who take
//!    turns in extending it.
//! 4. The schedule goes by leases that end earlier than they really do, by the margin, and a batch waits for no answer
//!    longer than the first of them lasts. So a loss is told before the end, also when nodes hang.
//! 5. The observer and other callbacks are called when no mutex is held, and when all that a batch has brought has been noted.
//! 6. The thread tells what it has found itself before anything else. What the network has noted it tells one event at a
//!    time, and looks at the schedule after each.

// Named, because a model check includes this file from elsewhere.
mod watched;

use crate::algorithm::fault::Fault;
use crate::algorithm::lease::{Ttl, Validity};
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::renewal::{Id, RenewalConfig, Renewals};
use crate::algorithm::time::LeaseTime;
use crate::engine::calls::{AttemptRecord, Engine, RoundResult, Stragglers};
use crate::engine::local_queue::{HoldId, Queues};
use crate::events::event::LossReason;
use crate::events::report::Reporter;
use crate::os::sync::{Condvar, JoinHandle, Mutex, MutexGuard, is_current, lock, spawn};
use crate::protocol::session::Ticket;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
pub(crate) use watched::{Left, WatchedLock};

/// Most locks that are extended in one batch: little, so that other requests are not kept waiting behind it.
const BATCH: usize = 512;
/// Longest sleep. A machine that was suspended wakes up without the time having passed for whoever sleeps.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// The locks of one client that are watched.
pub(crate) struct WatchdogThread {
    engine: Arc<Engine>,
    queues: Arc<Queues>,
    report: Reporter,
    shared: Arc<Shared>,
}

struct Shared {
    schedule: Mutex<Schedule>,
    /// Rung when the schedule has something earlier, or the end has come.
    changed: Condvar,
    /// Rung when no extension of some lock is in flight any more.
    noted: Condvar,
}

#[derive(Default)]
struct Schedule {
    renewals: Renewals,
    locks: HashMap<Id, Arc<WatchedLock>>,
    thread: Option<JoinHandle<()>>,
    /// How many owners wait for what comes of an extension.
    parting: usize,
    closing: bool,
}

impl Schedule {
    /// Takes a lock out; false when somebody was first.
    fn remove(&mut self, id: Id) -> bool {
        self.locks.remove(&id);
        self.renewals.remove(id)
    }
}

/// How a lock is extended automatically.
#[derive(Clone, Copy)]
pub(crate) struct AutomaticExtension {
    pub(crate) ttl: Ttl,
    pub(crate) hold: HoldId,
    pub(crate) terms: RenewalConfig,
    /// How long before the end of its validity the lock is reported lost.
    pub(crate) margin: Duration,
}

impl WatchdogThread {
    pub(crate) fn new(engine: Arc<Engine>, queues: Arc<Queues>, report: Reporter) -> WatchdogThread {
        let shared = Shared { schedule: Mutex::default(), changed: Condvar::new(), noted: Condvar::new() };
        WatchdogThread { engine, queues, report, shared: Arc::new(shared) }
    }

    /// Starts the thread, unless it runs.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(&self) -> io::Result<()> {
        let mut schedule = lock(&self.shared.schedule);
        if schedule.thread.is_none() {
            let (engine, queues) = (Arc::clone(&self.engine), Arc::clone(&self.queues));
            let (report, shared) = (self.report.without_queued(), Arc::clone(&self.shared));
            let thread = Thread { engine, queues, report, shared, batch: Batch::default() };
            schedule.thread = Some(spawn("quorumlock watchdog", move || thread.run())?);
        }
        Ok(())
    }

    /// Watches a lock from now on: extends it, or only tells its loss. The thread must have been
    /// [`start`](WatchdogThread::start)ed.
    pub(crate) fn watch(
        &self,
        key: &Arc<str>,
        claim: &AttemptRecord,
        lease: Validity,
        extension: Option<AutomaticExtension>,
    ) -> Arc<WatchedLock> {
        let (ttl, hold) = extension.map(|extension| (extension.ttl, extension.hold)).unzip();
        let margin = extension.map_or(Duration::ZERO, |extension| extension.margin);
        let terms = extension.map_or(RenewalConfig::NEVER, |extension| extension.terms);
        let mut schedule = lock(&self.shared.schedule);
        let next_at = schedule.renewals.next_at();
        let now = self.engine.lease_now();
        // Of a lease that was attached late, the margin leaves half.
        let margin = margin.min(lease.remaining(now) / 2);
        let short = Validity::until(lease.end().before(margin));
        let id = schedule.renewals.insert(terms, claim.t0.lease, short, now);
        let watched = Arc::new(WatchedLock::new((key, hold), claim, lease, ttl, margin, id));
        schedule.locks.insert(id, Arc::clone(&watched));
        // Something that is overdue was made so by a step of the clock, of which the thread does not know in its sleep.
        if schedule.renewals.next_at() < next_at || next_at <= now {
            self.shared.changed.notify_one();
        }
        watched
    }

    /// The owner is about to release the lock: from now on nothing is sent for it. Gives what is held.
    pub(crate) fn leave(&self, watched: &WatchedLock) -> Left {
        let was_there = lock(&self.shared.schedule).remove(watched.id);
        let mut held = lock(&watched.held);
        held.over = true;
        Left { lease: held.lease, reached: held.reached, loss_reported: held.loss_reported || !was_there }
    }

    /// The owner is about to let go of the lock without releasing it: nothing is sent for it any more, and a quorum
    /// has answered what was sent, or did not in time. Gives the lease, ended if the loss of the lock was told.
    pub(crate) fn part(&self, watched: &WatchedLock) -> Validity {
        let mut schedule = lock(&self.shared.schedule);
        let deadline = self.engine.now().after(self.engine.node_timeout() * 2);
        schedule.parting += 1;
        while schedule.renewals.is_in_flight(watched.id)
            && let patience = deadline.since(self.engine.now())
            && !patience.is_zero()
        {
            schedule = self.shared.noted.wait_timeout(schedule, patience).unwrap_or_else(PoisonError::into_inner).0;
        }
        schedule.parting -= 1;
        let is_held = schedule.remove(watched.id);
        drop(schedule);
        let mut held = lock(&watched.held);
        held.over = true;
        if is_held { held.lease } else { Validity::until(self.engine.lease_now()) }
    }

    /// The owner is about to extend the lock by hand, and goes on from the time that is given. Until it is known what came of
    /// that, nothing is sent from here: nodes go by what they are asked last.
    pub(crate) fn ask(&self, watched: &WatchedLock, ttl: Ttl) -> LeaseTime {
        // While the thread sends, it holds this: what it has sent was sent before.
        let _schedule = lock(&self.shared.schedule);
        let now = self.engine.lease_now();
        lock(&watched.held).asked = Some((LeaseTime::NEVER, ttl.lease_from(now)));
        now
    }

    /// The owner has extended the lock by hand, at `start`, and so it is extended from now on. False when its loss has been
    /// told.
    pub(crate) fn extended(&self, watched: &WatchedLock, start: LeaseTime, ttl: Ttl) -> bool {
        let (lease, now) = (ttl.lease_from(start), self.engine.lease_now());
        let short = watched.short(lease, ttl);
        let mut schedule = lock(&self.shared.schedule);
        let counted = schedule.renewals.extended(watched.id, start, short, now);
        self.shared.changed.notify_one();
        {
            let mut held = lock(&watched.held);
            held.ttl = held.ttl.and(Some(ttl));
            held.asked = None;
        }
        if counted == Some(short) {
            watched.renew(lease);
        }
        counted.is_some()
    }

    /// Nodes say that the lock is gone: tells its loss, unless somebody was first. True when the observer is still to be told.
    pub(crate) fn lose(&self, watched: &WatchedLock) -> bool {
        let mut schedule = lock(&self.shared.schedule);
        schedule.remove(watched.id) && watched.end(self.engine.lease_now())
    }
}

impl Drop for WatchdogThread {
    /// Ends the thread, and waits for that: for the answers to its last batch at most.
    fn drop(&mut self) {
        let thread = {
            let mut schedule = lock(&self.shared.schedule);
            schedule.closing = true;
            schedule.thread.take()
        };
        self.shared.changed.notify_one();
        // A callback of the observer may let go of the last handle, on that very thread. It ends when it comes back.
        if let Some(thread) = thread.filter(|thread| !is_current(thread)) {
            // It does not panic; and if it did, this would not be the place to pass that on.
            let _ = thread.join();
        }
        tell_last_news(&self.report, &self.engine);
    }
}

/// What the thread works on, kept for its memory.
struct Thread {
    engine: Arc<Engine>,
    queues: Arc<Queues>,
    report: Reporter,
    shared: Arc<Shared>,
    batch: Batch,
}

#[derive(Default)]
struct Batch {
    ended: Vec<Id>,
    due: Vec<Id>,
    lost: Vec<Arc<WatchedLock>>,
    extending: Vec<(Arc<WatchedLock>, Ttl)>,
    tickets: Vec<Ticket>,
    untold: Vec<(Arc<WatchedLock>, Found)>,
}

/// What the observer is to be told of a lock.
enum Found {
    /// For so long; the key is being set again on these nodes.
    Extended(Ttl, NodeSet),
    Failed(Vec<(NodeId, Fault)>),
    /// And whether the observer is still to be told; others who want to be called are.
    Lost(LossReason, bool),
}

impl Thread {
    fn run(mut self) {
        self.work();
        // Where a callback on this thread has let go of the last handle, no other thread tells what is left.
        tell_last_news(&self.report, &self.engine);
    }

    fn work(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut schedule = lock(&shared.schedule);
        while !schedule.closing {
            let now = self.engine.lease_now();
            self.batch.take_ended(&mut schedule, now);
            if !self.batch.lost.is_empty() {
                for watched in self.batch.lost.drain(..) {
                    let found = Found::Lost(LossReason::LeaseEnded, watched.tell_loss());
                    self.batch.untold.push((watched, found));
                }
                shared.noted.notify_all();
                drop(schedule);
                self.tell();
                schedule = lock(&shared.schedule);
                continue;
            }
            self.batch.take_due(&mut schedule, now);
            if self.batch.extending.is_empty() {
                if self.report.has_queued() {
                    drop(schedule);
                    self.report.deliver_at_most(1);
                    schedule = lock(&shared.schedule);
                    continue;
                }
                let sleep = schedule.renewals.next_at().since(now).min(LONGEST_SLEEP);
                schedule = shared.changed.wait_timeout(schedule, sleep).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            self.extend(schedule);
            self.tell();
            schedule = lock(&shared.schedule);
        }
    }

    /// Tells the observer, and those who want to be called, what was found.
    fn tell(&mut self) {
        for (watched, found) in self.batch.untold.drain(..) {
            let (report, key) = (&self.report, &watched.key);
            match found {
                Found::Extended(ttl, repaired) => report.extended(key, ttl.duration(), true, repaired),
                Found::Failed(faults) => {
                    report.renewal_failed(key, watched.lease().remaining(self.engine.lease_now()), &faults);
                }
                Found::Lost(reason, is_untold) => {
                    watched.call_back();
                    if is_untold {
                        report.lost(key, reason);
                    }
                }
            }
        }
        self.report.deliver_at_most(1);
    }

    /// Extends all that are due, in one batch. The schedule is let go when they have been queued: whoever leaves after that
    /// releases behind them.
    fn extend(&mut self, schedule: MutexGuard<'_, Schedule>) {
        let extending = std::mem::take(&mut self.batch.extending);
        let mut tickets = std::mem::take(&mut self.batch.tickets);
        // There is time to wait for everybody, and to learn who has lost a key, unless the end of a lock is near.
        let is_long = schedule.renewals.next_end().since(self.engine.lease_now()) > self.engine.node_timeout() * 2;
        let orders = extending.iter().map(|(watched, ttl)| watched.order(*ttl));
        let start = self.engine.begin_to_extend(orders, &mut tickets);
        drop(schedule);
        let mut stragglers = if is_long { Stragglers::AwaitedSince(start.steady) } else { Stragglers::LeftBehind };
        let answered_by = start.steady.after(self.engine.node_timeout());
        for ((watched, ttl), ticket) in extending.iter().zip(tickets.drain(..)) {
            let deadline = || {
                let next_end = lock(&self.shared.schedule).renewals.next_end();
                answered_by.min(self.engine.readings().steady_at(next_end))
            };
            let count = self.engine.extended(ticket, &mut stragglers, deadline);
            if let Some(found) = self.note(watched, *ttl, start.lease, count)
                && (self.report.is_observed() || matches!(found, Found::Lost(..)))
            {
                self.batch.untold.push((Arc::clone(watched), found));
            }
        }
        (self.batch.extending, self.batch.tickets) = (extending, tickets);
        self.batch.extending.clear();
    }

    /// Takes in how an extension went.
    fn note(&self, watched: &WatchedLock, ttl: Ttl, start: LeaseTime, count: RoundResult) -> Option<Found> {
        let lease = ttl.lease_from(start);
        let now = self.engine.lease_now();
        let mut schedule = lock(&self.shared.schedule);
        if schedule.parting > 0 {
            // They look when the schedule is free.
            self.shared.noted.notify_all();
        }
        if count.is_extended() {
            let lease = watched.allowed(start, lease);
            let short = watched.short(lease, ttl);
            let counted = schedule.renewals.renewed(watched.id, start, short, now);
            if counted == Some(short) {
                watched.renew(lease);
            }
            drop(schedule);
            counted?;
            // Threads of this client that wait for it go on to wait for its guard, and ask nobody.
            self.hold_until(watched, watched.lease().end());
            Some(Found::Extended(ttl, self.repair(watched, ttl, count.tally.absent())))
        } else if !count.is_lost() {
            // Nodes that have not answered may go by it all the same. It lasts longer than what is relied on: nothing shorter is
            // ever sent after an extension by hand.
            let is_held = schedule.renewals.failed(watched.id, now);
            is_held.then_some(Found::Failed(count.faults))
        } else {
            // A quorum cannot hold the key any more: whatever the clock says, the lock is gone.
            if !schedule.remove(watched.id) {
                return None;
            }
            let is_untold = watched.end(now);
            drop(schedule);
            self.hold_until(watched, now);
            Some(Found::Lost(LossReason::KeyGone, is_untold))
        }
    }

    fn hold_until(&self, watched: &WatchedLock, end: LeaseTime) {
        if let Some(hold) = watched.hold {
            self.queues.hold_until(&watched.key, hold, end, self.engine.readings());
        }
    }

    /// Sets the key again on nodes that have lost it, and gives those that it may reach.
    fn repair(&self, watched: &WatchedLock, ttl: Ttl, nodes: NodeSet) -> NodeSet {
        if nodes.is_empty() {
            return NodeSet::EMPTY;
        }
        let mut held = lock(&watched.held);
        if held.over {
            return NodeSet::EMPTY;
        }
        let repaired = self.engine.repair(&watched.order(ttl), nodes);
        held.reached = held.reached.union(repaired);
        repaired
    }
}

/// Tells what is left when the client ends, for a node timeout at most: so long it may wait for its last releases as well.
fn tell_last_news(report: &Reporter, engine: &Engine) {
    let deadline = engine.now().after(engine.node_timeout());
    report.deliver_last(|| engine.now() < deadline);
}

impl Batch {
    /// Takes the locks that have ended out of the schedule.
    fn take_ended(&mut self, schedule: &mut Schedule, now: LeaseTime) {
        schedule.renewals.ended(now, &mut self.ended);
        self.lost.extend(self.ended.drain(..).filter_map(|id| schedule.locks.remove(&id)));
    }

    /// Takes down what is to be extended now.
    fn take_due(&mut self, schedule: &mut Schedule, now: LeaseTime) {
        let Schedule { renewals, locks, .. } = schedule;
        renewals.due(now, BATCH, &mut self.due);
        self.extending.extend(self.due.drain(..).filter_map(|id| {
            let watched = locks.get(&id)?;
            let held = *lock(&watched.held);
            if held.is_asked_by_hand() {
                renewals.failed(id, now);
                return None;
            }
            Some((Arc::clone(watched), held.ttl?))
        }));
    }
}
