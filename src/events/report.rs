//! Reports events to the observers of a client, if it has any.
//!
//! The caller holds no mutex. Invariants:
//! 1. Without an observer no event is created and no queue exists.
//! 2. A panic of an observer ends here, and the next observer is called.
//! 3. While an observer runs, the calls of its thread report nothing: that would never end. Queued events wait until it
//!    returns.
//! 4. A call reports its own events first, and then delivers a limited number of queued events.

use crate::algorithm::fault::Fault;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::vote::{ReleaseVerdict, Tally};
use crate::events::error::NodeFault;
use crate::events::event::{
    Acquired, AttemptLost, Event, EventsDropped, Extended, ExtensionFailed, KeyWithoutExpiry, LossReason, Lost,
    NodeDown, NodeMayEvict, NodeNotDurable, NodeQuarantined, NodeUp, QuarantineEnded, ReleaseFailed,
    ReleaseNotificationsRefused, Released, Repaired, ResourceName,
};
use crate::events::event_queue::{EventQueue, PendingEvent, ReleaseContext, Side};
use crate::events::observer::Observer;
use crate::events::release::ReleaseOutcome;
use crate::os::sync::{is_in_callback, set_in_callback};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Most queued events that one call delivers besides its own. The observer's time for each is lost to the call. With 32
/// and an observer that takes 1 ms, the slowest call of a busy program takes less than 0.1 s.
const MOST_QUEUED: usize = 32;

/// Reports the events of one client. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Reporter {
    target: Option<Arc<Target>>,
    /// How many queued events are delivered after an event of a call.
    most_queued: usize,
}

/// The observers, and what turns numbers of nodes and keys into the names that events show.
struct Target {
    observers: Vec<Arc<dyn Observer>>,
    queue: Arc<EventQueue>,
    addresses: Vec<String>,
    /// Length of the prefix of keys.
    prefix: usize,
}

impl Reporter {
    pub(crate) fn new(observers: Vec<Arc<dyn Observer>>, nodes: &[String], prefix: &str) -> Reporter {
        let target = (!observers.is_empty()).then(|| {
            let (addresses, prefix) = (nodes.to_vec(), prefix.len());
            Arc::new(Target { observers, queue: Arc::default(), addresses, prefix })
        });
        Reporter { target, most_queued: MOST_QUEUED }
    }

    /// The same, for a thread that reports many events in a row: it delivers no queued events after each.
    pub(crate) fn without_queued(&self) -> Reporter {
        Reporter { most_queued: 0, ..self.clone() }
    }

    /// The queue for events that belong to no call.
    pub(crate) fn event_queue(&self) -> Option<Arc<EventQueue>> {
        self.target.as_ref().map(|target| Arc::clone(&target.queue))
    }

    /// Whether an event of this thread would be reported now.
    pub(crate) fn is_observed(&self) -> bool {
        self.target.is_some() && !is_in_callback()
    }

    /// Whether events are queued that no other thread is delivering.
    pub(crate) fn has_queued(&self) -> bool {
        self.target.as_ref().is_some_and(|target| !is_in_callback() && target.queue.is_waiting())
    }

    /// Delivers queued events, as many as one call may.
    pub(crate) fn deliver_queued(&self) {
        self.deliver_at_most(MOST_QUEUED);
    }

    pub(crate) fn deliver_at_most(&self, most: usize) {
        if let Some(target) = &self.target
            && !is_in_callback()
        {
            target.queue.deliver(most, |pending| target.deliver(&pending));
        }
    }

    /// The client ends: delivers what is left for as long as there is time, and then how many events are dropped.
    pub(crate) fn deliver_last(&self, has_time: impl Fn() -> bool) {
        let Some(target) = self.target.as_ref().filter(|_| !is_in_callback()) else { return };
        while self.has_queued() && has_time() {
            self.deliver_at_most(1);
        }
        let dropped = target.queue.abandon();
        if dropped > 0 {
            target.deliver(&PendingEvent::Dropped(dropped));
        }
    }

    /// After this many attempts, the last of which took this many round trips.
    pub(crate) fn acquired(&self, key: &Arc<str>, waited: Duration, (attempts, round_trips): (u32, u32)) {
        self.report(|to| {
            to.call(&Event::Acquired(Acquired { resource: to.resource(key), waited, attempts, round_trips }));
        });
    }

    pub(crate) fn attempt_lost(&self, key: &Arc<str>, attempt: u32, tally: &Tally, faults: &[(NodeId, Fault)]) {
        self.report(|to| {
            to.call(&Event::AttemptLost(AttemptLost {
                resource: to.resource(key),
                attempt,
                granted: tally.granted().len(),
                refused: tally.refused().len(),
                causes: to.causes(faults),
            }));
        });
    }

    /// `repaired` are the nodes where the key was set again.
    pub(crate) fn extended(&self, key: &Arc<str>, ttl: Duration, automatic: bool, repaired: NodeSet) {
        self.report(|to| {
            to.call(&Event::Extended(Extended { resource: to.resource(key), ttl, automatic }));
            if !repaired.is_empty() {
                let addresses = to.addresses_of(repaired);
                to.call(&Event::Repaired(Repaired { resource: to.resource(key), addresses }));
            }
        });
    }

    /// An extension by a call failed.
    pub(crate) fn extension_failed(&self, key: &Arc<str>, remaining: impl FnOnce() -> Duration, causes: &[NodeFault]) {
        self.report(|to| to.extension_failed(key, false, remaining(), causes.to_vec()));
    }

    /// An automatic extension failed.
    pub(crate) fn renewal_failed(&self, key: &Arc<str>, remaining: Duration, faults: &[(NodeId, Fault)]) {
        self.report(|to| to.extension_failed(key, true, remaining, to.causes(faults)));
    }

    /// A wait failed, because the key has no expiry on these nodes.
    pub(crate) fn key_without_expiry(&self, key: &Arc<str>, nodes: NodeSet) {
        self.report(|to| {
            let (resource, addresses) = (to.resource(key), to.addresses_of(nodes));
            to.call(&Event::KeyWithoutExpiry(KeyWithoutExpiry { resource, addresses }));
        });
    }

    pub(crate) fn lost(&self, key: &Arc<str>, reason: LossReason) {
        self.report(|to| to.lost(key, reason));
    }

    /// The release by `unlock` has been counted.
    pub(crate) fn unlocked(&self, release: &ReleaseContext, tally: &Tally, faults: &[(NodeId, Fault)]) {
        self.report(|to| to.release_ended(release, false, tally.release(), faults));
    }

    fn report(&self, events: impl FnOnce(&Target)) {
        if let Some(target) = &self.target
            && !is_in_callback()
        {
            events(target);
            self.deliver_at_most(self.most_queued);
        }
    }
}

impl Target {
    /// Calls each observer, in order.
    fn call(&self, event: &Event) {
        self.observers.iter().for_each(|observer| isolated(|| observer.event(event)));
    }

    fn deliver(&self, pending: &PendingEvent) {
        let address = |node: &NodeId| self.addresses[node.index()].clone();
        self.call(&match pending {
            PendingEvent::Dropped(count) => Event::EventsDropped(EventsDropped { count: *count }),
            PendingEvent::MayEvict(node, policy) => {
                Event::NodeMayEvict(NodeMayEvict { address: address(node), policy })
            }
            PendingEvent::NodeDown(node, fault) => Event::NodeDown(NodeDown { fault: self.cause(*node, *fault) }),
            PendingEvent::NotDurable(node) => Event::NodeNotDurable(NodeNotDurable { address: address(node) }),
            PendingEvent::NodeQuarantined(node, remaining) => {
                Event::NodeQuarantined(NodeQuarantined { address: address(node), remaining: *remaining })
            }
            PendingEvent::NodeUp(node) => Event::NodeUp(NodeUp { address: address(node) }),
            PendingEvent::QuarantineEnded(node) => Event::QuarantineEnded(QuarantineEnded { address: address(node) }),
            PendingEvent::ReleaseNotificationsRefused(side, node, fault) => {
                let (fault, publishing) = (self.cause(*node, *fault), *side == Side::Publishing);
                Event::ReleaseNotificationsRefused(ReleaseNotificationsRefused { fault, publishing })
            }
            PendingEvent::Release(release, verdict, faults) => {
                return self.release_ended(release, true, *verdict, faults);
            }
        });
    }

    fn extension_failed(&self, key: &Arc<str>, automatic: bool, remaining: Duration, causes: Vec<NodeFault>) {
        let resource = self.resource(key);
        self.call(&Event::ExtensionFailed(ExtensionFailed { resource, automatic, remaining, causes }));
    }

    fn lost(&self, key: &Arc<str>, reason: LossReason) {
        self.call(&Event::Lost(Lost { resource: self.resource(key), reason }));
    }

    /// A release has ended. Before its outcome comes the loss of the lock, if the release found it.
    fn release_ended(
        &self,
        release: &ReleaseContext,
        dropped: bool,
        verdict: ReleaseVerdict,
        faults: &[(NodeId, Fault)],
    ) {
        let ReleaseContext { key, was_valid, loss_reported } = release;
        let outcome = ReleaseOutcome::of(verdict, *was_valid);
        if !loss_reported {
            match outcome {
                _ if !was_valid => self.lost(key, LossReason::LeaseEnded),
                Some(ReleaseOutcome::Expired) => self.lost(key, LossReason::KeyGone),
                Some(ReleaseOutcome::Released) | None => {}
            }
        }
        let resource = self.resource(key);
        self.call(&match outcome {
            Some(outcome) => Event::Released(Released { resource, outcome, dropped }),
            None => Event::ReleaseFailed(ReleaseFailed { resource, dropped, causes: self.causes(faults) }),
        });
    }

    fn resource(&self, key: &Arc<str>) -> ResourceName {
        ResourceName { key: Arc::clone(key), prefix: self.prefix }
    }

    fn addresses_of(&self, nodes: NodeSet) -> Vec<String> {
        nodes.iter().map(|node| self.addresses[node.index()].clone()).collect()
    }

    fn cause(&self, node: NodeId, fault: Fault) -> NodeFault {
        NodeFault::new(self.addresses[node.index()].clone(), fault)
    }

    fn causes(&self, faults: &[(NodeId, Fault)]) -> Vec<NodeFault> {
        faults.iter().map(|&(node, fault)| self.cause(node, fault)).collect()
    }
}

/// Runs a callback of the program; a panic ends here.
fn isolated(callback: impl FnOnce()) {
    set_in_callback(true);
    if let Err(panic) = catch_unwind(AssertUnwindSafe(callback))
        && let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic)))
    {
        // The payload panics when it is dropped, and its own payload may do the same: it is leaked.
        std::mem::forget(another);
    }
    set_in_callback(false);
}
