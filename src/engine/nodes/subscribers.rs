//! Waits for releases: the waiters, and a [`Subscriber`] for each node that has a connection.
//!
//! A waiter is a thread that waits on a round that asks for nothing. It drives like any other waiting thread. A
//! published release of its key ends that wait, and so does its [`Interrupt`] or its deadline
//! ([`wait_registry`](crate::engine::wait_registry)).
//!
//! Nothing is subscribed to without a waiter, or a thread that will wait with the place that it has already in the
//! queue of a fair lock, nor for a wait that is shorter than two attempts. Connections without a
//! subscription are kept for a moment after the last waiter has acquired its lock, because a client that has waited for
//! a lock often waits for it again; likewise after one wait of several in a row. The next operation closes them after
//! that.

use super::poll_list::PollList;
use crate::algorithm::fault::Fault;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::place::PlaceId;
use crate::algorithm::time::Timestamp;
use crate::engine::driver::WaitSlots;
use crate::engine::interrupt::Interrupt;
use crate::engine::node_connection::NodeConnection;
use crate::engine::rounds::{Purpose, Rounds};
use crate::engine::subscriber::Subscriber;
use crate::engine::wait_registry::{KeyWaiters, WaitRegistry, Waiter, WakeReason};
use crate::events::event_queue::{EventQueue, PendingEvent, Side};
use crate::os::watch::Watch;
use crate::protocol::publish::Message;
use crate::protocol::session::Ticket;
use crate::protocol::subscription::{Key, SubscriptionEvent};
use std::sync::Arc;
use std::time::Duration;

/// How long connections without a subscription are kept.
const LINGER: Duration = Duration::from_millis(100);
/// Shortest time between two attempts to make a connection that is missing.
const SHORTEST_RETRY: Duration = Duration::from_millis(10);

/// The waiters, by key, and the subscriber connections, by node.
pub(super) struct Subscribers {
    pub(super) registry: WaitRegistry,
    /// None before the first wait.
    connections: Vec<Subscriber>,
    /// When the last waiter acquired its lock, or ended one of several waits in a row.
    idle_since: Timestamp,
    /// When a wait last ended, and whether the present ones began soon after that.
    last_wait_ended_at: Timestamp,
    follows_wait: bool,
    /// The nodes whose refusal of SUBSCRIBE, or of PUBLISH, was reported.
    subscribe_denied: NodeSet,
    publish_denied: NodeSet,
    /// Where refusals are reported, if anywhere.
    events: Option<Arc<EventQueue>>,
}

impl Subscribers {
    pub(super) fn new(nodes: usize, is_on: bool, events: Option<Arc<EventQueue>>) -> Subscribers {
        Subscribers {
            registry: WaitRegistry::new(nodes, is_on),
            connections: Vec::new(),
            idle_since: Timestamp::ORIGIN,
            last_wait_ended_at: Timestamp::ORIGIN,
            follows_wait: false,
            subscribe_denied: NodeSet::EMPTY,
            publish_denied: NodeSet::EMPTY,
            events,
        }
    }

    /// Whether releases are published and subscribed to.
    pub(super) fn is_on(&self) -> bool {
        self.registry.is_on
    }

    /// Registers a waiter for any of these keys. `subscribes`: it waits for long enough. True when there is something
    /// new to poll for.
    pub(super) fn listen(&mut self, keys: &[Key], subscribes: bool, nodes: &[NodeConnection], now: Timestamp) -> bool {
        if self.registry.waiters_by_key.is_empty() {
            self.follows_wait = now.since(self.last_wait_ended_at) < LINGER;
        }
        let mut is_changed = false;
        for key in keys {
            if !self.registry.enter(key, subscribes && self.is_on()) {
                continue;
            }
            if self.connections.is_empty() {
                self.connections.extend((0..nodes.len()).map(|index| Subscriber::new(NodeId::new(index))));
            }
            for subscriber in &mut self.connections {
                subscriber.subscribe(key, now);
            }
            is_changed = true;
        }
        self.registry.group(keys);
        if is_changed {
            self.connect(nodes, now);
        }
        is_changed
    }

    /// Unregisters a waiter. `has_won`: it acquired the lock. `successor`: the next call for a fair lock, for which the
    /// subscription stays.
    pub(super) fn unlisten(
        &mut self,
        keys: &[Key],
        (has_won, successor): (bool, Option<PlaceId>),
        poll: &mut PollList,
        now: Timestamp,
    ) {
        // The first one counts for all, and goes last.
        for key in keys.iter().rev() {
            let was_subscribed = self.registry.leave(key, (has_won, successor), now).unwrap_or(false);
            self.unsubscribe(key, was_subscribed, now);
        }
        if keys.first().is_some_and(|key| self.registry.waiters_by_key.contains_key(key)) {
            return;
        }
        self.last_wait_ended_at = now;
        self.idle_since = if has_won || self.follows_wait { now } else { Timestamp::ORIGIN };
        self.close_idle(poll, now);
    }

    /// Ends the subscription to a key that has stayed for a call that none will make.
    pub(super) fn forget_successor(&mut self, keys: &[Key], poll: &mut PollList, now: Timestamp) {
        for key in keys {
            let was_subscribed = self.registry.forget_successor(key);
            self.unsubscribe(key, was_subscribed, now);
        }
        self.close_idle(poll, now);
    }

    fn unsubscribe(&mut self, key: &Key, was_subscribed: bool, now: Timestamp) {
        for subscriber in self.connections.iter_mut().filter(|_| was_subscribed) {
            subscriber.unsubscribe(key, now);
        }
    }

    /// Begins a wait. It ends at once when something has happened, or the interrupt was set, before. Gives its ticket,
    /// and whether there is something new to poll for.
    pub(super) fn sleep(
        &mut self,
        (keys, interrupt): (&[Key], &Arc<Interrupt>),
        nodes: &[NodeConnection],
        rounds: &mut Rounds,
        now: Timestamp,
        notify: &mut WaitSlots,
    ) -> (Ticket, bool) {
        let no_token = OwnerToken::from_entropy([0; OwnerToken::ENTROPY]);
        let ticket = rounds.open(Purpose::Wait, b"", &no_token);
        rounds.set_soft_deadline(ticket, true);
        let is_opened = self.connect(nodes, now);
        // The driver polls the subscriber connections only while there are waiters.
        let is_changed = is_opened || !self.registry.has_sleepers();
        for key in keys {
            if !self.registry.sleep(key, Waiter::new(ticket, interrupt)) {
                rounds.end_wait(ticket, notify);
            }
        }
        (ticket, is_changed)
    }

    /// Ends a wait, and gives what has ended it before its deadline, and the place of its key.
    pub(super) fn wake(&mut self, ticket: Ticket, keys: &[Key], rounds: &mut Rounds) -> Option<(WakeReason, usize)> {
        rounds.unrefer(ticket);
        self.registry.wake_of(keys, ticket)
    }

    /// Closes connections that have had no subscription for a moment.
    pub(super) fn close_idle(&mut self, poll: &mut PollList, now: Timestamp) {
        let is_recent = self.idle_since > Timestamp::ORIGIN && now.since(self.idle_since) < LINGER;
        let is_idle = self.registry.waiters_by_key.is_empty() && !is_recent;
        if is_idle && !self.connections.iter().all(Subscriber::is_closed) {
            self.connections.iter_mut().for_each(Subscriber::close);
            poll.forget_subscribers();
        }
    }

    /// Drops all connections.
    pub(super) fn clear(&mut self) {
        self.connections = Vec::new();
    }

    /// Puts the connections on the list to poll, and bounds the poll by the next connection that is to be made.
    /// Messages that arrive while there is no waiter stay unread until there is one: an attempt that follows the
    /// message of one node is not repeated for the same message of other nodes.
    pub(super) fn list(&self, watch: &mut Watch, nodes: &[NodeConnection], now: Timestamp) {
        let connections = if self.registry.has_sleepers() { &self.connections[..] } else { &[] };
        let due = connections.iter().zip(nodes).map(|(subscriber, node)| subscriber.due(node)).min();
        watch.limit = match due {
            None | Some(Timestamp::NEVER) => Duration::MAX,
            Some(due) => due.since(now).max(SHORTEST_RETRY),
        };
        watch.subscribers.resize_with(connections.len(), || None);
        for (subscriber, interest) in connections.iter().zip(&mut watch.subscribers) {
            if !subscriber.is_interested_in(interest.as_ref()) {
                *interest = subscriber.interest();
            }
        }
    }

    /// Processes what a poll has found: interrupts, messages, and connections that are missing. True when there is
    /// something new to poll for.
    pub(super) fn absorb(
        &mut self,
        watch: &mut Watch,
        nodes: &[NodeConnection],
        rounds: &mut Rounds,
        now: Timestamp,
        notify: &mut WaitSlots,
    ) -> bool {
        if watch.woken {
            for waiter in self.registry.waiters_by_key.values().flat_map(|waiters| &waiters.sleepers) {
                if waiter.interrupt.is_set() {
                    rounds.end_wait(waiter.ticket, notify);
                }
            }
        }
        if self.connections.is_empty() {
            watch.subscribers.clear();
            return false;
        }
        for node in watch.readable_subscribers.iter() {
            let interest = watch.subscribers.get(node.index()).and_then(Option::as_ref);
            if interest.is_some_and(|interest| self.connections[node.index()].is_on(&interest.stream)) {
                self.read(node, rounds, now, notify);
            }
        }
        let is_changed = !self.registry.waiters_by_key.is_empty() && self.connect(nodes, now);
        for (subscriber, interest) in self.connections.iter().zip(&mut watch.subscribers) {
            if interest.as_ref().is_some_and(|interest| !subscriber.is_on(&interest.stream)) {
                *interest = None;
            }
        }
        is_changed
    }

    /// Reports once that a node does not permit PUBLISH.
    pub(super) fn note_publish_denied(&mut self, node: NodeId, fault: Fault) {
        if self.publish_denied.insert(node) {
            self.report_refusal(Side::Publishing, node, fault);
        }
    }

    fn read(&mut self, node: NodeId, rounds: &mut Rounds, now: Timestamp, notify: &mut WaitSlots) {
        let registry = &mut self.registry;
        let mut refusal = None;
        let is_open = self.connections[node.index()].ready(now, |event| match event {
            SubscriptionEvent::Confirmed(key) => end_waits(rounds, registry.confirmed(&key, node), notify),
            SubscriptionEvent::Received(key, Message::Released(hint)) => {
                end_waits(rounds, registry.announced(&key, node, hint, now), notify)
            }
            SubscriptionEvent::Received(key, Message::Passed(hint, first)) => {
                end_waits(rounds, registry.passed(&key, node, (hint, first), now), notify)
            }
            SubscriptionEvent::Received(key, Message::Waiting(number)) => registry.counted(&key, number),
            SubscriptionEvent::Refused(fault) => refusal = Some(fault),
        });
        if !is_open {
            self.registry.lost(node).into_iter().for_each(|waiters| end_waits(rounds, Some(waiters), notify));
        }
        if let Some(fault) = refusal
            && self.subscribe_denied.insert(node)
        {
            self.report_refusal(Side::Listening, node, fault);
        }
    }

    /// Makes the connections that are missing, as far as that is possible now. True when one was begun.
    fn connect(&mut self, nodes: &[NodeConnection], now: Timestamp) -> bool {
        let mut lost = NodeSet::EMPTY;
        let mut is_begun = false;
        for (index, (subscriber, node)) in self.connections.iter_mut().zip(nodes).enumerate() {
            let was_closed = subscriber.is_closed();
            if subscriber.maintain(node, self.registry.subscribed(), now) {
                lost.insert(NodeId::new(index));
            }
            is_begun |= was_closed && !subscriber.is_closed();
        }
        // They are woken by their next attempt, or by the next confirmation.
        lost.iter().for_each(|node| drop(self.registry.lost(node)));
        is_begun
    }

    fn report_refusal(&self, side: Side, node: NodeId, fault: Fault) {
        if let Some(events) = &self.events {
            events.push(PendingEvent::ReleaseNotificationsRefused(side, node, fault));
        }
    }
}

/// Ends the waits for a key that something was learned about.
fn end_waits(rounds: &mut Rounds, waiters: Option<&KeyWaiters>, notify: &mut WaitSlots) {
    for waiter in waiters.into_iter().flat_map(|waiters| &waiters.sleepers) {
        rounds.end_wait(waiter.ticket, notify);
    }
}
