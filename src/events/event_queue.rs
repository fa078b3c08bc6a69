//! The queue of events that belong to no call: changes of nodes, and the outcomes of background releases.
//!
//! An event is pushed with the driver's mutex held, and delivered later by a thread that holds no mutex:
//! 1. Events are delivered in the order in which they were pushed, by one thread at a time. Another thread that calls
//!    `deliver` meanwhile delivers none and returns at once.
//! 2. One call delivers a limited number of events, so that an observer that is slower than the program does not block
//!    a thread. The rest waits for the next call of any thread, for the watchdog thread, or for the end of the client.
//! 3. The queue is limited as well. Releases that do not fit are counted, and the next delivery begins with their
//!    number.
//!
//! A client without an observer and without counters has no queue. Counters count an outcome when it is pushed, so that
//! they miss none. Without an observer, nothing is queued.

use crate::algorithm::fault::Fault;
use crate::algorithm::incarnation::mismatch::Mismatch;
use crate::algorithm::node::NodeId;
use crate::algorithm::vote::ReleaseVerdict;
use crate::events::event::LossReason;
use crate::events::metrics::classes::ClassId;
use crate::events::metrics::meter::Meter;
use crate::events::release::ReleaseOutcome;
use crate::os::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Most events that wait for delivery before outcomes of releases are dropped: the observer is too slow for all.
const LIMIT: usize = 65_536;

/// An event to deliver, with nodes by number.
#[derive(Debug)]
pub(crate) enum PendingEvent {
    /// This many outcomes of releases did not fit the queue.
    Dropped(u64),
    /// The node evicts keys when its memory is full, by this policy.
    MayEvict(NodeId, &'static str),
    /// What the node remembers does not fit this client.
    Mismatched(NodeId, Mismatch),
    NodeDown(NodeId, Fault),
    /// The node is declared durable, and appends nothing to disk.
    NotDurable(NodeId),
    /// The votes of the node do not count for this time.
    NodeQuarantined(NodeId, Duration),
    NodeUp(NodeId),
    QuarantineEnded(NodeId),
    /// With the faults of its nodes, unless a quorum deleted the key.
    Release(ReleaseContext, ReleaseVerdict, Vec<(NodeId, Fault)>),
    ReleaseNotificationsRefused(Side, NodeId, Fault),
}

/// Which command of release notifications a node refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// `SUBSCRIBE`.
    Listening,
    /// `PUBLISH`.
    Publishing,
}

/// What the event of a background release needs besides its outcome.
#[derive(Debug)]
pub(crate) struct ReleaseContext {
    pub(crate) key: Arc<str>,
    /// Whether the lease was valid when the release was queued.
    pub(crate) was_valid: bool,
    /// Whether the loss of the lock was reported before.
    pub(crate) loss_reported: bool,
    /// How long the lock was held.
    pub(crate) held: Duration,
    /// The class that counts the release, if anything does.
    pub(crate) class: Option<ClassId>,
    /// Whether observers get the outcome.
    pub(crate) is_observed: bool,
}

impl ReleaseContext {
    /// The loss of the lock that the release has found, and how the release ended; none where that is not known.
    pub(crate) fn findings(&self, verdict: ReleaseVerdict) -> (Option<LossReason>, Option<ReleaseOutcome>) {
        let outcome = ReleaseOutcome::of(verdict, self.was_valid);
        let loss = match outcome {
            _ if self.loss_reported => None,
            _ if !self.was_valid => Some(LossReason::LeaseEnded),
            Some(ReleaseOutcome::Expired) => Some(LossReason::KeyGone),
            Some(ReleaseOutcome::Released | ReleaseOutcome::StillHeld(_)) | None => None,
        };
        (loss, outcome)
    }

    /// Counts the release, and the loss of the lock if the release has found it.
    pub(crate) fn count(&self, meter: &Meter, class: ClassId, verdict: ReleaseVerdict, dropped: bool) {
        let (loss, outcome) = self.findings(verdict);
        if let Some(reason) = loss {
            meter.counters.lost(class, reason);
        }
        meter.counters.released(class, outcome, dropped);
    }
}

/// Events that were not delivered yet.
#[derive(Default)]
pub(crate) struct EventQueue {
    /// Whether any event is queued: a caller that finds none takes no mutex.
    any: AtomicBool,
    inner: Mutex<Inner>,
    meter: Option<Meter>,
    /// No observer gets what is queued.
    is_unobserved: bool,
}

#[derive(Default)]
struct Inner {
    events: VecDeque<PendingEvent>,
    /// How many did not fit and were not reported yet.
    dropped: u64,
    is_delivering: bool,
    /// The client has ended.
    is_abandoned: bool,
}

impl Inner {
    /// The next event to deliver. The number of dropped ones comes first: the observer is informed at once that it is
    /// too slow.
    fn next(&mut self) -> Option<PendingEvent> {
        match std::mem::take(&mut self.dropped) {
            0 => self.events.pop_front(),
            dropped => Some(PendingEvent::Dropped(dropped)),
        }
    }
}

impl EventQueue {
    pub(crate) fn new(meter: Option<Meter>, is_observed: bool) -> EventQueue {
        EventQueue { meter, is_unobserved: !is_observed, ..EventQueue::default() }
    }

    pub(crate) fn push(&self, event: PendingEvent) {
        if let PendingEvent::Release(release, verdict, _) = &event {
            if let (Some(meter), Some(class)) = (&self.meter, release.class) {
                release.count(meter, class, *verdict, true);
            }
            if !release.is_observed {
                return;
            }
        }
        if self.is_unobserved {
            return;
        }
        let mut inner = lock(&self.inner);
        if inner.is_abandoned || inner.events.len() >= LIMIT && matches!(event, PendingEvent::Release(..)) {
            inner.dropped += 1;
            self.count_dropped(1);
        } else {
            inner.events.push_back(event);
        }
        self.any.store(true, Ordering::Release);
    }

    /// Whether there are events to deliver that no other thread is delivering.
    pub(crate) fn is_waiting(&self) -> bool {
        self.any.load(Ordering::Acquire) && !lock(&self.inner).is_delivering
    }

    /// Delivers queued events, and events that are pushed meanwhile, `most` in all, with no mutex held. Delivers
    /// nothing while another thread does. `each` must not panic.
    pub(crate) fn deliver(&self, most: usize, mut each: impl FnMut(PendingEvent)) {
        // The flag shows a thread at least what it pushed itself. Other threads deliver what they pushed.
        if most == 0 || !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut inner = lock(&self.inner);
        if inner.is_delivering {
            return;
        }
        inner.is_delivering = true;
        for _ in 0..most {
            let Some(event) = inner.next() else { break };
            drop(inner);
            each(event);
            inner = lock(&self.inner);
        }
        inner.is_delivering = false;
        self.any.store(inner.dropped > 0 || !inner.events.is_empty(), Ordering::Release);
    }

    /// Drops all events. Returns how many, with those that were dropped before and not reported.
    pub(crate) fn abandon(&self) -> u64 {
        let mut inner = lock(&self.inner);
        let left = inner.events.len() as u64;
        inner.events.clear();
        inner.is_abandoned = true;
        self.count_dropped(left);
        left + std::mem::take(&mut inner.dropped)
    }

    fn count_dropped(&self, count: u64) {
        if let Some(meter) = &self.meter {
            meter.counters.events_dropped(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(queue: &EventQueue) -> Vec<String> {
        let mut delivered = Vec::new();
        queue.deliver(usize::MAX, |event| delivered.push(name(&event)));
        delivered
    }

    fn name(item: &PendingEvent) -> String {
        match item {
            PendingEvent::Dropped(count) => format!("{count} dropped"),
            PendingEvent::NodeDown(node, fault) => format!("{node} {fault}"),
            PendingEvent::NotDurable(node) => format!("{node} not durable"),
            PendingEvent::MayEvict(node, policy) => format!("{node} evicts by {policy}"),
            PendingEvent::Mismatched(node, mismatch) => format!("{node} {mismatch}"),
            PendingEvent::NodeQuarantined(node, remaining) => format!("{node} quarantined for {remaining:?}"),
            PendingEvent::NodeUp(node) => format!("{node} up"),
            PendingEvent::QuarantineEnded(node) => format!("{node} out of quarantine"),
            PendingEvent::ReleaseNotificationsRefused(side, node, _) => format!("{node} {side:?}"),
            PendingEvent::Release(release_context, outcome, _) => format!("{} {outcome:?}", release_context.key),
        }
    }

    fn release(number: usize) -> PendingEvent {
        let release_context = ReleaseContext {
            key: number.to_string().into(),
            was_valid: true,
            loss_reported: false,
            held: Duration::ZERO,
            class: None,
            is_observed: true,
        };
        PendingEvent::Release(release_context, ReleaseVerdict::Released, Vec::new())
    }

    #[test]
    fn an_event_pushed_during_delivery_is_delivered_last_by_the_same_call() {
        let queue = EventQueue::default();
        queue.push(release(0));
        queue.push(release(1));
        let mut order = Vec::new();
        queue.deliver(usize::MAX, |item| {
            order.push(name(&item));
            if order.len() < 5 {
                queue.push(release(order.len() + 1));
            }
            assert!(!queue.is_waiting());
            queue.deliver(1, |_| panic!("another call delivers"));
        });
        assert_eq!(order, ["0 Released", "1 Released", "2 Released", "3 Released", "4 Released", "5 Released"]);
        queue.push(release(6));
        assert_eq!(delivered(&queue), ["6 Released"]);
    }

    #[test]
    fn one_call_delivers_no_more_than_it_may_and_the_next_one_goes_on() {
        let queue = EventQueue::default();
        assert!(!queue.is_waiting());
        (0..5).for_each(|number| queue.push(release(number)));
        let mut order = Vec::new();
        // Each delivery causes another event, as a release by a callback does.
        let deliver = |most, order: &mut Vec<String>| {
            queue.deliver(most, |item| {
                order.push(name(&item));
                queue.push(release(order.len() + 4));
            });
        };
        deliver(0, &mut order);
        assert!(order.is_empty());
        for calls in 1..=3 {
            deliver(2, &mut order);
            assert_eq!(order.len(), 2 * calls);
            assert!(queue.is_waiting(), "the rest must be found");
        }
        order.extend(delivered(&queue));
        let expected: Vec<String> = (0..11).map(|number| format!("{number} Released")).collect();
        assert_eq!(order, expected);
        assert!(!queue.is_waiting());
    }

    #[test]
    fn abandoned_events_are_counted() {
        let queue = EventQueue::default();
        (0..LIMIT + 2).for_each(|number| queue.push(release(number)));
        queue.deliver(2, |_| {});
        // The first one was the number of those that did not fit.
        assert_eq!(queue.abandon(), LIMIT as u64 - 1);
        assert_eq!(queue.abandon(), 0);
        assert!(delivered(&queue).is_empty());
    }

    /// Each thread pushes events and delivers. When all have returned, each event was delivered once, by one thread at
    /// a time.
    #[test]
    fn threads_that_push_and_deliver_at_once_leave_nothing() {
        const THREADS: usize = 4;
        const NOTES: usize = 500;
        for _ in 0..20 {
            let (queue, seen) = (EventQueue::default(), std::sync::Mutex::new(Vec::new()));
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (queue, seen) = (&queue, &seen);
                    scope.spawn(move || {
                        for note in 0..NOTES {
                            queue.push(release(thread * NOTES + note));
                            queue.deliver(usize::MAX, |item| seen.try_lock().unwrap().push(name(&item)));
                        }
                    });
                }
            });
            let mut seen = seen.into_inner().unwrap();
            assert_eq!(seen.len(), THREADS * NOTES);
            seen.sort();
            seen.dedup();
            assert_eq!(seen.len(), THREADS * NOTES);
        }
    }

    #[test]
    fn outcomes_that_do_not_fit_are_counted_and_displace_no_event_of_a_node() {
        let queue = EventQueue::default();
        for number in 0..LIMIT + 2 {
            queue.push(release(number));
        }
        queue.push(PendingEvent::NodeUp(NodeId::new(3)));
        let all = delivered(&queue);
        assert_eq!((all.len(), all[0].as_str(), all.last().unwrap().as_str()), (LIMIT + 2, "2 dropped", "3 up"));
        queue.push(release(0));
        assert_eq!(delivered(&queue), ["0 Released"]);
    }
}
