//! Tells the observer of a client, if it has one, and lets nothing come back from it.
//!
//! The caller holds no mutex. Invariants:
//! 1. Without an observer nothing is made, read or remembered.
//! 2. A panic of the observer ends here.
//! 3. The telling has an end: while an observer is called, what its thread does is not told. EventQueue of the network wait
//!    until it has returned.
//! 4. A call tells its own events first, and then a limited number of what the network has noted.

use crate::algorithm::fault::Fault;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::vote::{ReleaseVerdict, Tally};
use crate::events::error::NodeFault;
use crate::events::event::{
    Acquired, AttemptLost, EventsDropped, Extended, ExtensionFailed, KeyWithoutExpiry, LossReason, Lost, Name,
    NodeDown, NodeMayEvict, NodeNotDurable, NodeQuarantined, NodeUp, QuarantineEnded, ReleaseFailed,
    ReleaseNotificationsRefused, Released, Repaired,
};
use crate::events::event_queue::{EventQueue, PendingEvent, ReleaseContext, Side};
use crate::events::observer::Observer;
use crate::events::release::ReleaseOutcome;
use crate::os::sync::{is_in_callback, set_in_callback};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Most events of the network that one call tells besides its own. Each may take the observer some time, which the call
/// loses. With 32 and an observer that takes 1 ms, the slowest call of a busy program takes less than 0.1 s.
const SHARE: usize = 32;

/// Tells the observer. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Reporter {
    listener: Option<Arc<Listener>>,
    /// How many events of the network are told after one of its own.
    share: usize,
}

struct Listener {
    observer: Arc<dyn Observer>,
    news: Arc<EventQueue>,
    nodes: Vec<String>,
    /// Length of the prefix of keys.
    prefix: usize,
}

impl Reporter {
    pub(crate) fn new(observer: Option<Arc<dyn Observer>>, nodes: &[String], prefix: &str) -> Reporter {
        let listener = |observer| {
            Arc::new(Listener { observer, news: Arc::default(), nodes: nodes.to_vec(), prefix: prefix.len() })
        };
        Reporter { listener: observer.map(listener), share: SHARE }
    }

    /// The same, for a thread that tells many events of its own in a row: nothing of the network is told after each.
    pub(crate) fn without_share(&self) -> Reporter {
        Reporter { share: 0, ..self.clone() }
    }

    /// Where the network notes what is to be told.
    pub(crate) fn news(&self) -> Option<Arc<EventQueue>> {
        self.listener.as_ref().map(|listener| Arc::clone(&listener.news))
    }

    /// Whether anybody is told what this thread does now.
    pub(crate) fn is_listening(&self) -> bool {
        self.listener.is_some() && !is_in_callback()
    }

    /// Whether the network has noted something that no other thread is telling.
    pub(crate) fn has_news(&self) -> bool {
        self.listener.as_ref().is_some_and(|listener| !is_in_callback() && listener.news.is_waiting())
    }

    /// Tells what the network has noted, as much as one call tells.
    pub(crate) fn tell_news(&self) {
        self.tell_some_news(SHARE);
    }

    /// Tells what the network has noted, up to so many events.
    pub(crate) fn tell_some_news(&self, most: usize) {
        if let Some(listener) = &self.listener
            && !is_in_callback()
        {
            listener.news.deliver(most, |item| listener.tell_item(&item));
        }
    }

    /// The client ends: tells what is left for as long as there is time, and then how many events are dropped.
    pub(crate) fn tell_last_news(&self, has_time: impl Fn() -> bool) {
        let Some(listener) = self.listener.as_ref().filter(|_| !is_in_callback()) else { return };
        while self.has_news() && has_time() {
            self.tell_some_news(1);
        }
        let dropped = listener.news.abandon();
        if dropped > 0 {
            listener.tell_item(&PendingEvent::Dropped(dropped));
        }
    }

    /// After so many attempts, the last of which took so many round trips.
    pub(crate) fn acquired(&self, key: &Arc<str>, waited: Duration, (attempts, round_trips): (u32, u32)) {
        self.tell(|to| {
            let event = Acquired { resource: to.name(key), waited, attempts, round_trips };
            call(|| to.observer.acquired(&event));
        });
    }

    pub(crate) fn attempt_lost(&self, key: &Arc<str>, attempt: u32, tally: &Tally, faults: &[(NodeId, Fault)]) {
        self.tell(|to| {
            let event = AttemptLost {
                resource: to.name(key),
                attempt,
                granted: tally.granted().len(),
                refused: tally.refused().len(),
                causes: to.causes(faults),
            };
            call(|| to.observer.attempt_lost(&event));
        });
    }

    /// `repaired` are the nodes where the key was set again.
    pub(crate) fn extended(&self, key: &Arc<str>, ttl: Duration, automatic: bool, repaired: NodeSet) {
        self.tell(|to| {
            call(|| to.observer.extended(&Extended { resource: to.name(key), ttl, automatic }));
            if !repaired.is_empty() {
                let addresses = to.addresses(repaired);
                call(|| to.observer.repaired(&Repaired { resource: to.name(key), addresses }));
            }
        });
    }

    /// An extension by hand has failed.
    pub(crate) fn extension_failed(&self, key: &Arc<str>, remaining: impl FnOnce() -> Duration, causes: &[NodeFault]) {
        self.tell(|to| to.extension_failed(key, false, remaining(), causes.to_vec()));
    }

    /// An automatic extension has failed.
    pub(crate) fn renewal_failed(&self, key: &Arc<str>, remaining: Duration, faults: &[(NodeId, Fault)]) {
        self.tell(|to| to.extension_failed(key, true, remaining, to.causes(faults)));
    }

    /// A wait has ended, because the key has no expiry on these nodes.
    pub(crate) fn key_without_expiry(&self, key: &Arc<str>, nodes: NodeSet) {
        self.tell(|to| {
            let event = KeyWithoutExpiry { resource: to.name(key), addresses: to.addresses(nodes) };
            call(|| to.observer.key_without_expiry(&event));
        });
    }

    pub(crate) fn lost(&self, key: &Arc<str>, reason: LossReason) {
        self.tell(|to| to.lost(key, reason));
    }

    /// The release of a lock that was not dropped has been counted.
    pub(crate) fn unlocked(&self, farewell: &ReleaseContext, tally: &Tally, faults: &[(NodeId, Fault)]) {
        self.tell(|to| {
            to.ended(farewell, false, tally.release(), faults);
        });
    }

    fn tell(&self, act: impl FnOnce(&Listener)) {
        if let Some(listener) = &self.listener
            && !is_in_callback()
        {
            act(listener);
            self.tell_some_news(self.share);
        }
    }
}

impl Listener {
    fn tell_item(&self, item: &PendingEvent) {
        let address = |node: &NodeId| self.nodes[node.index()].clone();
        match item {
            PendingEvent::Dropped(count) => call(|| self.observer.events_dropped(&EventsDropped { count: *count })),
            PendingEvent::MayEvict(node, policy) => {
                call(|| self.observer.node_may_evict(&NodeMayEvict { address: address(node), policy }));
            }
            PendingEvent::NodeDown(node, fault) => {
                call(|| self.observer.node_down(&NodeDown { fault: self.cause(*node, *fault) }))
            }
            PendingEvent::NotDurable(node) => {
                call(|| self.observer.node_not_durable(&NodeNotDurable { address: address(node) }));
            }
            PendingEvent::NodeQuarantined(node, remaining) => {
                let event = NodeQuarantined { address: address(node), remaining: *remaining };
                call(|| self.observer.node_quarantined(&event));
            }
            PendingEvent::NodeUp(node) => call(|| self.observer.node_up(&NodeUp { address: address(node) })),
            PendingEvent::QuarantineEnded(node) => {
                call(|| self.observer.quarantine_ended(&QuarantineEnded { address: address(node) }));
            }
            PendingEvent::ReleaseNotificationsRefused(side, node, fault) => {
                let (fault, publishing) = (self.cause(*node, *fault), *side == Side::Publishing);
                call(|| {
                    self.observer.release_notifications_refused(&ReleaseNotificationsRefused { fault, publishing })
                });
            }
            PendingEvent::Release(farewell, outcome, faults) => self.ended(farewell, true, *outcome, faults),
        }
    }

    fn extension_failed(&self, key: &Arc<str>, automatic: bool, remaining: Duration, causes: Vec<NodeFault>) {
        let event = ExtensionFailed { resource: self.name(key), automatic, remaining, causes };
        call(|| self.observer.extension_failed(&event));
    }

    fn lost(&self, key: &Arc<str>, reason: LossReason) {
        call(|| self.observer.lost(&Lost { resource: self.name(key), reason }));
    }

    /// A release has come to an end, and with it what was not known of the lock before.
    fn ended(&self, farewell: &ReleaseContext, dropped: bool, outcome: ReleaseVerdict, faults: &[(NodeId, Fault)]) {
        let ReleaseContext { key, was_valid, loss_told } = farewell;
        let release = ReleaseOutcome::of(outcome, *was_valid);
        if !loss_told {
            match release {
                _ if !was_valid => self.lost(key, LossReason::LeaseEnded),
                Some(ReleaseOutcome::Expired) => self.lost(key, LossReason::KeyGone),
                Some(ReleaseOutcome::Released) | None => {}
            }
        }
        match release {
            Some(outcome) => {
                call(|| self.observer.released(&Released { resource: self.name(key), outcome, dropped }));
            }
            None => {
                let event = ReleaseFailed { resource: self.name(key), dropped, causes: self.causes(faults) };
                call(|| self.observer.release_failed(&event));
            }
        }
    }

    fn name(&self, key: &Arc<str>) -> Name {
        Name { key: Arc::clone(key), prefix: self.prefix }
    }

    fn addresses(&self, nodes: NodeSet) -> Vec<String> {
        nodes.iter().map(|node| self.nodes[node.index()].clone()).collect()
    }

    fn cause(&self, node: NodeId, fault: Fault) -> NodeFault {
        NodeFault::new(self.nodes[node.index()].clone(), fault)
    }

    fn causes(&self, faults: &[(NodeId, Fault)]) -> Vec<NodeFault> {
        faults.iter().map(|&(node, fault)| self.cause(node, fault)).collect()
    }
}

/// Calls the observer.
fn call(callback: impl FnOnce()) {
    set_in_callback(true);
    if let Err(panic) = catch_unwind(AssertUnwindSafe(callback))
        && let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic)))
    {
        // What was thrown throws again when it goes. It stays.
        std::mem::forget(another);
    }
    set_in_callback(false);
}
