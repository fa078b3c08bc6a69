//! The queue of events that belong to no call: changes of nodes, and the outcomes of background
//! releases.
//!
//! An event is pushed with the driver's mutex held, and delivered later by a thread that holds no
//! mutex:
//! 1. Events are delivered in the order in which they were pushed, by one thread at a time. Another
//!    thread that calls `deliver` meanwhile delivers none and returns at once.
//! 2. One call delivers a limited number of events, so that an observer that is slower than the
//!    program does not block a thread. The rest waits for the next call of any thread, for the
//!    watchdog thread, or for the end of the client.
//! 3. The queue is limited as well. Releases that do not fit are counted, and the next delivery
//!    begins with their number.
//!
//! A client without an observer and without counters has no queue. Counters count a release when
//! its events are pushed, so that they miss none. Without an observer, no event is made.

use crate::algorithm::node::NodeId;
use crate::algorithm::vote::ReleaseVerdict;
use crate::events::event::{Event, LossReason};
use crate::events::metrics::class::Class;
use crate::events::metrics::counters::Counters;
use crate::events::names::Names;
use crate::events::release::ReleaseOutcome;
use crate::fault::Fault;
use crate::os::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Most events that wait for delivery before those of releases are dropped: the observer is too
/// slow for all.
const LIMIT: usize = 65_536;

/// A function of the program that receives each event.
pub(crate) type Observer = Arc<dyn Fn(&Event) + Send + Sync>;

/// What the events of a release need in addition to its outcome.
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
    pub(crate) class: Option<Arc<Class>>,
    /// Whether observers get the outcome.
    pub(crate) is_observed: bool,
}

/// What reports the events of a client, and those that were not delivered yet.
#[derive(Default)]
pub(crate) struct EventQueue {
    /// Whether any event is queued: a caller that finds none takes no mutex.
    any: AtomicBool,
    inner: Mutex<Inner>,
    pub(super) names: Arc<Names>,
    pub(super) counters: Option<Counters>,
    pub(super) observers: Vec<Observer>,
    /// No observer gets what is queued.
    pub(super) is_unobserved: bool,
}

#[derive(Default)]
struct Inner {
    events: VecDeque<Event>,
    /// How many did not fit and were not reported yet.
    dropped: u64,
    is_delivering: bool,
    /// The client has ended.
    is_abandoned: bool,
}

impl Inner {
    /// The next event to deliver. The number of dropped ones precedes the others: the observer is
    /// informed at once that it is too slow.
    fn next(&mut self) -> Option<Event> {
        match std::mem::take(&mut self.dropped) {
            0 => self.events.pop_front(),
            count => Some(Event::EventsDropped { count }),
        }
    }
}

impl EventQueue {
    pub(crate) fn new(
        names: Arc<Names>,
        counters: Option<Counters>,
        is_observed: bool,
    ) -> EventQueue {
        EventQueue {
            names,
            counters,
            is_unobserved: !is_observed,
            ..EventQueue::default()
        }
    }

    /// Queues an event of a node.
    pub(crate) fn push(&self, event: impl FnOnce(&Names) -> Event) {
        if !self.is_unobserved {
            self.extend([event(&self.names)], usize::MAX);
        }
    }

    /// Counts the release of a dropped guard, and queues its events.
    pub(crate) fn push_release(
        &self,
        release: &ReleaseContext,
        verdict: ReleaseVerdict,
        faults: &[(NodeId, Fault)],
    ) {
        if let Some(events) = self.ended(release, verdict, faults, true) {
            self.extend(events, LIMIT);
        }
    }

    /// Counts a release that has ended, and the loss of the lock if the release has found it.
    /// Returns the events of both, if observers get them.
    pub(crate) fn ended(
        &self,
        release: &ReleaseContext,
        verdict: ReleaseVerdict,
        faults: &[(NodeId, Fault)],
        is_dropped: bool,
    ) -> Option<impl Iterator<Item = Event>> {
        // None where that is not known.
        let outcome = ReleaseOutcome::of(verdict, release.was_valid);
        let loss = match outcome {
            _ if release.loss_reported => None,
            _ if !release.was_valid => Some(LossReason::LeaseEnded),
            Some(ReleaseOutcome::Expired) => Some(LossReason::KeyGone),
            Some(ReleaseOutcome::Released | ReleaseOutcome::StillHeld(_)) | None => None,
        };
        if let Some(class) = &release.class {
            loss.into_iter().for_each(|reason| class.lost(reason));
            class.released(outcome, is_dropped);
        }
        let held = release.held;
        let events = || {
            let name = self.names.lock(&release.key);
            let lost = loss.map(|reason| Event::Lost {
                name: Arc::clone(&name),
                reason,
                held,
            });
            let end = match outcome {
                Some(outcome) => Event::Released {
                    name,
                    held,
                    is_dropped,
                    outcome,
                },
                None => Event::ReleaseFailed {
                    name,
                    held,
                    is_dropped,
                    causes: self.names.faults(faults),
                },
            };
            lost.into_iter().chain([end])
        };
        (release.is_observed && !self.is_unobserved).then(events)
    }

    /// Queues events, or drops each that exceeds the limit.
    fn extend(&self, events: impl IntoIterator<Item = Event>, limit: usize) {
        let mut inner = lock(&self.inner);
        for event in events {
            if inner.is_abandoned || inner.events.len() >= limit {
                inner.dropped += 1;
                self.count_dropped(1);
            } else {
                inner.events.push_back(event);
            }
        }
        self.any.store(true, Ordering::Release);
    }

    /// Whether there are events to deliver that no other thread is delivering.
    pub(crate) fn is_waiting(&self) -> bool {
        self.any.load(Ordering::Acquire) && !lock(&self.inner).is_delivering
    }

    /// Delivers queued events, and events that are pushed meanwhile, `most` in all, with no mutex
    /// held. Delivers nothing while another thread does. `each` must not panic.
    pub(crate) fn deliver(&self, most: usize, mut each: impl FnMut(&Event)) {
        // The flag shows a thread at least what it pushed itself. Other threads deliver what they
        // pushed.
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
            each(&event);
            inner = lock(&self.inner);
        }
        inner.is_delivering = false;
        self.any.store(
            inner.dropped > 0 || !inner.events.is_empty(),
            Ordering::Release,
        );
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
        if let Some(counters) = &self.counters {
            counters.events_dropped(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(queue: &EventQueue) -> Vec<String> {
        let mut delivered = Vec::new();
        queue.deliver(usize::MAX, |event| delivered.push(word(event)));
        delivered
    }

    fn word(event: &Event) -> String {
        event
            .name()
            .or(event.node())
            .map_or_else(|| event.to_string(), str::to_owned)
    }

    fn push_release(queue: &EventQueue, number: usize) {
        let release = ReleaseContext {
            key: number.to_string().into(),
            was_valid: true,
            loss_reported: false,
            held: Duration::ZERO,
            class: None,
            is_observed: true,
        };
        queue.push_release(&release, ReleaseVerdict::Released, &[]);
    }

    #[test]
    fn an_event_pushed_during_delivery_is_delivered_last_by_the_same_call() {
        let queue = EventQueue::default();
        push_release(&queue, 0);
        push_release(&queue, 1);
        let mut order = Vec::new();
        queue.deliver(usize::MAX, |item| {
            order.push(word(item));
            if order.len() < 5 {
                push_release(&queue, order.len() + 1);
            }
            assert!(!queue.is_waiting());
            queue.deliver(1, |_| panic!("another call delivers"));
        });
        assert_eq!(order, ["0", "1", "2", "3", "4", "5"]);
        push_release(&queue, 6);
        assert_eq!(delivered(&queue), ["6"]);
    }

    #[test]
    fn one_call_delivers_no_more_than_it_may_and_the_next_one_goes_on() {
        let queue = EventQueue::default();
        assert!(!queue.is_waiting());
        (0..5).for_each(|number| push_release(&queue, number));
        let mut order = Vec::new();
        // Each delivery causes another event, as a release by a callback does.
        let deliver = |most, order: &mut Vec<String>| {
            queue.deliver(most, |item| {
                order.push(word(item));
                push_release(&queue, order.len() + 4);
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
        let expected: Vec<String> = (0..11).map(|number: u32| number.to_string()).collect();
        assert_eq!(order, expected);
        assert!(!queue.is_waiting());
    }

    #[test]
    #[cfg_attr(miri, ignore = "fills a queue of 65 536")]
    fn abandoned_events_are_counted() {
        let queue = EventQueue::default();
        (0..LIMIT + 2).for_each(|number| push_release(&queue, number));
        queue.deliver(2, |_| {});
        // The first one was the number of those that did not fit.
        assert_eq!(queue.abandon(), LIMIT as u64 - 1);
        assert_eq!(queue.abandon(), 0);
        assert!(delivered(&queue).is_empty());
    }

    /// Each thread pushes events and delivers. When all have returned, each event was delivered
    /// once, by one thread at a time.
    #[test]
    fn threads_that_push_and_deliver_at_once_leave_nothing() {
        const THREADS: usize = 4;
        const NOTES: usize = if cfg!(miri) { 3 } else { 500 };
        const TURNS: usize = if cfg!(miri) { 1 } else { 20 };
        for _ in 0..TURNS {
            let queue = EventQueue::default();
            let seen = std::sync::Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let queue = &queue;
                    let seen = &seen;
                    scope.spawn(move || {
                        for note in 0..NOTES {
                            push_release(queue, thread * NOTES + note);
                            queue.deliver(usize::MAX, |item| {
                                seen.try_lock().unwrap().push(word(item))
                            });
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
    #[cfg_attr(miri, ignore = "fills a queue of 65 536")]
    fn outcomes_that_do_not_fit_are_counted_and_displace_no_event_of_a_node() {
        let queue = EventQueue::default();
        for number in 0..LIMIT + 2 {
            push_release(&queue, number);
        }
        queue.push(|_| Event::NodeUp {
            node: "node".into(),
        });
        let all = delivered(&queue);
        assert_eq!(
            (all.len(), all[0].as_str(), all.last().unwrap().as_str()),
            (
                LIMIT + 2,
                "2 events dropped: the observer is too slow",
                "node"
            )
        );
        push_release(&queue, 0);
        assert_eq!(delivered(&queue), ["0"]);
    }
}
