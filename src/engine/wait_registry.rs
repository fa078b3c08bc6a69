//! Which calls of this client wait in the queues of locks, and what has arrived for them on the
//! client's channel.
//!
//! Invariants:
//! 1. No message is lost between two waits. One that arrives while its call does not sleep ends the
//!    next wait at once, unless a round has begun since, which finds out by itself.
//! 2. A call that neither waits nor holds leaves the queue of a node that sends it a message: its
//!    entry would keep others waiting. Unless its removal is on its way there already: the message
//!    was sent before.

use super::interrupt::Interrupt;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::queue::Message;
use crate::algorithm::time::Timestamp;
use crate::protocol::session::Ticket;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// For how long a program whose release woke another one asks in its turn.
const WOKEN_LASTS: Duration = Duration::from_secs(1);
/// For how long it counts that a lock changed hands without a message.
const MISSED_LASTS: Duration = Duration::from_secs(10);
/// Most locks of which either is known. It bounds the memory.
const MOST_LOCKS: usize = 1024;
/// Of so many calls it is known where their entries are removed: those that ended last.
const MOST_REMOVED: usize = 32;

/// A message for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) node: NodeId,
    pub(crate) message: Message,
    pub(crate) at: Timestamp,
}

/// What has ended a wait before its time.
#[derive(Debug, Default)]
pub(crate) struct Wakening {
    pub(crate) notes: Vec<Note>,
    /// The interrupt was set.
    pub(crate) is_interrupted: bool,
    /// From now on a release can go unnoticed.
    pub(crate) is_inattentive: bool,
}

impl Wakening {
    /// Whether it was not the deadline alone.
    pub(crate) fn is_any(&self) -> bool {
        !self.notes.is_empty() || self.is_interrupted || self.is_inattentive
    }
}

/// What to do about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Nothing.
    None,
    /// The call has ended: its entry is to be removed on that node.
    Leave,
    /// The call sleeps on this.
    Wake(Ticket),
}

/// The calls of one client that wait, by their numbers.
pub(crate) struct WaitRegistry {
    /// Whether the client subscribes to its channel.
    pub(crate) is_on: bool,
    nodes: usize,
    /// What names the client's channel, once a call has waited.
    client: Option<u64>,
    last_call: u64,
    /// The calls that wait. In order, so that a simulated run can be repeated.
    waiting: BTreeMap<u64, Waiter>,
    /// The calls that have the lock, and when their leases end unless they are extended.
    holding: HashMap<u64, Timestamp>,
    /// The calls that ended last, and the nodes to which the removal of their entries was sent.
    removed: VecDeque<(u64, NodeSet)>,
    sleepers: usize,
    /// The nodes that have confirmed the subscription.
    live: NodeSet,
    /// When a release last woke another client, by the lock's key.
    woken: HashMap<Arc<str>, Timestamp>,
    /// When locks were last seen to have changed hands without a message.
    missed: HashMap<Arc<str>, Timestamp>,
    /// Whether any release woke another client. It is read without the lock of the engine.
    pub(crate) has_woken: Arc<AtomicBool>,
}

struct Waiter {
    interrupt: Arc<Interrupt>,
    sleeps_on: Option<Ticket>,
    notes: Vec<Note>,
    is_inattentive: bool,
}

impl WaitRegistry {
    pub(crate) fn new(nodes: usize, is_on: bool) -> WaitRegistry {
        WaitRegistry {
            is_on,
            nodes,
            client: None,
            last_call: 0,
            waiting: BTreeMap::new(),
            holding: HashMap::new(),
            removed: VecDeque::new(),
            sleepers: 0,
            live: NodeSet::EMPTY,
            woken: HashMap::new(),
            missed: HashMap::new(),
            has_woken: Arc::default(),
        }
    }

    /// Registers a call that is about to wait; `random` names the client if it has no name yet.
    /// Returns the client's name and the call's number.
    pub(crate) fn enter(&mut self, interrupt: &Arc<Interrupt>, random: u64) -> (u64, u64) {
        self.last_call += 1;
        let interrupt = Arc::clone(interrupt);
        let waiter = Waiter {
            interrupt,
            sleeps_on: None,
            notes: Vec::new(),
            is_inattentive: false,
        };
        self.waiting.insert(self.last_call, waiter);
        (*self.client.get_or_insert(random), self.last_call)
    }

    /// The client's name, once a call has waited.
    pub(crate) fn client(&self) -> Option<u64> {
        self.client
    }

    /// The call has the lock until then, unless it is extended.
    pub(crate) fn hold(&mut self, call: u64, until: Timestamp) {
        self.waiting.remove(&call);
        self.holding.insert(call, until);
    }

    /// The call has ended.
    pub(crate) fn leave(&mut self, call: u64) {
        self.waiting.remove(&call);
        self.holding.remove(&call);
    }

    /// The removal of the entry of a call that has ended was sent to these nodes.
    pub(crate) fn on_removed(&mut self, call: u64, nodes: NodeSet) {
        self.removed.push_back((call, nodes));
        if self.removed.len() > MOST_REMOVED {
            self.removed.pop_front();
        }
    }

    /// What was sent to these nodes may be lost.
    pub(crate) fn forget_removed(&mut self, nodes: NodeSet) {
        self.removed
            .iter_mut()
            .for_each(|(_, sent)| *sent = sent.without(nodes));
    }

    /// Whether any call waits.
    pub(crate) fn has_waiters(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether any thread sleeps.
    pub(crate) fn has_sleepers(&self) -> bool {
        self.sleepers > 0
    }

    /// A call begins a round, which finds out about all that has arrived so far.
    pub(crate) fn look_into(&mut self, call: u64) {
        if let Some(waiter) = self.waiting.get_mut(&call) {
            waiter.notes.clear();
            waiter.is_inattentive = false;
        }
    }

    /// A call goes to sleep; false when there is a reason to wake already.
    pub(crate) fn sleep(&mut self, call: u64, ticket: Ticket) -> bool {
        self.sleepers += 1;
        let Some(waiter) = self.waiting.get_mut(&call) else {
            return false;
        };
        waiter.sleeps_on = Some(ticket);
        waiter.notes.is_empty() && !waiter.is_inattentive && !waiter.interrupt.is_set()
    }

    /// A call is awake. Returns what has arrived for it.
    pub(crate) fn wake(&mut self, call: u64) -> Wakening {
        self.sleepers -= 1;
        let Some(waiter) = self.waiting.get_mut(&call) else {
            return Wakening::default();
        };
        waiter.sleeps_on = None;
        let is_inattentive = std::mem::take(&mut waiter.is_inattentive);
        Wakening {
            notes: std::mem::take(&mut waiter.notes),
            is_interrupted: waiter.interrupt.take(),
            is_inattentive,
        }
    }

    /// The calls that sleep and whose interrupt was set.
    pub(crate) fn interrupted(&self) -> impl Iterator<Item = Ticket> {
        self.waiting
            .values()
            .filter(|waiter| waiter.interrupt.is_set())
            .filter_map(|waiter| waiter.sleeps_on)
    }

    /// A node sent a message for a call.
    pub(crate) fn on_message(&mut self, call: u64, note: Note) -> Reaction {
        if let Some(waiter) = self.waiting.get_mut(&call) {
            waiter.note(note);
            return waiter.sleeps_on.map_or(Reaction::None, Reaction::Wake);
        }
        let mut removed = self.removed.iter();
        let is_expected = match self.holding.get(&call) {
            Some(&until) => note.at <= until,
            None => removed.any(|(ended, sent)| *ended == call && sent.contains(note.node)),
        };
        if is_expected {
            Reaction::None
        } else {
            Reaction::Leave
        }
    }

    /// A node has confirmed the subscription: each call that waits asks once. Returns those that
    /// sleep.
    pub(crate) fn on_confirmed(&mut self, node: NodeId, now: Timestamp) -> Vec<Ticket> {
        self.live.insert(node);
        let note = Note {
            node,
            message: Message::Confirmed,
            at: now,
        };
        self.with_waiters(|waiter| waiter.note(note))
    }

    /// The subscription at a node is lost. Returns the calls that sleep and that a release can
    /// escape now.
    pub(crate) fn on_lost(&mut self, node: NodeId) -> Vec<Ticket> {
        let was_attentive = self.is_attentive();
        self.live.set(node, false);
        if !was_attentive || self.is_attentive() {
            return Vec::new();
        }
        self.with_waiters(|waiter| waiter.is_inattentive = true)
    }

    /// Whether no release by a quorum goes unnoticed.
    pub(crate) fn is_attentive(&self) -> bool {
        self.is_attentive_without(NodeSet::EMPTY)
    }

    /// The same for a call that has no entry on these nodes.
    pub(crate) fn is_attentive_without(&self, unstored: NodeSet) -> bool {
        let quorum = self.nodes / 2 + 1;
        self.live.without(unstored).len() > self.nodes - quorum
    }

    /// A release of the lock with this key woke another client.
    pub(crate) fn record_woken(&mut self, key: &Arc<str>, now: Timestamp) {
        self.has_woken.store(true, Ordering::Relaxed);
        note(&mut self.woken, key, now);
    }

    /// When a release of this client woke another one, if within the last second: that may be about
    /// to take the lock.
    pub(crate) fn woke_another(&mut self, key: &str, now: Timestamp) -> Option<Timestamp> {
        self.woken
            .retain(|_, woken| now.since(*woken) < WOKEN_LASTS);
        self.has_woken
            .store(!self.woken.is_empty(), Ordering::Relaxed);
        self.woken.get(key).copied()
    }

    /// The lock with this key has changed hands without a message.
    pub(crate) fn record_missed_message(&mut self, key: &Arc<str>, now: Timestamp) {
        note(&mut self.missed, key, now);
    }

    /// Whether it has lately.
    pub(crate) fn misses_messages(&self, key: &str, now: Timestamp) -> bool {
        self.missed
            .get(key)
            .is_some_and(|&missed| now.since(missed) < MISSED_LASTS)
    }

    /// Does something with each call that waits. Returns those that sleep.
    fn with_waiters(&mut self, act: impl Fn(&mut Waiter)) -> Vec<Ticket> {
        let each = self.waiting.values_mut().filter_map(|waiter| {
            act(waiter);
            waiter.sleeps_on
        });
        each.collect()
    }
}

impl Waiter {
    /// Keeps a message, unless the same one of that node is kept: it bounds the memory.
    fn note(&mut self, note: Note) {
        let is_same = |other: &Note| other.node == note.node && other.message == note.message;
        if !self.notes.iter().any(is_same) {
            self.notes.push(note);
        }
    }
}

fn note(times: &mut HashMap<Arc<str>, Timestamp>, key: &Arc<str>, now: Timestamp) {
    if times.len() >= MOST_LOCKS {
        times.clear();
    }
    match times.get_mut(key) {
        Some(time) => *time = now,
        None => _ = times.insert(Arc::clone(key), now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::ticket;
    use crate::os::waker::Waker;

    const NOW: Timestamp = Timestamp::ORIGIN;

    fn later(millis: u64) -> Timestamp {
        NOW.after(Duration::from_millis(millis))
    }

    fn registry(nodes: usize) -> (WaitRegistry, Arc<Interrupt>) {
        let waker = Arc::new(Waker::new().unwrap());
        (
            WaitRegistry::new(nodes, true),
            Arc::new(Interrupt::new(&waker)),
        )
    }

    fn turn(node: usize) -> Note {
        Note {
            node: NodeId::new(node),
            message: Message::Turn(None),
            at: NOW,
        }
    }

    #[test]
    fn a_message_an_interrupt_and_the_end_of_attention_are_each_more_than_the_deadline() {
        let by_the_deadline = Wakening::default();
        assert!(!by_the_deadline.is_any());
        let is_any = |change: fn(&mut Wakening)| {
            let mut wakening = Wakening::default();
            change(&mut wakening);
            wakening.is_any()
        };
        assert!(is_any(|wakening| wakening.notes.push(turn(0))));
        assert!(is_any(|wakening| wakening.is_interrupted = true));
        assert!(is_any(|wakening| wakening.is_inattentive = true));
    }

    #[test]
    fn a_message_that_arrives_between_two_waits_ends_the_next_one() {
        let (mut registry, interrupt) = registry(3);
        let (client, call) = registry.enter(&interrupt, 7);
        assert_eq!(
            (client, registry.enter(&interrupt, 8).0),
            (7, 7),
            "a client keeps its name"
        );
        assert_eq!(
            registry.on_message(call, turn(0)),
            Reaction::None,
            "no call sleeps"
        );
        assert!(!registry.sleep(call, ticket(1)));
        assert_eq!(registry.wake(call).notes, [turn(0)]);
        registry.on_message(call, turn(0));
        registry.look_into(call);
        assert!(registry.sleep(call, ticket(2)), "the round has found out");
        assert_eq!(
            registry.on_message(call, turn(1)),
            Reaction::Wake(ticket(2))
        );
        registry.on_message(call, turn(1));
        assert_eq!(registry.wake(call).notes, [turn(1)], "once");
    }

    #[test]
    fn a_call_that_has_ended_leaves_and_one_that_holds_does_not() {
        let (mut registry, interrupt) = registry(1);
        let (_, call) = registry.enter(&interrupt, 7);
        registry.hold(call, later(100));
        assert_eq!(registry.on_message(call, turn(0)), Reaction::None);
        assert_eq!(
            registry.on_message(
                call,
                Note {
                    at: later(101),
                    ..turn(0)
                }
            ),
            Reaction::Leave
        );
        registry.leave(call);
        assert_eq!(registry.on_message(call, turn(0)), Reaction::Leave);
        assert!(!registry.has_waiters());
        registry.on_removed(call, NodeSet::first(1));
        assert_eq!(
            registry.on_message(call, turn(0)),
            Reaction::None,
            "it was sent before"
        );
        assert_eq!(registry.on_message(call, turn(1)), Reaction::Leave);
        registry.forget_removed(NodeSet::first(1));
        assert_eq!(
            registry.on_message(call, turn(0)),
            Reaction::Leave,
            "the removal may be lost"
        );
        (0..100).for_each(|call| registry.on_removed(call, NodeSet::first(1)));
        assert_eq!(registry.removed.len(), MOST_REMOVED);
    }

    #[test]
    fn waiters_learn_when_a_release_can_escape_them() {
        let (mut registry, interrupt) = registry(3);
        let (_, call) = registry.enter(&interrupt, 7);
        assert!(registry.on_confirmed(NodeId::new(0), NOW).is_empty() && !registry.is_attentive());
        registry.look_into(call);
        assert!(registry.sleep(call, ticket(1)));
        assert_eq!(registry.on_confirmed(NodeId::new(2), NOW), [ticket(1)]);
        assert!(
            registry.is_attentive(),
            "of every quorum, one node sends it a message"
        );
        let note = Note {
            node: NodeId::new(2),
            message: Message::Confirmed,
            at: NOW,
        };
        assert_eq!(registry.wake(call).notes, [note]);
        assert!(registry.sleep(call, ticket(2)));
        assert_eq!(registry.on_lost(NodeId::new(0)), [ticket(2)]);
        assert!(registry.wake(call).is_inattentive && registry.on_lost(NodeId::new(2)).is_empty());
    }

    #[test]
    fn what_is_known_of_a_lock_ends() {
        let (mut registry, _) = registry(1);
        registry.record_woken(&"k".into(), NOW);
        assert!(
            registry.woke_another("k", later(999)) == Some(NOW)
                && registry.has_woken.load(Ordering::Relaxed)
        );
        assert!(
            registry.woke_another("k", later(1000)).is_none()
                && !registry.has_woken.load(Ordering::Relaxed)
        );
        registry.record_missed_message(&"k".into(), NOW);
        assert!(
            registry.misses_messages("k", later(9_999))
                && !registry.misses_messages("k", later(10_000))
        );
        for number in 0..2000u32 {
            registry.record_missed_message(&number.to_string().into(), NOW);
        }
        assert!(registry.missed.len() <= MOST_LOCKS);
    }
    #[test]
    fn no_release_goes_unnoticed_while_every_quorum_has_a_node_that_tells() {
        for (nodes, least) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)] {
            let (mut registry, _) = registry(nodes);
            let live = (0..nodes).map(|node| {
                registry.on_confirmed(NodeId::new(node), NOW);
                registry.is_attentive()
            });
            let is_attentive: Vec<bool> = live.collect();
            let expected: Vec<bool> = (1..=nodes).map(|live| live >= least).collect();
            assert_eq!(is_attentive, expected, "{nodes} nodes");
        }
    }

    #[test]
    fn messages_that_differ_in_node_or_words_are_kept() {
        let (mut registry, interrupt) = registry(3);
        let (_, call) = registry.enter(&interrupt, 7);
        registry.sleep(call, ticket(1));
        let next = Note {
            message: Message::Next,
            ..turn(0)
        };
        let notes = [turn(0), turn(1), next];
        for note in notes {
            registry.on_message(call, note);
        }
        assert_eq!(registry.wake(call).notes, notes);
    }

    #[test]
    fn several_locks_are_known() {
        let (mut registry, _) = registry(1);
        for key in ["a", "b"] {
            registry.record_missed_message(&key.into(), NOW);
        }
        assert!(
            ["a", "b"]
                .iter()
                .all(|key| registry.misses_messages(key, NOW))
        );
    }
}
