//! Reports events to the observers of a client, if it has any.
//!
//! The caller holds no mutex. Invariants:
//! 1. Without an observer no event is created. Without an observer and counters no queue exists.
//! 2. A panic of an observer ends here, and the next observer is called.
//! 3. While an observer runs, the calls of its thread report nothing: that would never end. Queued events wait until it
//!    returns.
//! 4. A call reports its own events first, and then delivers a limited number of queued events.
//! 5. Counters count before observers are called, also within a callback, and what the queue drops.

use crate::algorithm::fault::Fault;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::queue::AskedBecause;
use crate::algorithm::vote::{ReleaseVerdict, Tally};
use crate::events::error::NodeFault;
use crate::events::event::{
    Acquired, AttemptLost, Event, EventsDropped, Extended, ExtensionFailed, GaveUp, GaveUpReason, KeyWithoutExpiry,
    LossReason, Lost, NodeDown, NodeMayEvict, NodeMismatched, NodeNotDurable, NodeQuarantined, NodeUp, QuarantineEnded,
    ReleaseFailed, ReleaseNotificationsRefused, Released, Repaired, ResourceName, Waiting, WaitingForItself,
};
use crate::events::event_queue::{EventQueue, PendingEvent, ReleaseContext, Side};
use crate::events::metrics::class::ExtensionResult;
use crate::events::metrics::classes::ClassId;
use crate::events::metrics::counters::Counters;
use crate::events::metrics::meter::Meter;
use crate::events::observer::Observer;
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

/// The observers and counters, and what turns numbers of nodes and keys into the names that events show.
struct Target {
    observers: Vec<Arc<dyn Observer>>,
    meter: Option<Meter>,
    queue: Arc<EventQueue>,
    addresses: Vec<String>,
    /// Length of the prefix of keys.
    prefix: usize,
}

/// A call that ended without the lock.
pub(crate) struct FailedCall<'c> {
    pub(crate) reason: GaveUpReason,
    pub(crate) attempts: u32,
    pub(crate) has_waited: bool,
    /// What the last attempt ran into, of a call without an error.
    pub(crate) faults: &'c [(NodeId, Fault)],
    /// The causes of the error.
    pub(crate) causes: &'c [NodeFault],
}

impl Reporter {
    pub(crate) fn new(
        observers: Vec<Arc<dyn Observer>>,
        counters: Option<Counters>,
        nodes: &[String],
        prefix: &str,
    ) -> Reporter {
        let (is_observed, prefix) = (!observers.is_empty(), prefix.len());
        let meter = counters.map(|counters| Meter { counters, prefix });
        let target = (is_observed || meter.is_some()).then(|| {
            let queue = Arc::new(EventQueue::new(meter.clone(), is_observed));
            Arc::new(Target { observers, meter, queue, addresses: nodes.to_vec(), prefix })
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

    /// Whether an event of this thread would be counted or reported now.
    pub(crate) fn is_observed(&self) -> bool {
        self.target.as_ref().is_some_and(|target| target.meter.is_some() || target.is_observed_here())
    }

    /// A guard is made of a lease.
    pub(crate) fn attached(&self, key: &str) {
        self.count(key, Counters::attached);
    }

    /// A guard lets go of its lock, which stays held.
    pub(crate) fn detached(&self, key: &str) {
        self.count(key, |counters, class| counters.lets_go(class, None));
    }

    /// A guard is dropped: what the event of its release needs.
    pub(crate) fn dropped(
        &self,
        key: &Arc<str>,
        (was_valid, loss_reported): (bool, bool),
        held: Duration,
    ) -> Option<ReleaseContext> {
        let target = self.target.as_ref()?;
        let class = target.meter.as_ref().map(|meter| meter.class_of(key));
        self.count_as(class, |counters, class| counters.lets_go(class, Some(held)));
        let (key, is_observed) = (Arc::clone(key), target.is_observed_here());
        Some(ReleaseContext { key, was_valid, loss_reported, held, class, is_observed })
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

    /// A call begins to wait. `own` gives the lock that its thread has, if it waits for that, and for how long.
    pub(crate) fn waiting<'k>(&self, key: &Arc<str>, own: impl FnOnce() -> Option<(&'k Arc<str>, Duration)>) {
        self.count(key, Counters::waits);
        self.report_alone(|to| {
            let own = own();
            to.call(&Event::Waiting(Waiting { resource: to.resource(key) }));
            if let Some((key, remaining)) = own {
                to.call(&Event::WaitingForItself(WaitingForItself { resource: to.resource(key), remaining }));
            }
        });
    }

    /// After this many attempts, the last of which took this many round trips, and from this position in the queue of a
    /// fair lock.
    pub(crate) fn acquired(
        &self,
        key: &Arc<str>,
        waited: Duration,
        ((attempts, round_trips), position): ((u32, u32), Option<u32>),
        because: AskedBecause,
        has_waited: bool,
    ) {
        self.count(key, |counters, class| counters.acquired(class, waited, because, has_waited));
        self.report(|to| {
            let resource = to.resource(key);
            to.call(&Event::Acquired(Acquired {
                resource,
                waited,
                attempts,
                round_trips,
                has_waited,
                position,
                because,
            }));
        });
    }

    /// A call that has waited to read shares the lease of another thread.
    pub(crate) fn joined(&self, key: &Arc<str>, waited: Duration) {
        self.count(key, |counters, class| counters.joined(class, waited));
        self.report_alone(|to| {
            to.call(&Event::Acquired(Acquired {
                resource: to.resource(key),
                waited,
                attempts: 0,
                round_trips: 0,
                has_waited: true,
                position: None,
                because: AskedBecause::default(),
            }));
        });
    }

    /// A call ended without the lock. Queued events were delivered after its last attempt, if it made any.
    pub(crate) fn gave_up(&self, key: &Arc<str>, waited: impl FnOnce() -> Duration, call: &FailedCall<'_>) {
        let &FailedCall { reason, attempts, has_waited, faults, causes } = call;
        let waited = if self.is_observed() { waited() } else { return };
        self.count(key, |counters, class| counters.gave_up(class, reason, waited, has_waited));
        self.report_alone(|to| {
            let causes = if causes.is_empty() { to.causes(faults) } else { causes.to_vec() };
            let resource = to.resource(key);
            to.call(&Event::GaveUp(GaveUp { resource, reason, waited, attempts, has_waited, causes }));
        });
        if attempts == 0 {
            self.deliver_at_most(self.most_queued);
        }
    }

    pub(crate) fn attempt_lost(&self, key: &Arc<str>, attempt: u32, tally: &Tally, faults: &[(NodeId, Fault)]) {
        self.count(key, |counters, class| counters.attempt_lost(class, tally));
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
        self.count_extension(key, ExtensionResult::Extended, automatic);
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
        self.count_extension(key, ExtensionResult::Failed, false);
        self.report(|to| to.extension_failed(key, false, remaining(), causes.to_vec()));
    }

    /// An automatic extension failed.
    pub(crate) fn renewal_failed(&self, key: &Arc<str>, remaining: Duration, faults: &[(NodeId, Fault)]) {
        self.count_extension(key, ExtensionResult::Failed, true);
        self.report(|to| to.extension_failed(key, true, remaining, to.causes(faults)));
    }

    /// An extension found the lock lost. Its loss is an event of its own.
    pub(crate) fn extension_lost(&self, key: &str, automatic: bool) {
        self.count_extension(key, ExtensionResult::Lost, automatic);
    }

    /// A wait failed, because the key has no expiry on these nodes.
    pub(crate) fn key_without_expiry(&self, key: &Arc<str>, nodes: NodeSet) {
        self.report(|to| {
            let (resource, addresses) = (to.resource(key), to.addresses_of(nodes));
            to.call(&Event::KeyWithoutExpiry(KeyWithoutExpiry { resource, addresses }));
        });
    }

    pub(crate) fn lost(&self, key: &Arc<str>, reason: LossReason, held: Duration) {
        self.count(key, |counters, class| counters.lost(class, reason));
        self.report(|to| to.lost(key, reason, held));
    }

    /// The release by `unlock` has been counted.
    pub(crate) fn unlocked(&self, release: &ReleaseContext, tally: &Tally, faults: &[(NodeId, Fault)]) {
        if let Some(meter) = self.meter() {
            let class = meter.class_of(&release.key);
            meter.counters.lets_go(class, Some(release.held));
            release.count(meter, class, tally.release(), false);
        }
        self.report(|to| to.release_ended(release, false, tally.release(), faults));
    }

    fn meter(&self) -> Option<&Meter> {
        self.target.as_ref()?.meter.as_ref()
    }

    /// Counts, where there are counters: also within a callback.
    fn count(&self, key: &str, count: impl FnOnce(&Counters, ClassId)) {
        self.count_as(self.meter().map(|meter| meter.class_of(key)), count);
    }

    fn count_as(&self, class: Option<ClassId>, count: impl FnOnce(&Counters, ClassId)) {
        if let (Some(meter), Some(class)) = (self.meter(), class) {
            count(&meter.counters, class);
        }
    }

    fn count_extension(&self, key: &str, result: ExtensionResult, automatic: bool) {
        self.count(key, |counters, class| counters.extended(class, result, automatic));
    }

    fn report(&self, events: impl FnOnce(&Target)) {
        self.report_alone(events);
        self.deliver_at_most(self.most_queued);
    }

    /// Reports, and delivers no queued events: another event of the call does.
    fn report_alone(&self, events: impl FnOnce(&Target)) {
        if let Some(target) = &self.target
            && target.is_observed_here()
        {
            events(target);
        }
    }
}

impl Target {
    /// Whether observers get an event of this thread.
    fn is_observed_here(&self) -> bool {
        !self.observers.is_empty() && !is_in_callback()
    }

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
            PendingEvent::Mismatched(node, mismatch) => {
                Event::NodeMismatched(NodeMismatched { address: address(node), mismatch: *mismatch })
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

    fn lost(&self, key: &Arc<str>, reason: LossReason, held: Duration) {
        self.call(&Event::Lost(Lost { resource: self.resource(key), reason, held }));
    }

    /// A release has ended. Before its outcome comes the loss of the lock, if the release found it.
    fn release_ended(
        &self,
        release: &ReleaseContext,
        dropped: bool,
        verdict: ReleaseVerdict,
        faults: &[(NodeId, Fault)],
    ) {
        let &ReleaseContext { ref key, held, .. } = release;
        let (loss, outcome) = release.findings(verdict);
        if let Some(reason) = loss {
            self.lost(key, reason, held);
        }
        let resource = self.resource(key);
        self.call(&match outcome {
            Some(outcome) => Event::Released(Released { resource, outcome, dropped, held }),
            None => Event::ReleaseFailed(ReleaseFailed { resource, dropped, held, causes: self.causes(faults) }),
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
