//! A lock that is watched: what its guard and the watchdog's thread both see and change.
//!
//! Its state has a mutex of its own, which is held for a moment only, and while a repair is queued: so that goes before the
//! release on every connection, or not at all.

use crate::algorithm::fence::FencingToken;
use crate::algorithm::lease::{OwnerToken, Ttl, Validity};
use crate::algorithm::node::NodeSet;
use crate::algorithm::renewal::Id;
use crate::algorithm::time::LeaseTime;
use crate::engine::calls::{AttemptRecord, LeaseRequest};
use crate::engine::local_queue::HoldId;
use crate::os::sync::{Mutex, lock};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// A lock that is watched.
pub(crate) struct WatchedLock {
    pub(super) key: Arc<str>,
    /// Its entry in the local queue, if it is extended from here.
    pub(super) hold: Option<HoldId>,
    token: OwnerToken,
    fence: Option<FencingToken>,
    margin: Duration,
    pub(super) id: Id,
    pub(super) held: Mutex<Held>,
    loss: Sender<()>,
    lost: Receiver<()>,
    on_loss: Mutex<OnLoss>,
}

/// Who is called when the lock is lost. Never called with a mutex held.
enum OnLoss {
    Called,
    Waiting(Vec<Callback>),
}

/// What a program wants to be called.
pub(super) type Callback = Box<dyn FnOnce() + Send>;

/// What is held, as guard and thread agree on it.
#[derive(Clone, Copy)]
pub(super) struct Held {
    /// For how long it is extended: as asked for last. None when it is not extended.
    pub(super) ttl: Option<Ttl>,
    pub(super) reached: NodeSet,
    pub(super) lease: Validity,
    /// What nodes may go by that were asked by hand and have not answered: no extension that was sent before then makes the
    /// lock last longer.
    pub(super) asked: Option<(LeaseTime, Validity)>,
    /// The owner has left, or the loss was told.
    pub(super) over: bool,
    /// The observer has been told of the loss, or is about to be.
    pub(super) loss_reported: bool,
}

impl Held {
    /// Whether the owner waits for the answers to an extension by hand.
    pub(super) fn is_asked_by_hand(&self) -> bool {
        self.asked.is_some_and(|(start, _)| start == LeaseTime::NEVER)
    }
}

/// What the owner of a lock is left with.
pub(crate) struct Left {
    pub(crate) lease: Validity,
    pub(crate) reached: NodeSet,
    /// Whether the observer has been told that the lock is lost, or is about to be.
    pub(crate) loss_reported: bool,
}

impl WatchedLock {
    /// A lock that is held from now on: for so long, and extended by `ttl` if at all.
    pub(super) fn new(
        (key, hold): (&Arc<str>, Option<HoldId>),
        claim: &AttemptRecord,
        lease: Validity,
        ttl: Option<Ttl>,
        margin: Duration,
        id: Id,
    ) -> WatchedLock {
        let (loss, lost) = bounded(1);
        let loss_reported = lease == Validity::LOST;
        let held = Mutex::new(Held { ttl, reached: claim.reached, lease, asked: None, over: false, loss_reported });
        let on_loss = Mutex::new(OnLoss::Waiting(Vec::new()));
        let (key, token, fence) = (Arc::clone(key), claim.token, claim.fence.token());
        WatchedLock { key, hold, token, fence, margin, id, held, loss, lost, on_loss }
    }

    /// The lease as it is now.
    pub(crate) fn lease(&self) -> Validity {
        lock(&self.held).lease
    }

    /// A channel that brings one message when the lock is lost.
    pub(crate) fn lost(&self) -> Receiver<()> {
        self.lost.clone()
    }

    /// Has somebody called when the lock is lost; now, if that has been told.
    pub(crate) fn on_lost(&self, callback: Callback) {
        if let OnLoss::Waiting(callbacks) = &mut *lock(&self.on_loss) {
            return callbacks.push(callback);
        }
        call(callback);
    }

    /// Calls those who want to be called, once. The loss has been told on the channel, and no mutex is held.
    pub(crate) fn call_back(&self) {
        let on_loss = std::mem::replace(&mut *lock(&self.on_loss), OnLoss::Called);
        if let OnLoss::Waiting(callbacks) = on_loss {
            callbacks.into_iter().for_each(call);
        }
    }

    /// Whether the lock is lost, or its owner has left.
    pub(crate) fn is_over(&self) -> bool {
        lock(&self.held).over
    }

    /// Goes by another lease. The caller holds the schedule, and the lock is in it: so it is not over.
    pub(super) fn renew(&self, lease: Validity) {
        let mut held = lock(&self.held);
        debug_assert!(!held.over, "a lock that is over has left the schedule");
        held.lease = lease;
    }

    /// The owner has asked at `start`, and it is not known what came of it.
    pub(crate) fn asked(&self, start: LeaseTime, ttl: Ttl) {
        lock(&self.held).asked = Some((start, ttl.lease_from(start)));
    }

    /// The lease of an extension that was sent at `start`, as far as nodes that were asked by hand since allow it.
    pub(super) fn allowed(&self, start: LeaseTime, lease: Validity) -> Validity {
        match lock(&self.held).asked {
            Some((asked_at, other)) if start <= asked_at && other.end() < lease.end() => other,
            _ => lease,
        }
    }

    /// The lease as the schedule has it: it ends earlier, by the margin.
    pub(super) fn short(&self, lease: Validity, ttl: Ttl) -> Validity {
        Validity::until(lease.end().before(self.margin.min(ttl.validity() / 2)))
    }

    pub(super) fn order(&self, ttl: Ttl) -> LeaseRequest<'_> {
        LeaseRequest { key: self.key.as_bytes(), token: &self.token, ttl_millis: ttl.millis(), fence: self.fence }
    }

    /// Whatever its lease says, the lock is gone. True as by [`tell_loss`](WatchedLock::tell_loss).
    pub(super) fn end(&self, now: LeaseTime) -> bool {
        {
            let mut held = lock(&self.held);
            (held.lease, held.over) = (Validity::until(now), true);
        }
        self.tell_loss()
    }

    /// Tells the owner that the lock is lost. The caller has taken it out of the schedule and holds that still: whoever has left
    /// is told nothing. True when the observer is still to be told.
    pub(super) fn tell_loss(&self) -> bool {
        let mut held = lock(&self.held);
        held.over = true;
        let loss_reported = std::mem::replace(&mut held.loss_reported, true);
        drop(held);
        // There is room for one, and nobody else sends.
        let _ = self.loss.try_send(());
        !loss_reported
    }
}

/// Calls, and lets no panic come back.
fn call(callback: Callback) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(callback)) {
        // What was thrown may throw again when it goes.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(panic))).map_err(std::mem::forget);
    }
}
