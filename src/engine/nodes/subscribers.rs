//! The subscriber connections, one for each node: the client's channel, on which calls that wait
//! are told.
//!
//! They are made when a call first waits, and kept for a minute after the last wait, because a
//! client that has waited for a lock often waits for it again. The next operation closes them after
//! that. A call that waits is a thread that waits on a round that asks for nothing. It drives like
//! any other waiting thread; a message for the call ends that wait, and so does its
//! [`Interrupt`](crate::engine::interrupt::Interrupt) or its deadline
//! ([`wait_registry`](crate::engine::wait_registry)).

use super::connections::Connections;
use super::poll_list::PollList;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::queue::Entry;
use crate::algorithm::time::Timestamp;
use crate::engine::interrupt::Interrupt;
use crate::engine::node_connection::NodeConnection;
use crate::engine::rounds::{Purpose, Rounds};
use crate::engine::subscriber::Subscriber;
use crate::engine::wait_registry::{Note, Reaction, WaitRegistry};
use crate::events::event::Event;
use crate::events::event_queue::EventQueue;
use crate::fault::Fault;
use crate::os::watch::Watch;
use crate::protocol::session::Ticket;
use crate::protocol::subscription::{Notice, SubscriptionEvent};
use std::sync::Arc;
use std::time::Duration;

/// How long connections are kept after the last wait.
const LINGER: Duration = Duration::from_secs(60);
/// Most scripts that are run again within so long: each has removed 10 000 entries.
const MOST_REPEATS: u32 = 16;
const REPEATS_WITHIN: Duration = Duration::from_secs(1);
/// Shortest time between two attempts to make a connection that is missing.
const SHORTEST_RETRY: Duration = Duration::from_millis(10);

/// The calls that wait, and the subscriber connections, by node.
pub(in crate::engine) struct Subscribers {
    pub(in crate::engine) registry: WaitRegistry,
    /// None before the first wait.
    pub(super) connections: Vec<Subscriber>,
    last_wait_ended_at: Timestamp,
    /// The nodes where entries of calls that have ended may be left, and since when there are no
    /// more of them. While no call waits, no thread reads messages: without a connection these
    /// entries count as dead.
    left: NodeSet,
    left_at: Timestamp,
    /// How often scripts that had not removed all dead entries were run again, since when.
    repeats: (u32, Timestamp),
    /// The nodes whose refusal of SUBSCRIBE, or of PUBLISH, was reported.
    pub(in crate::engine) subscribe_denied: NodeSet,
    publish_denied: NodeSet,
    /// Where refusals are reported, if anywhere.
    events: Option<Arc<EventQueue>>,
}

impl Subscribers {
    pub(super) fn new(nodes: usize, is_on: bool, events: Option<Arc<EventQueue>>) -> Subscribers {
        Subscribers {
            registry: WaitRegistry::new(nodes, is_on),
            connections: Vec::new(),
            last_wait_ended_at: Timestamp::ORIGIN,
            left: NodeSet::EMPTY,
            left_at: Timestamp::ORIGIN,
            repeats: (0, Timestamp::ORIGIN),
            subscribe_denied: NodeSet::EMPTY,
            publish_denied: NodeSet::EMPTY,
            events,
        }
    }

    /// Registers a call that is about to wait, and makes the connections for it. Returns the
    /// client's name and the call's number.
    pub(in crate::engine) fn enter(
        &mut self,
        interrupt: &Arc<Interrupt>,
        random: u64,
        nodes: &mut Connections,
        now: Timestamp,
    ) -> (u64, u64) {
        let call = self.registry.enter(interrupt, random);
        if self.registry.is_on && self.connections.is_empty() {
            self.connections.extend(nodes.nodes().map(Subscriber::new));
        }
        self.connect(nodes, now);
        call
    }

    /// A call waits no more.
    pub(in crate::engine) fn on_wait_ended(&mut self, nodes: &mut Connections, now: Timestamp) {
        self.last_wait_ended_at = now;
        self.close_left(&mut nodes.poll, now);
    }

    /// Entries may be left on these nodes: their removal, or a request that stores them, was lost
    /// or comes late.
    pub(super) fn on_left(&mut self, nodes: NodeSet, poll: &mut PollList, now: Timestamp) {
        if self.registry.client().is_some() && !nodes.is_empty() {
            self.left = self.left.union(nodes);
            self.left_at = now;
            self.registry.forget_removed(nodes);
            self.close_left(poll, now);
        }
    }

    /// The removal of the entry of a call that has ended was sent to these nodes. Where a request
    /// that stores it may come late, it may be stored again.
    pub(super) fn on_removed(&mut self, entry: Entry, nodes: NodeSet) {
        self.registry
            .on_removed(entry.number, nodes.without(self.left));
    }

    /// Whether a script that has not removed all dead entries is run again: not for ever, where a
    /// node always reports that.
    pub(super) fn may_repeat(&mut self, now: Timestamp) -> bool {
        let (count, since) = &mut self.repeats;
        if now.since(*since) >= REPEATS_WITHIN {
            (*count, *since) = (0, now);
        }
        *count += 1;
        *count <= MOST_REPEATS
    }

    fn close_left(&mut self, poll: &mut PollList, now: Timestamp) {
        // Queues are kept for as long after the last call has asked.
        if now.since(self.left_at) >= LINGER {
            self.left = NodeSet::EMPTY;
        }
        if self.left.is_empty() || self.registry.has_waiters() {
            return;
        }
        self.close(self.left, poll);
    }

    /// Closes connections. While calls wait, they are made again.
    pub(super) fn close(&mut self, nodes: NodeSet, poll: &mut PollList) {
        for subscriber in self
            .connections
            .iter_mut()
            .filter(|subscriber| nodes.contains(subscriber.node()))
        {
            subscriber.close();
            self.registry.on_lost(subscriber.node());
        }
        poll.forget_subscribers();
    }

    /// Begins the wait of a call for messages. It ends at once when something has arrived, or the
    /// interrupt was set, before.
    pub(in crate::engine) fn sleep(
        &mut self,
        call: u64,
        nodes: &mut Connections,
        rounds: &mut Rounds,
        now: Timestamp,
    ) -> Ticket {
        let ticket = rounds.open(Purpose::Wait);
        self.connect(nodes, now);
        // The driver polls the subscriber connections only while calls sleep.
        nodes.poll.record_change(!self.registry.has_sleepers());
        if !self.registry.sleep(call, ticket) {
            rounds.end_wait(ticket);
        }
        ticket
    }

    /// Closes the connections if no call has waited for a while.
    pub(super) fn close_idle(&mut self, poll: &mut PollList, now: Timestamp) {
        let is_idle = now.since(self.last_wait_ended_at) >= LINGER && !self.registry.has_waiters();
        if is_idle && !self.connections.iter().all(Subscriber::is_closed) {
            self.close(NodeSet::first(self.connections.len()), poll);
        }
    }

    /// Puts the connections on the list to poll, and bounds the poll by the next connection that is
    /// to be made.
    pub(super) fn list(&self, watch: &mut Watch, nodes: &[NodeConnection], now: Timestamp) {
        let connections = if self.registry.has_sleepers() {
            &self.connections[..]
        } else {
            &[]
        };
        let due = connections
            .iter()
            .zip(nodes)
            .map(|(subscriber, node)| subscriber.due(node))
            .min();
        watch.limit = match due {
            None | Some(Timestamp::NEVER) => Duration::MAX,
            Some(due) => due.since(now).max(SHORTEST_RETRY),
        };
        watch.subscribers.clear();
        watch
            .subscribers
            .extend(connections.iter().map(Subscriber::interest));
    }

    /// Processes what a poll has found: interrupts, messages, and connections that are missing.
    /// Returns the messages for calls that have ended.
    #[inline]
    pub(super) fn absorb(
        &mut self,
        watch: &mut Watch,
        nodes: &mut Connections,
        rounds: &mut Rounds,
        now: Timestamp,
    ) -> Vec<(NodeId, Notice)> {
        let mut ended = Vec::new();
        if watch.woken {
            self.registry
                .interrupted()
                .for_each(|ticket| rounds.end_wait(ticket));
        }
        if self.connections.is_empty() {
            watch.subscribers.clear();
            return ended;
        }
        for node in watch.readable_subscribers.iter() {
            let interest = watch.subscribers.get(node.index()).and_then(Option::as_ref);
            if interest
                .is_some_and(|interest| self.connections[node.index()].is_on(&interest.stream))
            {
                self.read(node, rounds, &mut ended, now);
            }
        }
        if self.registry.has_waiters() {
            self.connect(nodes, now);
        }
        for (subscriber, interest) in self.connections.iter().zip(&mut watch.subscribers) {
            if interest
                .as_ref()
                .is_some_and(|interest| !subscriber.is_on(&interest.stream))
            {
                *interest = None;
            }
        }
        ended
    }

    /// Reports once that a node does not permit PUBLISH.
    pub(super) fn on_publish_denied(&mut self, node: NodeId, fault: Fault) {
        if self.publish_denied.insert(node) {
            self.report_refusal(node, fault, true);
        }
    }

    fn read(
        &mut self,
        node: NodeId,
        rounds: &mut Rounds,
        ended: &mut Vec<(NodeId, Notice)>,
        now: Timestamp,
    ) {
        let registry = &mut self.registry;
        let mut refusal = None;
        let mut is_confirmed = false;
        let is_open = self.connections[node.index()].ready(now, |event| match event {
            SubscriptionEvent::Confirmed => {
                is_confirmed = true;
                registry
                    .on_confirmed(node, now)
                    .into_iter()
                    .for_each(|ticket| rounds.end_wait(ticket));
            }
            SubscriptionEvent::Received(notice) => {
                let note = Note {
                    node,
                    message: notice.message,
                    at: now,
                };
                match registry.on_message(notice.entry.number, note) {
                    Reaction::None => {}
                    // A call that has ended may have got several.
                    Reaction::Leave
                        if ended
                            .iter()
                            .any(|(at, other)| *at == node && other.entry == notice.entry) => {}
                    Reaction::Leave => ended.push((node, notice)),
                    Reaction::Wake(ticket) => rounds.end_wait(ticket),
                }
            }
            SubscriptionEvent::Refused(fault) => refusal = Some(fault),
        });
        if is_confirmed {
            self.subscribe_denied.set(node, false);
        }
        if !is_open {
            self.registry
                .on_lost(node)
                .into_iter()
                .for_each(|ticket| rounds.end_wait(ticket));
        }
        if let Some(fault) = refusal
            && self.subscribe_denied.insert(node)
        {
            self.report_refusal(node, fault, false);
        }
    }

    /// Makes the connections that are missing, as far as that is possible now.
    fn connect(&mut self, nodes: &mut Connections, now: Timestamp) {
        let Some(client) = self.registry.client() else {
            return;
        };
        for (subscriber, node) in self.connections.iter_mut().zip(&nodes.each) {
            let was_closed = subscriber.is_closed();
            if subscriber.maintain(node, client, now) {
                // Its calls are woken by their next attempt, or by the next confirmation.
                self.registry.on_lost(subscriber.node());
            }
            nodes
                .poll
                .record_change(was_closed && !subscriber.is_closed());
        }
    }

    fn report_refusal(&self, node: NodeId, fault: Fault, is_publishing: bool) {
        if let Some(events) = &self.events {
            events.push(|names| Event::ReleaseNotificationsRefused {
                node: names.node(node),
                fault: names.fault(node, fault),
                is_publishing,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_always_reports_more_dead_entries_is_not_asked_for_ever() {
        let mut subscribers = Subscribers::new(1, true, None);
        let repeated_at = |millis| {
            let now = Timestamp::ORIGIN.after(Duration::from_millis(millis));
            (0..100).filter(|_| subscribers.may_repeat(now)).count()
        };
        assert_eq!([0, 999, 1_000, 1_500].map(repeated_at), [16, 0, 16, 0]);
    }
}
