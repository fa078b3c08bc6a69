//! Who waits for which key, and what was heard about it.
//!
//! Invariants:
//! 1. No word is lost between two waits: what comes while nobody sleeps ends the next wait at once, unless an attempt has
//!    begun since, which will find out for itself.
//! 2. A release is one hint. It is told by each node, so a node that tells again tells of another one. One more look is due
//!    when a quorum has told, because the look that the first one led to may have come too early for that.
//! 3. Those who have begun to listen are woken when they hear so many nodes that no release by a quorum can escape them, and
//!    when they hear a node again that was lost: what was released before, nobody tells them.
//! 4. Programs take turns. A hint says how many waited when the holder last knew, and whether he had waited himself. Whoever
//!    has seen fewer of them come and go since he began to wait holds back for a moment, and leaves it to those who have waited
//!    for longer. Only for a moment: hints decide who asks first, and never who gets it.
//! 5. A program that wants a lock again that it has just released lets others go first, if they wait; and now and then, if its
//!    own threads pass it on among themselves. If nobody has taken it then, those who listen do not want it.

use super::interrupt::Interrupt;
use crate::algorithm::acquire::WakeOrder;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::time::Timestamp;
use crate::protocol::publish::Hint;
use crate::protocol::session::Ticket;
use crate::protocol::subscription::Key;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// For how long it counts that others were waiting for a lock.
const CROWD_LASTS: Duration = Duration::from_millis(100);
/// Most locks of which that is known.
const CROWDS: usize = 1024;
/// How long those who wait are given to take a lock that was released, before the one who released it may take it again.
const TIME_TO_TAKE: Duration = Duration::from_millis(3);
/// How long after the first node has told of a release the others may: what is told later is of another one, by nodes that
/// did not take part in the one before.
const STRAGGLERS: Duration = Duration::from_millis(10);
/// How often the threads of a program pass a lock on that others wait for, before they let those go first.
const RUN: u32 = 8;

/// What has ended a wait before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// From now on no release can escape.
    Subscribed,
    /// The lock was released.
    Released(WakeOrder),
    /// The alarm was rung.
    Interrupted,
}

/// Who waits for what, in one client.
pub(crate) struct WaitRegistry {
    /// Whether hints are sent and listened for.
    pub(crate) is_on: bool,
    nodes: usize,
    /// In order, so that a simulated run can be had again.
    pub(crate) topics: BTreeMap<Key, KeyWaiters>,
    /// How many sleep.
    sleepers: usize,
    /// Locks that others were waiting for when this client released them.
    crowds: HashMap<Key, Contention>,
    /// Whether there are any, for whoever has no time to ask.
    pub(crate) is_crowded: Arc<AtomicBool>,
}

/// A key that somebody waits for.
#[derive(Default)]
pub(crate) struct KeyWaiters {
    /// One: only the first of a program's queue listens.
    listeners: u32,
    /// Those who sleep: at most one for each listener.
    pub(crate) sleepers: Vec<Waiter>,
    /// The nodes that are heard.
    pub(crate) live: NodeSet,
    /// The nodes that were heard, and may have told something since that was lost.
    missed: NodeSet,
    /// The nodes that have told of the last release, and when the first of them did.
    told: NodeSet,
    told_at: Timestamp,
    /// How many have had the lock meanwhile who had waited for it.
    departed: u8,
    /// How many waited, as far as was said.
    crowd: u8,
    /// WakeReason that nobody has looked into.
    word: Option<WakeReason>,
}

pub(crate) struct Waiter {
    pub(crate) ticket: Ticket,
    pub(crate) alarm: Arc<Interrupt>,
    /// What there is for him to know when he wakes.
    word: Option<WakeReason>,
}

impl Waiter {
    pub(crate) fn new(ticket: Ticket, alarm: &Arc<Interrupt>) -> Waiter {
        Waiter { ticket, alarm: Arc::clone(alarm), word: None }
    }
}

struct Contention {
    listeners: u8,
    /// How many of them have not taken the lock when they were let go first: others than those who wait may listen, for all
    /// keys, or for one of this name in another database of the server.
    idle: u8,
    seen: Timestamp,
    /// When this client last let them go first.
    yielded_at: Timestamp,
    run: u32,
}

impl KeyWaiters {
    /// A node tells of a release: does that end a wait?
    fn hear(&mut self, node: NodeId, hint: Hint, quorum: usize, now: Timestamp) -> Option<WakeReason> {
        let is_late = now.since(self.told_at) > STRAGGLERS;
        let is_another = self.told.is_empty() || is_late || !self.told.insert(node);
        if is_another {
            self.told = NodeSet::from_iter([node]);
            self.told_at = now;
            // Whoever takes a lock without having waited leaves nobody's place.
            self.departed = self.departed.saturating_add(hint.has_waited.into());
            // Others may know better, and those who knew leave.
            self.crowd = hint.crowd.max(self.crowd.saturating_sub(1));
        }
        let turn = WakeOrder::of(self.crowd.saturating_sub(1), self.departed);
        let is_complete = self.told.len() == quorum && !matches!(turn, WakeOrder::After(_));
        (is_another || is_complete).then_some(WakeReason::Released(turn))
    }
}

impl WaitRegistry {
    pub(crate) fn new(nodes: usize, is_on: bool) -> WaitRegistry {
        WaitRegistry {
            is_on,
            nodes,
            topics: BTreeMap::new(),
            sleepers: 0,
            crowds: HashMap::new(),
            is_crowded: Arc::default(),
        }
    }

    /// Whether anybody sleeps.
    pub(crate) fn has_sleepers(&self) -> bool {
        self.sleepers > 0
    }

    /// Somebody is about to wait for a key; true when nobody did.
    pub(crate) fn enter(&mut self, key: &Key) -> bool {
        if let Some(crowd) = self.crowds.get_mut(key) {
            crowd.run = 0;
        }
        let topic = self.topics.entry(Arc::clone(key)).or_default();
        topic.listeners += 1;
        topic.listeners == 1
    }

    /// He waits no more; true when nobody does.
    pub(crate) fn leave(&mut self, key: &Key) -> bool {
        let Some(topic) = self.topics.get_mut(key) else { return false };
        topic.listeners -= 1;
        let is_last = topic.listeners == 0;
        if is_last {
            self.topics.remove(key);
        }
        is_last
    }

    /// He goes to sleep, unless there is word for him already: false then.
    pub(crate) fn sleep(&mut self, key: &Key, mut sleeper: Waiter) -> bool {
        let Some(topic) = self.topics.get_mut(key) else { return false };
        sleeper.word = topic.word.take();
        let is_quiet = sleeper.word.is_none() && !sleeper.alarm.is_set();
        topic.sleepers.push(sleeper);
        self.sleepers += 1;
        is_quiet
    }

    /// He is awake, and takes what there is to know.
    pub(crate) fn wake(&mut self, key: &Key, ticket: Ticket) -> Option<WakeReason> {
        let topic = self.topics.get_mut(key)?;
        let index = topic.sleepers.iter().position(|sleeper| sleeper.ticket == ticket)?;
        let sleeper = topic.sleepers.swap_remove(index);
        self.sleepers -= 1;
        let was_rung = sleeper.alarm.take();
        sleeper.word.or(was_rung.then_some(WakeReason::Interrupted))
    }

    /// Somebody who waits begins an attempt: it will find out about all that was heard so far.
    pub(crate) fn look_into(&mut self, key: &Key) {
        if let Some(topic) = self.topics.get_mut(key) {
            topic.word = None;
        }
    }

    /// A node begins to be heard. The sleepers that this wakes are in the topic.
    pub(crate) fn confirmed(&mut self, key: &Key, node: NodeId) -> Option<&KeyWaiters> {
        let enough = self.enough();
        let topic = self.topics.get_mut(key)?;
        let was_missed = topic.missed.contains(node);
        topic.missed = topic.missed.without(NodeSet::from_iter([node]));
        let is_news = topic.live.insert(node) && (was_missed || topic.live.len() == enough);
        is_news.then(|| topic.note(WakeReason::Subscribed))
    }

    /// A node tells of a release. The sleepers that this wakes are in the topic.
    pub(crate) fn heard(&mut self, key: &Key, node: NodeId, hint: Hint, now: Timestamp) -> Option<&KeyWaiters> {
        let quorum = self.quorum();
        if let Some(crowd) = self.crowds.get_mut(key) {
            crowd.idle = 0;
        }
        let topic = self.topics.get_mut(key)?;
        let word = topic.hear(node, hint, quorum, now)?;
        Some(topic.note(word))
    }

    /// A node is heard no more.
    pub(crate) fn lost(&mut self, node: NodeId) {
        for topic in self.topics.values_mut().filter(|topic| topic.live.contains(node)) {
            topic.live = topic.live.without(NodeSet::from_iter([node]));
            topic.missed.insert(node);
        }
    }

    /// Whether no release of the key by a quorum can escape.
    pub(crate) fn is_attentive(&self, key: &Key) -> bool {
        self.topics.get(key).is_some_and(|topic| topic.live.len() >= self.enough())
    }

    /// So many heard of our release.
    pub(crate) fn note_crowd(&mut self, key: &[u8], listeners: u8, now: Timestamp) {
        if let Some(crowd) = self.crowds.get_mut(key) {
            (crowd.listeners, crowd.seen) = (listeners, now);
            crowd.idle = crowd.idle.min(listeners);
            return;
        }
        if self.crowds.len() >= CROWDS {
            self.crowds.clear();
        }
        self.is_crowded.store(true, Ordering::Relaxed);
        self.crowds
            .insert(key.into(), Contention { listeners, idle: 0, seen: now, yielded_at: Timestamp::ORIGIN, run: 0 });
    }

    /// How many waited for the key when this client last released it.
    pub(crate) fn crowd(&self, key: &[u8], now: Timestamp) -> u8 {
        let crowd = if self.crowds.is_empty() { None } else { self.crowds.get(key) };
        crowd.filter(|crowd| now.since(crowd.seen) < CROWD_LASTS).map_or(0, |crowd| crowd.listeners)
    }

    /// Somebody wants the key without having waited for it: should he let others go first who did when it was last released?
    /// `is_handed_on`: he has waited for another thread of this client.
    pub(crate) fn must_defer(&mut self, key: &[u8], is_handed_on: bool, now: Timestamp) -> bool {
        let Some(crowd) = self.crowds.get_mut(key) else { return false };
        if now.since(crowd.seen) >= CROWD_LASTS {
            self.crowds.remove(key);
            self.is_crowded.store(!self.crowds.is_empty(), Ordering::Relaxed);
            return false;
        }
        crowd.run += 1;
        let had_no_time = now.since(crowd.seen) < TIME_TO_TAKE;
        let is_new = crowd.seen > crowd.yielded_at;
        let was_in_vain = crowd.listeners <= crowd.idle && now.since(crowd.yielded_at) < CROWD_LASTS;
        let must = had_no_time && is_new && !was_in_vain && (!is_handed_on || crowd.run > RUN);
        if must {
            crowd.yielded_at = now;
            // In vain, unless a release by one of them is heard of.
            crowd.idle = crowd.listeners;
        }
        must
    }

    fn quorum(&self) -> usize {
        self.nodes / 2 + 1
    }

    /// How many nodes must be heard, so that no release by a quorum escapes.
    fn enough(&self) -> usize {
        self.nodes + 1 - self.quorum()
    }
}

impl KeyWaiters {
    /// Keeps word for those who sleep, or for the first who does. That of a release says more than that there will be word.
    fn note(&mut self, word: WakeReason) -> &KeyWaiters {
        let keep = |kept: &mut Option<WakeReason>| {
            if kept.is_none() || word != WakeReason::Subscribed {
                *kept = Some(word);
            }
        };
        match &mut self.sleepers[..] {
            [] => keep(&mut self.word),
            sleepers => sleepers.iter_mut().for_each(|sleeper| keep(&mut sleeper.word)),
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::publish::Hint;

    const HINT: Hint = Hint { crowd: 1, has_waited: false };
    const RELEASED: Option<WakeReason> = Some(WakeReason::Released(WakeOrder::Overdue));

    fn key() -> Key {
        Key::from(b"k".as_slice())
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::ORIGIN.after(Duration::from_millis(millis))
    }

    /// The word that there is after some hints, by node.
    fn word_of(listening: &mut WaitRegistry, nodes: &[usize]) -> Option<WakeReason> {
        word_at(listening, nodes, at(1))
    }

    fn word_at(listening: &mut WaitRegistry, nodes: &[usize], now: Timestamp) -> Option<WakeReason> {
        for &node in nodes {
            listening.heard(&key(), NodeId::new(node), HINT, now);
        }
        listening.topics.get_mut(&key()).and_then(|topic| topic.word.take())
    }

    fn of(nodes: usize) -> WaitRegistry {
        let mut listening = WaitRegistry::new(nodes, true);
        assert!(listening.enter(&key()));
        listening
    }

    #[test]
    fn a_release_is_told_of_first_and_when_it_is_complete_and_no_more() {
        let mut listening = of(5);
        assert_eq!(word_of(&mut listening, &[3]), RELEASED);
        assert_eq!(word_of(&mut listening, &[1]), None);
        assert_eq!(word_of(&mut listening, &[0]), RELEASED, "a quorum has told");
        assert_eq!(word_of(&mut listening, &[2, 4]), None);
        assert_eq!(word_of(&mut listening, &[4]), RELEASED, "another one");
        assert_eq!(word_of(&mut listening, &[4]), RELEASED, "and another one");
    }

    #[test]
    fn a_release_by_the_nodes_that_did_not_tell_of_the_last_one_is_another() {
        let mut listening = of(3);
        assert_eq!(word_at(&mut listening, &[0, 1], at(5)), RELEASED);
        assert_eq!(word_at(&mut listening, &[2], at(15)), None, "late");
        let mut listening = of(3);
        assert_eq!(word_at(&mut listening, &[0, 1], at(5)), RELEASED);
        // The next holder had one of them, which hangs, and the third.
        assert_eq!(word_at(&mut listening, &[2], at(16)), RELEASED);
    }

    #[test]
    fn an_attempt_looks_into_what_was_heard_before_it() {
        let mut listening = of(3);
        listening.heard(&key(), NodeId::new(0), HINT, at(1));
        listening.look_into(&key());
        assert_eq!(word_of(&mut listening, &[]), None);
        assert_eq!(word_of(&mut listening, &[0]), RELEASED);
    }

    #[test]
    fn whoever_hears_enough_nodes_or_one_that_was_lost_is_told() {
        for (nodes, enough) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)] {
            let mut listening = of(nodes);
            for node in 0..nodes {
                let is_told = listening.confirmed(&key(), NodeId::new(node)).is_some();
                assert_eq!(is_told, node + 1 == enough, "node {node} of {nodes}");
                assert_eq!(listening.is_attentive(&key()), node + 1 >= enough);
            }
            listening.lost(NodeId::new(0));
            assert!(listening.confirmed(&key(), NodeId::new(0)).is_some());
        }
    }

    #[test]
    fn places_go_by_those_who_had_waited() {
        let mut listening = of(1);
        let turn = |has_waited| {
            listening.heard(&key(), NodeId::new(0), Hint { crowd: 3, has_waited }, at(1));
            listening.topics.get_mut(&key()).and_then(|topic| topic.word.take())
        };
        let turns = [false, true, false, true, true].map(turn);
        let expected =
            [WakeOrder::After(2), WakeOrder::After(1), WakeOrder::After(1), WakeOrder::Due, WakeOrder::Overdue];
        assert_eq!(turns, expected.map(|turn| Some(WakeReason::Released(turn))));
    }

    #[test]
    fn others_are_let_in_once_for_each_time_that_they_were_seen() {
        let mut listening = WaitRegistry::new(3, true);
        assert!(!listening.must_defer(b"k", false, at(1)));
        listening.note_crowd(b"k", 2, at(10));
        assert!(listening.must_defer(b"k", false, at(11)) && !listening.must_defer(b"k", false, at(11)));
        assert_eq!(listening.crowd(b"k", at(11)), 2);
        listening.note_crowd(b"k", 2, at(20));
        assert!(!listening.must_defer(b"k", false, at(23)), "they had time");
        assert!(!listening.must_defer(b"k", false, at(120)) && listening.crowd(b"k", at(120)) == 0);
        // Threads that hand it on do so a few times.
        let yields = (0..30).filter(|&time| {
            listening.note_crowd(b"k", 1, at(200 + time));
            listening.heard(&key(), NodeId::new(0), HINT, at(200 + time));
            listening.must_defer(b"k", true, at(200 + time))
        });
        assert_eq!(yields.count(), 30 - RUN as usize, "until one of them waits, which begins a new run");
        listening.enter(&key());
        listening.note_crowd(b"k", 1, at(300));
        assert!(!listening.must_defer(b"k", true, at(300)));
    }

    #[test]
    fn those_who_listen_and_take_nothing_are_let_in_seldom() {
        let mut listening = WaitRegistry::new(3, true);
        let mut yields = |times: std::ops::Range<u64>, hears: bool, audience| {
            let must = |&time: &u64| {
                listening.note_crowd(b"k", audience, at(time));
                let must = listening.must_defer(b"k", false, at(time));
                if hears {
                    listening.heard(&key(), NodeId::new(0), HINT, at(time));
                }
                must
            };
            times.filter(must).count()
        };
        assert_eq!(yields(200..300, false, 1), 1, "a monitor that listens to all");
        assert_eq!(yields(300..400, false, 1), 1, "once in a while");
        assert_eq!(yields(400..401, false, 2), 1, "one more");
        assert_eq!(yields(401..411, true, 2), 9, "whoever takes it is let in again");
    }
}
