//! Reports events to the observers of a client, if it has any.
//!
//! The caller holds no mutex. Invariants:
//! 1. Without an observer no event is created. Without an observer and counters no queue exists.
//! 2. A panic of an observer ends here, and the next observer is called.
//! 3. While an observer runs, the calls of its thread report nothing: that would never end. Queued
//!    events wait until it returns.
//! 4. A call reports its own events first, and then delivers a limited number of queued events.
//! 5. Counters count before observers are called, also within a callback, and what the queue drops.

use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::queue::AskedBecause;
use crate::algorithm::vote::Tally;
use crate::events::error::NodeFault;
use crate::events::event::{Event, GaveUpReason, LossReason};
use crate::events::event_queue::{EventQueue, Observer, ReleaseContext};
use crate::events::metrics::class::{Class, ExtensionResult};
use crate::events::metrics::counters::Counters;
use crate::events::names::Names;
use crate::fault::Fault;
use crate::os::caught::caught;
use crate::os::sync::{is_in_callback, set_in_callback};
use std::sync::Arc;
use std::time::Duration;

/// Most queued events that one call delivers in addition to its own. The observer's time for each
/// is lost to the call. With 32 and an observer that takes 1 ms, the slowest call of a busy program
/// takes less than 0.1 s.
const MOST_QUEUED: usize = 32;

/// Reports the events of one client. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Reporter {
    /// The observers, the counters, and the events that wait.
    target: Option<Arc<EventQueue>>,
    /// How many queued events are delivered after an event of a call.
    most_queued: usize,
}

/// A call that ended with the lock.
#[derive(Default)]
pub(crate) struct WonCall {
    pub(crate) waited: Duration,
    /// How many attempts it made, and how many round trips the last one took.
    pub(crate) attempts: u32,
    pub(crate) round_trips: u32,
    /// Where it began to wait in the queue of the lock.
    pub(crate) position: Option<u32>,
    pub(crate) because: AskedBecause,
    pub(crate) has_waited: bool,
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
        observers: Vec<Observer>,
        counters: Option<Counters>,
        names: &Arc<Names>,
    ) -> Reporter {
        let is_observed = !observers.is_empty();
        let target = (is_observed || counters.is_some()).then(|| {
            let mut queue = EventQueue::new(Arc::clone(names), counters, is_observed);
            queue.observers = observers;
            Arc::new(queue)
        });
        Reporter {
            target,
            most_queued: MOST_QUEUED,
        }
    }

    /// The same, for a thread that reports many events in a row: it delivers no queued events after
    /// each.
    pub(crate) fn without_queued(&self) -> Reporter {
        Reporter {
            most_queued: 0,
            ..self.clone()
        }
    }

    /// The queue for events that belong to no call.
    pub(crate) fn event_queue(&self) -> Option<Arc<EventQueue>> {
        self.target.clone()
    }

    /// Whether an event of this thread would be counted or reported now.
    pub(crate) fn is_observed(&self) -> bool {
        self.target
            .as_ref()
            .is_some_and(|target| target.counters.is_some() || target.is_observed_here())
    }

    /// A guard is made of a lease.
    pub(crate) fn attached(&self, key: &str) {
        self.count(key, Class::holds);
    }

    /// A guard lets go of its lock, which stays held.
    pub(crate) fn detached(&self, key: &str) {
        self.count(key, |class| class.lets_go(None));
    }

    /// A guard has ended: what the events of its release need.
    pub(crate) fn hold_ended(
        &self,
        key: &Arc<str>,
        was_valid: bool,
        loss_reported: bool,
        held: Duration,
    ) -> Option<ReleaseContext> {
        let target = self.target.as_ref()?;
        let class = target.counters.as_ref().map(|counters| {
            let class = counters.class_of(target.names.name_of(key));
            class.lets_go(Some(held));
            Arc::clone(class)
        });
        let key = Arc::clone(key);
        let is_observed = target.is_observed_here();
        Some(ReleaseContext {
            key,
            was_valid,
            loss_reported,
            held,
            class,
            is_observed,
        })
    }

    /// Whether events are queued that no other thread is delivering.
    pub(crate) fn has_queued(&self) -> bool {
        self.target
            .as_ref()
            .is_some_and(|target| !is_in_callback() && target.is_waiting())
    }

    /// Delivers queued events, as many as one call may.
    pub(crate) fn deliver_queued(&self) {
        self.deliver_at_most(MOST_QUEUED);
    }

    pub(crate) fn deliver_at_most(&self, most: usize) {
        if let Some(target) = &self.target
            && !is_in_callback()
        {
            target.deliver(most, |event| target.call(event));
        }
    }

    /// The client ends: delivers pending events for as long as there is time, and then how many are
    /// dropped.
    pub(crate) fn deliver_last(&self, has_time: impl Fn() -> bool) {
        let Some(target) = self.target.as_ref().filter(|_| !is_in_callback()) else {
            return;
        };
        while self.has_queued() && has_time() {
            self.deliver_at_most(1);
        }
        let count = target.abandon();
        if count > 0 {
            target.call(&Event::EventsDropped { count });
        }
    }

    /// A call begins to wait. `own` returns the lock that its thread has, if it waits for that, and
    /// for how long.
    pub(crate) fn waiting<'k>(
        &self,
        key: &Arc<str>,
        own: impl FnOnce() -> Option<(&'k Arc<str>, Duration)>,
    ) {
        self.count(key, Class::waits);
        if let Some(target) = self.observed_here() {
            let own = own();
            target.call(&Event::Waiting {
                name: target.names.lock(key),
            });
            if let Some((key, remaining)) = own {
                target.call(&Event::WaitingForItself {
                    name: target.names.lock(key),
                    remaining,
                });
            }
        }
    }

    /// A call acquired the lock. Without an attempt, it shares the lease of another thread.
    pub(crate) fn acquired(&self, key: &Arc<str>, call: &WonCall) {
        let &WonCall {
            waited,
            attempts,
            round_trips,
            position,
            because,
            has_waited,
        } = call;
        self.count(key, |class| {
            class.call_ended(0, waited, has_waited);
            if attempts > 0 {
                class.acquired(because);
            }
        });
        let AskedBecause {
            told,
            unasked,
            challenges,
        } = because;
        self.report_alone(|names| Event::Acquired {
            name: names.lock(key),
            waited,
            attempts,
            has_waited,
            position,
            round_trips,
            told,
            unasked,
            challenges,
        });
        if attempts > 0 {
            self.deliver_at_most(self.most_queued);
        }
    }

    /// A call ended without the lock. Queued events were delivered after its last attempt, if it
    /// made any.
    pub(crate) fn gave_up(
        &self,
        key: &Arc<str>,
        waited: impl FnOnce() -> Duration,
        call: &FailedCall<'_>,
    ) {
        let &FailedCall {
            reason,
            attempts,
            has_waited,
            faults,
            causes,
        } = call;
        let waited = if self.is_observed() { waited() } else { return };
        self.count(key, |class| {
            class.call_ended(reason as usize, waited, has_waited)
        });
        self.report_alone(|names| {
            let causes = if causes.is_empty() {
                names.faults(faults)
            } else {
                causes.to_vec()
            };
            Event::GaveUp {
                name: names.lock(key),
                reason,
                waited,
                attempts,
                has_waited,
                causes,
            }
        });
        if attempts == 0 {
            self.deliver_at_most(self.most_queued);
        }
    }

    pub(crate) fn attempt_lost(
        &self,
        key: &Arc<str>,
        attempt: u32,
        tally: &Tally,
        faults: &[(NodeId, Fault)],
    ) {
        self.count(key, |class| class.attempt_lost(tally));
        self.report(|names| Event::AttemptLost {
            name: names.lock(key),
            attempt,
            granted: tally.granted().len(),
            refused: tally.refused().len(),
            causes: names.faults(faults),
        });
    }

    /// `repaired` are the nodes where the key was set again.
    pub(crate) fn extended(
        &self,
        key: &Arc<str>,
        ttl: Duration,
        is_automatic: bool,
        repaired: NodeSet,
    ) {
        self.count(key, |class| {
            class.extended(ExtensionResult::Extended, is_automatic)
        });
        self.report_alone(|names| Event::Extended {
            name: names.lock(key),
            ttl,
            is_automatic,
        });
        if !repaired.is_empty() {
            self.report_alone(|names| Event::Repaired {
                name: names.lock(key),
                nodes: names.nodes(repaired),
            });
        }
        self.deliver_at_most(self.most_queued);
    }

    /// An extension failed.
    pub(crate) fn extension_failed(
        &self,
        key: &Arc<str>,
        is_automatic: bool,
        remaining: impl FnOnce() -> Duration,
        causes: impl FnOnce(&Names) -> Vec<NodeFault>,
    ) {
        self.count(key, |class| {
            class.extended(ExtensionResult::Failed, is_automatic)
        });
        self.report(|names| Event::ExtensionFailed {
            name: names.lock(key),
            is_automatic,
            remaining: remaining(),
            causes: causes(names),
        });
    }

    /// An extension found the lock lost. Its loss is an event of its own.
    pub(crate) fn extension_lost(&self, key: &str, is_automatic: bool) {
        self.count(key, |class| {
            class.extended(ExtensionResult::Lost, is_automatic)
        });
    }

    /// The key has no expiry on these nodes.
    pub(crate) fn key_without_expiry(&self, key: &Arc<str>, nodes: NodeSet) {
        self.report(|names| Event::KeyWithoutExpiry {
            name: names.lock(key),
            key: Arc::clone(key),
            nodes: names.nodes(nodes),
        });
    }

    pub(crate) fn lost(&self, key: &Arc<str>, reason: LossReason, held: Duration) {
        self.count(key, |class| class.lost(reason));
        self.report(|names| Event::Lost {
            name: names.lock(key),
            reason,
            held,
        });
    }

    /// The nodes have replied to the release by `unlock`, or the time for that is over.
    pub(crate) fn unlocked(
        &self,
        release: Option<ReleaseContext>,
        tally: &Tally,
        faults: &[(NodeId, Fault)],
    ) {
        if let (Some(target), Some(release)) = (&self.target, release) {
            let events = target.ended(&release, tally.release(), faults, false);
            let events = events.into_iter().flatten();
            events.for_each(|event| target.call(&event));
        }
        self.deliver_at_most(self.most_queued);
    }

    /// Counts, if there are counters: also within a callback.
    fn count(&self, key: &str, count: impl FnOnce(&Class)) {
        if let Some(target) = &self.target
            && let Some(counters) = &target.counters
        {
            count(counters.class_of(target.names.name_of(key)));
        }
    }

    fn report(&self, event: impl FnOnce(&Names) -> Event) {
        self.report_alone(event);
        self.deliver_at_most(self.most_queued);
    }

    /// Reports, and delivers no queued events: another event of the call does.
    fn report_alone(&self, event: impl FnOnce(&Names) -> Event) {
        if let Some(target) = self.observed_here() {
            target.call(&event(&target.names));
        }
    }

    /// None if observers receive no event of this thread.
    fn observed_here(&self) -> Option<&EventQueue> {
        self.target
            .as_deref()
            .filter(|target| target.is_observed_here())
    }
}

impl EventQueue {
    /// Whether observers receive an event of this thread.
    fn is_observed_here(&self) -> bool {
        !self.is_unobserved && !is_in_callback()
    }

    /// Calls each observer, in order.
    fn call(&self, event: &Event) {
        self.observers
            .iter()
            .for_each(|observer| _ = isolated(|| observer(event)));
    }
}

/// Runs a callback of the program, also within another one. None: it panicked, and that ends here.
pub(crate) fn isolated<R>(callback: impl FnOnce() -> R) -> Option<R> {
    let was_in_callback = is_in_callback();
    set_in_callback(true);
    let result = caught(callback);
    set_in_callback(was_in_callback);
    result
}

#[cfg(all(test, not(feature = "simulated")))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn behind_an_event_of_a_call_thirty_two_queued_ones_are_delivered() {
        let delivered = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&delivered);
        let observer: Observer = Arc::new(move |_| _ = count.fetch_add(1, Ordering::Relaxed));
        let report = Reporter::new(vec![observer], None, &Arc::default());
        let queue = report.event_queue().unwrap();
        (0..100).for_each(|count| queue.push(|_| Event::EventsDropped { count }));
        for expected in [33, 66, 99, 104] {
            report.lost(&"k".into(), LossReason::KeyGone, Duration::ZERO);
            assert_eq!(delivered.load(Ordering::Relaxed), expected);
        }
    }
}
