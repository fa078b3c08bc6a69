//! A lock that is watched: what its guard and the watchdog's thread both see and change.
//!
//! Its state has a mutex of its own, which is held for a moment only, and while a repair is queued.
//! So a repair goes before the release on every connection, or not at all.

use crate::algorithm::kind::Kind;
use crate::algorithm::lease::{OwnerToken, Ttl, Validity};
use crate::algorithm::node::NodeSet;
use crate::algorithm::renewal::by_hand::ExtensionsByHand;
use crate::algorithm::renewal::{LeaseId, RenewalConfig};
use crate::algorithm::time::{LeaseTime, Timestamp};
use crate::engine::calls::{AttemptRecord, LeaseRequest};
use crate::engine::local_queue::{HoldId, LocalLock};
use crate::os::caught::caught;
use crate::os::sync::{Mutex, lock};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::time::Duration;

/// A lock that is watched.
pub(crate) struct WatchedLock {
    pub(super) local: LocalLock,
    /// Its entry in the local queue, if it is extended from here.
    pub(super) hold: Option<HoldId>,
    token: OwnerToken,
    pub(super) kind: Kind,
    /// When the attempt began that acquired the lock.
    pub(super) held_since: Timestamp,
    margin: Duration,
    pub(super) id: LeaseId,
    pub(super) held: Mutex<Held>,
    loss: Sender<()>,
    lost: Receiver<()>,
    on_loss: Mutex<LossCallbacks>,
}

/// How a lock is extended automatically.
#[derive(Clone, Copy)]
pub(crate) struct AutomaticExtension {
    pub(crate) ttl: Ttl,
    pub(crate) hold: HoldId,
    pub(crate) config: RenewalConfig,
    /// How long before the end of its validity the lock is reported lost.
    pub(crate) margin: Duration,
}

/// What to call when the lock is lost. Never called with a mutex held.
enum LossCallbacks {
    Called,
    Waiting(Vec<LossCallback>),
}

/// A function to call when the lock is lost.
pub(crate) type LossCallback = Box<dyn FnOnce() + Send>;

/// What is held, as guard and thread agree on it.
#[derive(Clone, Copy)]
pub(super) struct Held {
    /// For how long it is extended: the longest time to live that was requested, for others that
    /// share the lock rely on theirs. None when it is not extended.
    pub(super) ttl: Option<Ttl>,
    pub(super) reached: NodeSet,
    pub(super) lease: Validity,
    pub(super) by_hand: ExtensionsByHand,
    /// The lock is unregistered, or its loss was signalled.
    pub(super) is_over: bool,
    /// The loss has been reported to the observer, or is about to be.
    pub(super) loss_reported: bool,
    /// The acquisition has been reported to the observer.
    is_announced: bool,
    /// The thread has found something before that.
    has_early_findings: bool,
}

/// What the owner of an unregistered lock holds.
pub(crate) struct Unregistered {
    pub(crate) lease: Validity,
    pub(crate) reached: NodeSet,
    /// Whether the loss has been reported to the observer, or is about to be.
    pub(crate) loss_reported: bool,
}

impl WatchedLock {
    /// A lock that is held from now on, and extended if at all.
    pub(super) fn new(
        local: &LocalLock,
        record: &AttemptRecord,
        lease: Validity,
        extension: Option<AutomaticExtension>,
        id: LeaseId,
    ) -> WatchedLock {
        let (loss, lost) = bounded(1);
        let held = Held {
            ttl: extension.map(|extension| extension.ttl),
            reached: record.reached,
            lease,
            by_hand: ExtensionsByHand::default(),
            is_over: false,
            loss_reported: lease == Validity::LOST,
            is_announced: false,
            has_early_findings: false,
        };
        WatchedLock {
            local: local.clone(),
            hold: extension.map(|extension| extension.hold),
            token: record.token.clone(),
            kind: record.kind,
            held_since: record.t0.steady,
            margin: extension.map_or(Duration::ZERO, |extension| extension.margin),
            id,
            held: Mutex::new(held),
            loss,
            lost,
            on_loss: Mutex::new(LossCallbacks::Waiting(Vec::new())),
        }
    }

    /// The lease as it is now.
    pub(crate) fn lease(&self) -> Validity {
        lock(&self.held).lease
    }

    /// Whether its acquisition has been reported. If not, what was found about it is reported
    /// later.
    pub(super) fn is_announced(&self) -> bool {
        let mut held = lock(&self.held);
        held.has_early_findings |= !held.is_announced;
        held.is_announced
    }

    /// Its acquisition has been reported. True when the thread has found something before.
    pub(super) fn announce(&self) -> bool {
        let mut held = lock(&self.held);
        held.is_announced = true;
        held.has_early_findings
    }

    /// A channel that brings one message when the lock is lost.
    pub(crate) fn lost(&self) -> Receiver<()> {
        self.lost.clone()
    }

    /// Registers a callback for the loss of the lock. It is called at once if the loss has been
    /// signalled.
    pub(crate) fn on_lost(&self, callback: LossCallback) {
        if let LossCallbacks::Waiting(callbacks) = &mut *lock(&self.on_loss) {
            return callbacks.push(callback);
        }
        call_on_loss(callback);
    }

    /// Runs the callbacks, once. To be called after the signal on the channel, with no mutex held.
    pub(crate) fn run_loss_callbacks(&self) {
        let on_loss = std::mem::replace(&mut *lock(&self.on_loss), LossCallbacks::Called);
        if let LossCallbacks::Waiting(callbacks) = on_loss {
            callbacks.into_iter().for_each(call_on_loss);
        }
    }

    /// Whether it is extended automatically.
    pub(crate) fn is_extended(&self) -> bool {
        self.hold.is_some()
    }

    /// Whether the lock is lost or unregistered.
    pub(crate) fn is_over(&self) -> bool {
        lock(&self.held).is_over
    }

    /// Sets another lease. The caller holds the schedule, and the lock is in it: so it is not over.
    pub(super) fn renew(&self, lease: Validity) {
        let mut held = lock(&self.held);
        debug_assert!(!held.is_over, "a lock that is over has left the schedule");
        held.lease = lease;
    }

    /// An extension by hand that was sent at `start` has no result.
    pub(crate) fn on_unanswered(&self, start: LeaseTime) {
        lock(&self.held).by_hand.on_unanswered(start);
    }

    /// The lease as the schedule has it: earlier by the margin, or by half of a short validity.
    pub(super) fn lease_less_margin(&self, lease: Validity, ttl: Ttl) -> Validity {
        Validity::until(lease.end().before(self.margin.min(ttl.validity() / 2)))
    }

    pub(super) fn request(&self, ttl: Ttl) -> LeaseRequest<'_> {
        LeaseRequest {
            key: self.local.key(),
            token: &self.token,
            ttl_millis: ttl.millis(),
            kind: self.kind,
        }
    }

    /// Ends the lease now. True as by [`signal_loss`](WatchedLock::signal_loss).
    pub(super) fn end(&self, now: LeaseTime) -> bool {
        {
            let mut held = lock(&self.held);
            held.lease = Validity::until(now);
            held.is_over = true;
        }
        self.signal_loss()
    }

    /// Signals the loss to the owner. The caller has taken the lock out of the schedule and still
    /// holds that, so an unregistered lock gets no signal. True when the observer is still to be
    /// notified.
    pub(super) fn signal_loss(&self) -> bool {
        let mut held = lock(&self.held);
        held.is_over = true;
        let loss_reported = std::mem::replace(&mut held.loss_reported, true);
        drop(held);
        // There is room for one signal, and no other thread sends.
        let _ = self.loss.try_send(());
        !loss_reported
    }
}

/// Calls, and stops a panic.
pub(crate) fn call_on_loss(callback: LossCallback) {
    _ = caught(callback);
}
