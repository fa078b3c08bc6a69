//! What happens in the network and concerns no thread in particular: nodes that go and come, and the outcome of releases
//! that nobody waits for.
//!
//! It is noted here, with the relay's mutex held, and delivered later, by a thread that holds no mutex at all:
//! 1. Events are delivered in the order in which they were noted, by one thread at a time. Another thread that comes
//!    meanwhile delivers none and returns at once.
//! 2. One call delivers a limited number of events: an observer that is slower than the program must not capture a thread.
//!    What is left waits for the next call of any thread, for the watchdog's thread, or for the end of the client.
//! 3. The queue is limited as well. Releases that do not fit are counted, and the next delivery begins with their number.
//!
//! Without somebody to tell there is nothing of this but how each node is seen, for those who ask.

use crate::algorithm::fault::Fault;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::ReleaseVerdict;
use crate::os::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Most events that wait for delivery before outcomes of releases are dropped. The observer is too slow to hear of all.
const LIMIT: usize = 65_536;

/// One thing that happened.
#[derive(Debug)]
pub(crate) enum PendingEvent {
    /// So many outcomes of releases did not fit the queue.
    Dropped(u64),
    /// It evicts keys when its memory is full, by this policy.
    MayEvict(NodeId, &'static str),
    NodeDown(NodeId, Fault),
    /// It is declared durable, and appends nothing to disk.
    NotDurable(NodeId),
    /// Its yes does not count for so long.
    NodeQuarantined(NodeId, Duration),
    NodeUp(NodeId),
    QuarantineEnded(NodeId),
    /// The faults of its nodes are there unless a quorum deleted the key.
    Release(ReleaseContext, ReleaseVerdict, Vec<(NodeId, Fault)>),
    ReleaseNotificationsRefused(Side, NodeId, Fault),
}

/// Which side of the wake-ups a node refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// To hear of releases.
    Listening,
    /// To tell of them.
    Publishing,
}

/// What whoever posts a release wants to know again when its outcome is told.
#[derive(Debug)]
pub(crate) struct ReleaseContext {
    pub(crate) key: Arc<str>,
    /// Whether the lease was valid when the release was queued.
    pub(crate) was_valid: bool,
    /// Whether the loss of the lock was told before.
    pub(crate) loss_reported: bool,
}

/// What has happened and was not told yet.
#[derive(Default)]
pub(crate) struct EventQueue {
    /// Whether there is anything. Spares those who ask the mutex.
    any: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    items: VecDeque<PendingEvent>,
    /// How many did not fit and were not reported yet.
    dropped: u64,
    is_being_told: bool,
}

impl Inner {
    /// The next event to deliver. The number of dropped ones comes first: the observer learns at once that it is too slow.
    fn next(&mut self) -> Option<PendingEvent> {
        match std::mem::take(&mut self.dropped) {
            0 => self.items.pop_front(),
            dropped => Some(PendingEvent::Dropped(dropped)),
        }
    }
}

impl EventQueue {
    pub(crate) fn push(&self, item: PendingEvent) {
        let mut inner = lock(&self.inner);
        if inner.items.len() >= LIMIT && matches!(item, PendingEvent::Release(..)) {
            inner.dropped += 1;
        } else {
            inner.items.push_back(item);
        }
        self.any.store(true, Ordering::Release);
    }

    /// Whether there are events to deliver that no other thread is delivering.
    pub(crate) fn is_waiting(&self) -> bool {
        self.any.load(Ordering::Acquire) && !lock(&self.inner).is_being_told
    }

    /// Delivers what there is and what is added meanwhile, but at most `most` events, with no mutex held. Delivers nothing
    /// while another thread does. `each` must not panic.
    pub(crate) fn deliver(&self, most: usize, mut each: impl FnMut(PendingEvent)) {
        // A thread sees what it has noted itself. What other threads have noted, they come to deliver.
        if most == 0 || !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut inner = lock(&self.inner);
        if inner.is_being_told {
            return;
        }
        inner.is_being_told = true;
        for _ in 0..most {
            let Some(item) = inner.next() else { break };
            drop(inner);
            each(item);
            inner = lock(&self.inner);
        }
        inner.is_being_told = false;
        self.any.store(inner.dropped > 0 || !inner.items.is_empty(), Ordering::Release);
    }

    /// Drops what is left, and gives how many events that were, with those that were dropped before and not reported.
    pub(crate) fn abandon(&self) -> u64 {
        let mut inner = lock(&self.inner);
        let left = inner.items.len() as u64;
        inner.items.clear();
        left + std::mem::take(&mut inner.dropped)
    }
}

/// How the nodes are seen, and have been told of.
pub(crate) struct NodeStates {
    news: Option<Arc<EventQueue>>,
    nodes: Box<[Seen]>,
    /// Those of which it was told that they are in quarantine, and not that it is over.
    told_quarantined: NodeSet,
    /// Those whose present quarantine was not told of.
    to_be_told: NodeSet,
    /// Those that are down because they answer every attempt with an error.
    refusing: NodeSet,
}

/// How one node is seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) state: State,
    /// Since when it is in this state.
    pub(crate) since: Timestamp,
    /// How it failed last.
    pub(crate) fault: Option<Fault>,
}

/// What state a node is seen in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Down,
    /// It answers, and its yes does not count yet.
    Quarantined,
    /// It was not heard of.
    Unknown,
    /// It votes.
    Up,
}

impl NodeStates {
    pub(crate) fn new(news: Option<Arc<EventQueue>>, nodes: usize, now: Timestamp) -> NodeStates {
        let stranger = Seen { state: State::Unknown, since: now, fault: None };
        NodeStates {
            news,
            nodes: vec![stranger; nodes].into(),
            told_quarantined: NodeSet::EMPTY,
            to_be_told: NodeSet::EMPTY,
            refusing: NodeSet::EMPTY,
        }
    }

    /// How a node is seen.
    pub(crate) fn of(&self, node: NodeId) -> &Seen {
        &self.nodes[node.index()]
    }

    pub(crate) fn is_up(&self, node: NodeId) -> bool {
        self.of(node).state == State::Up
    }

    /// Something else that happens once.
    pub(crate) fn note(&self, item: PendingEvent) {
        self.tell(item);
    }

    /// The node may vote. EventQueue if it could not, or was never heard of.
    pub(crate) fn up(&mut self, node: NodeId, now: Timestamp) {
        if self.turn(node, State::Up, now) {
            self.tell(PendingEvent::NodeUp(node));
        }
    }

    /// The node cannot be asked, or not for a lock. EventQueue if it could, or was never heard of.
    pub(crate) fn down(&mut self, node: NodeId, fault: Fault, now: Timestamp) {
        self.refuses_no_more(node);
        self.nodes[node.index()].fault = Some(fault);
        if self.turn(node, State::Down, now) {
            self.tell(PendingEvent::NodeDown(node, fault));
        }
    }

    /// The node answers an attempt with an error. EventQueue as [`down`](NodeStates::down).
    pub(crate) fn refuses(&mut self, node: NodeId, fault: Fault, now: Timestamp) {
        self.down(node, fault, now);
        self.refusing.insert(node);
    }

    /// The node answers attempts again, or its connection is lost and nothing is known of it.
    pub(crate) fn refuses_no_more(&mut self, node: NodeId) {
        self.refusing = self.refusing.without(NodeSet::from_iter([node]));
    }

    pub(crate) fn is_refusing(&self, node: NodeId) -> bool {
        self.refusing.contains(node)
    }

    /// The node answers, and cannot serve one lock. Others it can.
    pub(crate) fn note_fault(&mut self, node: NodeId, fault: Fault) {
        self.nodes[node.index()].fault = Some(fault);
    }

    /// The node answers, and is in quarantine for so long. EventQueue if it did not answer, or of this quarantine nothing was told.
    pub(crate) fn quarantined(&mut self, node: NodeId, remaining: Duration, now: Timestamp) {
        if self.turn(node, State::Quarantined, now) || self.to_be_told.contains(node) {
            self.to_be_told = self.to_be_told.without(NodeSet::from_iter([node]));
            self.told_quarantined.insert(node);
            self.tell(PendingEvent::NodeQuarantined(node, remaining));
        }
    }

    /// A quarantine begins. It is told of with the node's first answer.
    pub(crate) fn is_another(&mut self, node: NodeId) {
        self.to_be_told.insert(node);
    }

    /// The quarantine is over. EventQueue if it was told of.
    pub(crate) fn quarantine_ended(&mut self, node: NodeId) {
        let node_alone = NodeSet::from_iter([node]);
        self.to_be_told = self.to_be_told.without(node_alone);
        if self.told_quarantined.contains(node) {
            self.told_quarantined = self.told_quarantined.without(node_alone);
            self.tell(PendingEvent::QuarantineEnded(node));
        }
    }

    pub(crate) fn may_evict(&self, node: NodeId, policy: &'static str) {
        self.tell(PendingEvent::MayEvict(node, policy));
    }

    /// True when the node was in another state.
    fn turn(&mut self, node: NodeId, state: State, now: Timestamp) -> bool {
        let seen = &mut self.nodes[node.index()];
        let is_change = seen.state != state;
        if is_change {
            (seen.state, seen.since) = (state, now);
        }
        is_change
    }

    fn tell(&self, item: PendingEvent) {
        if let Some(news) = &self.news {
            news.push(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::fault::{Cause, Phase};

    const REFUSED: Fault = Fault::new(Phase::Connect, Cause::Refused);

    fn told(news: &EventQueue) -> Vec<String> {
        let mut told = Vec::new();
        news.deliver(usize::MAX, |item| told.push(name(&item)));
        told
    }

    fn name(item: &PendingEvent) -> String {
        match item {
            PendingEvent::Dropped(count) => format!("{count} dropped"),
            PendingEvent::NodeDown(node, fault) => format!("{node} {fault}"),
            PendingEvent::NotDurable(node) => format!("{node} not durable"),
            PendingEvent::MayEvict(node, policy) => format!("{node} evicts by {policy}"),
            PendingEvent::NodeQuarantined(node, remaining) => format!("{node} quarantined for {remaining:?}"),
            PendingEvent::NodeUp(node) => format!("{node} up"),
            PendingEvent::QuarantineEnded(node) => format!("{node} out of quarantine"),
            PendingEvent::ReleaseNotificationsRefused(side, node, _) => format!("{node} {side:?}"),
            PendingEvent::Release(farewell, outcome, _) => format!("{} {outcome:?}", farewell.key),
        }
    }

    fn release(number: usize) -> PendingEvent {
        let farewell = ReleaseContext { key: number.to_string().into(), was_valid: true, loss_reported: false };
        PendingEvent::Release(farewell, ReleaseVerdict::Released, Vec::new())
    }

    #[test]
    fn a_node_is_news_when_it_changes() {
        let news = Arc::new(EventQueue::default());
        let at = |seconds| Timestamp::ORIGIN.after(Duration::from_secs(seconds));
        let mut presence = NodeStates::new(Some(Arc::clone(&news)), 3, at(0));
        let (one, two) = (NodeId::new(1), NodeId::new(2));
        for now in [1, 2] {
            presence.up(one, at(now));
            presence.down(two, REFUSED, at(now));
        }
        assert!(presence.is_up(one) && !presence.is_up(two) && !presence.is_up(NodeId::new(0)));
        presence.up(two, at(3));
        presence.down(one, REFUSED, at(4));
        let late = Fault::new(Phase::Reply, Cause::TimedOut);
        presence.down(one, late, at(5));
        assert_eq!((presence.of(one).since, presence.of(one).fault), (at(4), Some(late)));
        presence.up(one, at(6));
        let down = |node| format!("{node} connection refused (connect)");
        assert_eq!(told(&news), ["1 up".into(), down(2), "2 up".into(), down(1), "1 up".into()]);
        assert!(told(&news).is_empty());

        let seconds = Duration::from_secs;
        presence.is_another(one);
        presence.quarantined(one, seconds(9), at(8));
        presence.quarantined(one, seconds(8), at(9));
        assert_eq!((presence.of(one).state, presence.of(one).since), (State::Quarantined, at(8)));
        presence.is_another(one);
        presence.quarantined(one, seconds(9), at(10));
        assert_eq!(told(&news), ["1 quarantined for 9s", "1 quarantined for 9s"]);
        presence.down(one, REFUSED, at(11));
        presence.is_another(one);
        presence.down(one, REFUSED, at(12));
        presence.quarantined(one, seconds(7), at(13));
        presence.quarantine_ended(one);
        presence.quarantine_ended(one);
        presence.up(one, at(20));
        presence.is_another(one);
        presence.quarantine_ended(one);
        presence.up(one, at(21));
        assert_eq!(told(&news), [down(1), "1 quarantined for 7s".into(), "1 out of quarantine".into(), "1 up".into()]);
    }

    #[test]
    fn what_is_added_while_news_are_told_is_told_by_the_same_call_and_after_them() {
        let news = EventQueue::default();
        news.push(release(0));
        news.push(release(1));
        let mut order = Vec::new();
        news.deliver(usize::MAX, |item| {
            order.push(name(&item));
            if order.len() < 5 {
                news.push(release(order.len() + 1));
            }
            assert!(!news.is_waiting());
            news.deliver(1, |_| panic!("another call delivers"));
        });
        assert_eq!(order, ["0 Released", "1 Released", "2 Released", "3 Released", "4 Released", "5 Released"]);
        news.push(release(6));
        assert_eq!(told(&news), ["6 Released"]);
    }

    #[test]
    fn one_call_delivers_no_more_than_it_may_and_the_next_one_goes_on() {
        let news = EventQueue::default();
        assert!(!news.is_waiting());
        (0..5).for_each(|number| news.push(release(number)));
        let mut order = Vec::new();
        // Each delivery causes another event, as a release by a callback does.
        let deliver = |most, order: &mut Vec<String>| {
            news.deliver(most, |item| {
                order.push(name(&item));
                news.push(release(order.len() + 4));
            });
        };
        deliver(0, &mut order);
        assert!(order.is_empty());
        for calls in 1..=3 {
            deliver(2, &mut order);
            assert_eq!(order.len(), 2 * calls);
            assert!(news.is_waiting(), "what is left must be found");
        }
        order.extend(told(&news));
        let expected: Vec<String> = (0..11).map(|number| format!("{number} Released")).collect();
        assert_eq!(order, expected);
        assert!(!news.is_waiting());
    }

    #[test]
    fn what_is_abandoned_is_counted() {
        let news = EventQueue::default();
        (0..LIMIT + 2).for_each(|number| news.push(release(number)));
        news.deliver(2, |_| {});
        // The first one was the number of those that did not fit.
        assert_eq!(news.abandon(), LIMIT as u64 - 1);
        assert_eq!(news.abandon(), 0);
        assert!(told(&news).is_empty());
    }

    /// Each thread notes something and delivers what it may. When all have returned, all was delivered, each event once, and
    /// by one thread at a time.
    #[test]
    fn nothing_is_left_behind_by_threads_that_note_and_deliver_at_once() {
        const THREADS: usize = 4;
        const NOTES: usize = 500;
        for _ in 0..20 {
            let (news, seen) = (EventQueue::default(), std::sync::Mutex::new(Vec::new()));
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (news, seen) = (&news, &seen);
                    scope.spawn(move || {
                        for note in 0..NOTES {
                            news.push(release(thread * NOTES + note));
                            news.deliver(usize::MAX, |item| seen.try_lock().unwrap().push(name(&item)));
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
    fn outcomes_that_do_not_fit_are_counted_and_crowd_out_no_node() {
        let news = EventQueue::default();
        for number in 0..LIMIT + 2 {
            news.push(release(number));
        }
        news.push(PendingEvent::NodeUp(NodeId::new(3)));
        let all = told(&news);
        assert_eq!((all.len(), all[0].as_str(), all.last().unwrap().as_str()), (LIMIT + 2, "2 dropped", "3 up"));
        news.push(release(0));
        assert_eq!(told(&news), ["0 Released"]);
    }
}
