//! The queues of locks, as the calls of this client use them: entries that are stored and removed without a thread that
//! waits for it, and sleep until a message.

use super::Nodes;
use crate::algorithm::kind::Kind;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::time::Timestamp;
use crate::engine::interrupt::Interrupt;
use crate::engine::rounds::Purpose;
use crate::protocol::lock_key::LockKey;
use crate::protocol::operation::{Operation, Verb};
use crate::protocol::session::Ticket;
use crate::protocol::subscription::Notice;
use std::sync::Arc;

impl Nodes {
    /// Registers a call that is about to wait, and subscribes to the client's channel. Returns the client's name and
    /// the call's number.
    pub(in crate::engine) fn enter_queue(
        &mut self,
        interrupt: &Arc<Interrupt>,
        random: u64,
        now: Timestamp,
    ) -> (u64, u64) {
        let call = self.subscribers.registry.enter(interrupt, random);
        self.subscribers.open(&self.connections, &mut self.poll, now);
        call
    }

    /// Has these nodes, as far as they are connected, store a call's entry, remove it, or without one tell those that
    /// wait. Where no connection takes the removal of an entry, its client is told, and removes it then. No thread
    /// waits for it.
    pub(in crate::engine) fn update_queue(
        &mut self,
        key: &Arc<str>,
        kind: Kind,
        verb: Verb,
        nodes: NodeSet,
        now: Timestamp,
    ) {
        self.queue_entry(key, self.commands.operation(kind, verb), nodes, now);
        if let Verb::Leave(Some(entry)) = verb {
            self.subscribers.note_removed(entry, nodes);
        }
    }

    /// A call that has ended got a message: its entry is removed on that node.
    pub(super) fn leave_ended(&mut self, node: NodeId, notice: &Notice, now: Timestamp) {
        let entry = notice.entry;
        self.update_queue(&notice.key, Kind::of_entry(entry.kind), Verb::Leave(Some(entry)), NodeSet::only(node), now);
    }

    /// Queues an operation on a queue for those of these nodes that can run it. No thread waits for it.
    pub(super) fn queue_entry(&mut self, key: &Arc<str>, operation: Operation, nodes: NodeSet, now: Timestamp) {
        let ready: NodeSet = nodes.iter().filter(|node| self.node(*node).runs_releases()).collect();
        self.subscribers.note_left(nodes.without(ready), &mut self.poll, now);
        if ready.is_empty() {
            return;
        }
        let token = OwnerToken::from_entropy([0; OwnerToken::ENTROPY]);
        let ticket = self.rounds.open_command(Purpose::Entry, &LockKey::One(Arc::clone(key)), &token, operation);
        self.queue(ticket, ready, now);
        self.rounds.disown(ticket);
    }

    /// Begins a wait for messages to a call. It ends at once when something has arrived, or the interrupt was set,
    /// before.
    pub(in crate::engine) fn sleep(&mut self, call: u64, now: Timestamp) -> Ticket {
        self.subscribers.sleep(call, &self.connections, &mut self.rounds, &mut self.poll, now)
    }

    /// A call waits no more.
    pub(in crate::engine) fn note_wait_ended(&mut self, now: Timestamp) {
        self.subscribers.note_wait_ended(&mut self.poll, now);
    }

    /// The nodes that do not permit the subscription, if they are so many that no quorum of messages arrives.
    pub(in crate::engine) fn denied_subscriptions(&self) -> Option<NodeSet> {
        let denied = self.subscribers.subscribe_denied;
        (denied.len() > self.connections.len() - (self.connections.len() / 2 + 1)).then_some(denied)
    }
}
