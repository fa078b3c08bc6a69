//! A lock of any kind that is held: how long it is valid, and how it is extended. Dropping it
//! releases the lock.

mod release;
mod watching;

use crate::algorithm::kind::Kind;
use crate::algorithm::lease::{Ttl, Validity};
use crate::algorithm::node::NodeSet;
use crate::algorithm::time::{LeaseTime, Readings, Timestamp};
use crate::api::client::Client;
use crate::api::watchdog::Watchdog;
use crate::engine::calls::{AttemptRecord, AttemptRequest, InTurn, LeaseRequest};
use crate::engine::local_queue::{HoldId, LocalLock, Unavailability};
use crate::engine::watchdog_thread::WatchedLock;
use crate::events::error::{Error, Result, config_error};
use crate::events::event::LossReason;
use crate::events::extension::ExtendOutcome;
use crate::events::spans::{HoldOutcome, HoldSpan};
use crate::os::occupancy::{Free, InCallback, InUse, Occupancy};
use crate::os::sync::{Mutex, lock};
use crate::protocol::lock_key::LockKey;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A lock that was taken, until it is released or its lease ends.
///
/// In a child made by `fork` it is the parent's: nothing is left of it there, and dropping it
/// releases nothing.
pub(crate) struct HeldLock {
    pub(crate) client: Client,
    local: LocalLock,
    claim: AttemptRecord,
    state: Mutex<HeldState>,
    /// Which thread extends the lock.
    pub(crate) occupancy: Occupancy,
    watched: OnceLock<Arc<WatchedLock>>,
    /// None for a reader: each guard that shares the lock has one of its own.
    pub(crate) span: HoldSpan,
}

/// What an extension changes. Its mutex is held for a moment only: nothing is sent and no callback
/// runs meanwhile.
struct HeldState {
    /// The lease since the lock was taken or extended by hand. For a watched lock, the watchdog's
    /// thread has it.
    lease: Validity,
    /// The longest that the lock can last from now on unless it is extended by hand, in
    /// milliseconds. Zero when it has been released, or detached.
    lasts: u64,
    /// The longest time to live that any node may have been asked for, in milliseconds.
    longest: u64,
    /// The nodes that may have the key.
    reached: NodeSet,
    /// Until when the lock is kept, however early it is released.
    kept_until: LeaseTime,
}

impl HeldLock {
    pub(crate) fn new(
        client: Client,
        local: LocalLock,
        claim: AttemptRecord,
        lease: Validity,
        ttl: Ttl,
        span: HoldSpan,
    ) -> HeldLock {
        let state = Mutex::new(HeldState {
            lease,
            lasts: ttl.millis(),
            longest: ttl.millis(),
            reached: claim.reached,
            kept_until: LeaseTime::ORIGIN,
        });
        if claim.kind == Kind::Read {
            client.shutdown.begin_read();
        }
        HeldLock {
            client,
            local,
            claim,
            state,
            occupancy: Occupancy::default(),
            watched: OnceLock::new(),
            span,
        }
    }

    /// The watchdog's thread has its lease, if it is watched.
    pub(crate) fn watched(mut self, watched: Option<Arc<WatchedLock>>) -> HeldLock {
        if let Some(watched) = watched {
            self.watched = OnceLock::from(watched);
            self.end_span_on_loss();
        }
        self
    }

    /// Keeps the lock until then, however early it is released.
    pub(crate) fn keep_until(&self, end: LeaseTime) {
        let mut state = lock(&self.state);
        state.kept_until = state.kept_until.max(end);
    }

    pub(crate) fn key(&self) -> &LockKey {
        self.local.key()
    }

    /// The name of the lock, without the prefix.
    pub(crate) fn name(&self) -> &str {
        self.client.resource(self.key().title())
    }

    /// What kind of lock it is, with the number of the acquisition if it is fenced.
    pub(crate) fn kind(&self) -> Kind {
        self.claim.kind
    }

    /// What names the lock in the local queue.
    pub(crate) fn hold_id(&self) -> HoldId {
        HoldId::of(&self.claim.token)
    }

    /// When the attempt began that has acquired the lock.
    pub(crate) fn taken_at(&self) -> Timestamp {
        self.claim.t0.steady
    }

    /// How long the lease can still be relied on.
    pub(crate) fn remaining(&self) -> Duration {
        if self.client.is_inherited() {
            return Duration::ZERO;
        }
        self.lease().remaining(self.client.engine.lease_now())
    }

    /// Fails unless the lease lasts for this long.
    pub(crate) fn ensure(&self, remaining: Duration) -> Result<()> {
        self.client.check_process()?;
        let left = self.remaining();
        if left.is_zero() || self.is_lost() {
            Err(Error::lease_lost(self.name()))
        } else if left < remaining {
            Err(Error::lease_too_short(self.name(), left, remaining))
        } else {
            Ok(())
        }
    }

    /// Whether the lease has ended, or the loss of the lock was signalled.
    pub(crate) fn is_over(&self) -> bool {
        self.remaining().is_zero() || self.is_lost()
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.watched.get().is_some()
    }

    /// Whether the loss of the lock was signalled.
    pub(crate) fn is_lost(&self) -> bool {
        self.watched.get().is_some_and(|watched| watched.is_over())
    }

    /// How the hold has ended without a release, if it has.
    pub(crate) fn loss(&self) -> Option<HoldOutcome> {
        if self.client.is_inherited() {
            None
        } else if self.is_lost() || self.lease() == Validity::LOST {
            Some(HoldOutcome::Lost)
        } else if self.remaining().is_zero() {
            Some(HoldOutcome::Expired)
        } else {
            None
        }
    }

    /// The time to live that the lease was last set to by a call; zero when the lock was released
    /// or detached.
    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_millis(lock(&self.state).lasts)
    }

    /// Makes the lock last for at least `ttl` from now on. Other threads that do so wait meanwhile.
    pub(crate) fn extend(&self, ttl: Duration) -> Result<ExtendOutcome> {
        self.try_extend(ttl).map(|found| match found {
            ExtendResult::Extended(_) => ExtendOutcome::Extended,
            ExtendResult::Failed(found) => ExtendOutcome::Failed(found.causes),
            ExtendResult::Lost(_) => ExtendOutcome::Lost,
        })
    }

    /// Extends the lock, or returns why that failed.
    pub(crate) fn extend_or_fail(&self, ttl: Duration) -> Result<()> {
        match self.try_extend(ttl)? {
            ExtendResult::Extended(_) => Ok(()),
            ExtendResult::Failed(found) => {
                Err(self.client.unavailable("extend", self.name(), found))
            }
            ExtendResult::Lost(_) => Err(Error::lease_lost(self.name())),
        }
    }

    fn try_extend(&self, ttl: Duration) -> Result<ExtendResult> {
        let _in_use = self.enter()?;
        let ttl = self.client.checked_ttl(ttl)?;
        // Whatever else relies on a longer lease: an extension never shortens it.
        Ok(self
            .begin_extend(ttl)
            .map_or(ExtendResult::Extended(NodeSet::EMPTY), |begun| {
                self.extend_to(ttl, begun)
            }))
    }

    /// When an extension begins; none if the lock lasts for that long already.
    fn begin_extend(&self, ttl: Ttl) -> Option<LeaseTime> {
        if let Some(watched) = self.watched.get() {
            return self.client.watchdog_thread.begin_extend(watched, ttl);
        }
        let now = self.client.engine.lease_now();
        (self.lease().end() < ttl.lease_from(now).end()).then_some(now)
    }

    /// Waits until no other thread extends the lock or registers something for its loss.
    ///
    /// # Errors
    /// This thread does.
    pub(crate) fn at_rest(&self) -> Result<Free<'_>> {
        self.occupancy.free().map_err(in_callback)
    }

    /// Has no other thread extend the lock, or register something for its loss, while the result
    /// exists.
    fn enter(&self) -> Result<InUse<'_>> {
        self.client.check_process()?;
        Ok(self.at_rest()?.enter())
    }

    /// Asks the nodes to let the lock last for `ttl`, by an extension that has begun, and reports
    /// what they replied.
    fn extend_to(&self, ttl: Ttl, begun: LeaseTime) -> ExtendResult {
        let found = self.extend_by(ttl, begun);
        let is_reported_here = if let ExtendResult::Lost(reason) = &found {
            self.lose(*reason)
        } else {
            true
        };
        // Threads of this client that wait for it may have to wait less, or longer.
        let hold = self.hold_id();
        let now = self.client.engine.readings();
        self.local.hold_until(hold, self.lease().end(), now);
        let report = &self.client.report;
        let key = self.key().title();
        match &found {
            ExtendResult::Extended(repaired) => {
                report.extended(key, ttl.duration(), false, *repaired);
            }
            ExtendResult::Failed(found) => {
                report.extension_failed(key, false, || self.remaining(), |_| found.causes.clone());
            }
            ExtendResult::Lost(reason) => {
                report.extension_lost(key, false);
                if is_reported_here {
                    report.lost(key, *reason, self.held_at(now));
                }
            }
        }
        found
    }

    fn extend_by(&self, ttl: Ttl, begun: LeaseTime) -> ExtendResult {
        const ENDED: ExtendResult = ExtendResult::Lost(LossReason::LeaseEnded);
        if self.is_lost() || !self.lease().is_valid(begun) {
            return ENDED;
        }
        // A node may do it though its answer never comes, or go by an earlier one because this one
        // never reaches it.
        self.may_last(ttl);
        let engine = &self.client.engine;
        let old = self.lease();
        let order = LeaseRequest {
            key: self.key(),
            token: &self.claim.token,
            ttl_millis: ttl.millis(),
            kind: self.claim.kind,
        };
        // Unless the end is near, there is time to wait for all nodes, and to find those that have
        // lost the key.
        let is_long = old.remaining(begun) > engine.node_timeout() * 2;
        let (start, count) = engine.extend(&order, is_long);
        let now = engine.lease_now();
        if count.is_extended() && old.is_valid(now) {
            let repaired = engine.repair(&order, count.tally.absent());
            self.may_reach(repaired);
            return if self.rely_on(start, ttl) {
                ExtendResult::Extended(repaired)
            } else {
                ENDED
            };
        }
        if count.is_lost() {
            return ExtendResult::Lost(LossReason::KeyGone);
        }
        // A renewal meanwhile was relied on for no longer than this asks for, so the lease ends by
        // then.
        debug_assert!(self.lease().end() <= ttl.lease_from(start).end());
        if let Some(watched) = self.watched.get() {
            watched.on_unanswered(start);
        }
        if self.lease().is_valid(now) {
            ExtendResult::Failed(self.client.unavailability(&count))
        } else {
            ENDED
        }
    }

    /// Asks the nodes for a lock that is held, as for a new one, and returns when that was and when
    /// they had answered. None when they did not grant it by then, or the lease has ended. No other
    /// thread may extend the lock.
    pub(crate) fn ask_again(&self, ttl: Ttl, until: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let engine = &self.client.engine;
        let kind = self.claim.kind;
        if self.is_lost() || !self.lease().is_valid(engine.lease_now()) {
            return None;
        }
        // A node may grant it though its answer never comes.
        self.may_last(ttl);
        let timeout = engine.node_timeout();
        let deadline = |t0: Timestamp, connects: bool| {
            t0.after(timeout * (1 + u32::from(connects))).min(until)
        };
        let key = self.key().clone();
        let token = self.claim.token.clone();
        let in_turn = Some(InTurn::AS_A_NEWCOMER);
        let request = AttemptRequest {
            key,
            token,
            ttl_millis: ttl.millis(),
            kind,
            in_turn,
        };
        let (record, result) = engine.acquire(request, None, deadline);
        self.may_reach(record.reached);
        let Readings {
            steady: answered_at,
            lease: now,
        } = engine.readings();
        let is_won = result.is_won()
            && self.lease().is_valid(now)
            && ttl.lease_from(record.t0.lease).is_valid(now);
        (is_won && self.rely_on(record.t0.lease, ttl)).then_some((record.t0.steady, answered_at))
    }

    /// Makes the lock of a writer one of a reader, and extends it as such. It counts as a reader's
    /// from the first byte that is sent for that, whichever nodes answer.
    pub(crate) fn downgrade(mut self, ttl: Ttl, watchdog: Option<&Watchdog>) -> Result<HeldLock> {
        self.client.check_process()?;
        // No extension of the writer is sent from here on, and a node refuses one that is on its
        // way.
        let left = self.leave_watch();
        self.watched = OnceLock::new();
        let lease = if left.loss_reported {
            Validity::LOST
        } else {
            left.lease
        };
        let mut state = lock(&self.state);
        (state.lease, state.reached) = (lease, left.reached);
        drop(state);
        if left.loss_reported {
            return Err(Error::lease_lost(self.name()));
        }
        self.claim.kind = Kind::Read;
        self.client.shutdown.begin_read();
        // A lease that was extended for longer is not cut short.
        let longest = Duration::from_millis(lock(&self.state).longest);
        let least = if self.remaining() > ttl.validity() {
            self.client.checked_ttl(longest)?
        } else {
            ttl
        };
        let outcome = self.extend_to(least, self.client.engine.lease_now());
        // Behind the extension, on each connection: the writer's entry goes, if it has one, and
        // readers are told.
        let entry = self.claim.departure.take().map(|departure| departure.entry);
        let reached = lock(&self.state).reached;
        for entry in entry.map(Some).into_iter().chain([None]) {
            self.client
                .engine
                .leave(&self.key().each()[0], self.claim.kind, entry, reached);
        }
        if let ExtendResult::Lost(_) = outcome {
            return Err(Error::lease_lost(self.name()));
        }
        if let Some(watchdog) = watchdog {
            self.extend_automatically(watchdog, ttl)?;
        }
        // The lease may have ended while an observer ran.
        self.ensure(Duration::ZERO)?;
        Ok(self)
    }

    pub(crate) fn lease(&self) -> Validity {
        self.watched
            .get()
            .map_or_else(|| lock(&self.state).lease, |watched| watched.lease())
    }

    /// A node may let the key last for so long from now on.
    fn may_last(&self, ttl: Ttl) {
        let mut state = lock(&self.state);
        state.longest = state.longest.max(ttl.millis());
    }

    /// These nodes may have the key, too.
    fn may_reach(&self, nodes: NodeSet) {
        let mut state = lock(&self.state);
        state.reached = state.reached.union(nodes);
    }

    /// Relies on the lease of an extension that was begun at `start`. False when the loss of the
    /// lock has been signalled.
    fn rely_on(&self, start: LeaseTime, ttl: Ttl) -> bool {
        lock(&self.state).lasts = ttl.millis();
        match self.watched.get() {
            Some(watched) => self.client.watchdog_thread.extended(watched, start, ttl),
            None => {
                lock(&self.state).lease = ttl.lease_from(start);
                true
            }
        }
    }

    /// Ends a lock that is lost. True when the caller is to report it to the observer.
    fn lose(&self, reason: LossReason) -> bool {
        match self.watched.get() {
            Some(watched) if reason == LossReason::KeyGone => {
                let is_untold = self.client.watchdog_thread.lose(watched);
                watched.run_loss_callbacks();
                is_untold
            }
            // The watchdog's thread reports its end.
            Some(_) => false,
            None => {
                self.span.end(HoldOutcome::Lost);
                std::mem::replace(&mut lock(&self.state).lease, Validity::LOST) != Validity::LOST
            }
        }
    }

    /// How long the lock has been held.
    fn held_at(&self, now: Readings) -> Duration {
        now.steady.since(self.claim.t0.steady)
    }
}

/// A callback of the lock's own extension uses it.
pub(crate) fn in_callback(_: InCallback) -> Error {
    config_error("a lock is used by a callback of its own extension")
}

/// What an extension has achieved.
enum ExtendResult {
    /// The key is being set again on these nodes.
    Extended(NodeSet),
    Failed(Unavailability),
    Lost(LossReason),
}
