//! A call of this client that waits in the queues of a lock.

use super::driver::Driver;
use super::interrupt::Interrupt;
use super::nodes::Nodes;
use super::wait_registry::Wakening;
use crate::algorithm::kind::Kind;
use crate::algorithm::node::NodeSet;
use crate::algorithm::queue::Entry;
use crate::algorithm::time::Timestamp;
use crate::protocol::operation::Verb;
use std::sync::Arc;

/// The registration of such a call. Dropping it removes its entries from the queues, unless the
/// call has won.
pub(crate) struct Seat<'e> {
    pub(super) driver: &'e Driver<Nodes>,
    pub(super) key: Arc<str>,
    pub(super) kind: Kind,
    pub(super) entry: Entry,
    pub(super) interrupt: Arc<Interrupt>,
    /// The nodes that may have its entry.
    pub(super) may_have: NodeSet,
    pub(super) has_won: bool,
}

impl Seat<'_> {
    /// The call's entry.
    pub(crate) fn entry(&self) -> Entry {
        self.entry
    }

    /// What ends a wait from outside.
    pub(crate) fn interrupt(&self) -> &Arc<Interrupt> {
        &self.interrupt
    }

    /// A round may have stored the entry on these nodes.
    pub(crate) fn record_stored(&mut self, nodes: NodeSet) {
        self.may_have = self.may_have.union(nodes);
    }

    /// Has these nodes remove the entry. The call goes on to wait.
    pub(crate) fn step_aside(&self, nodes: NodeSet) {
        let key = &self.key;
        let leave = Verb::Leave(Some(self.entry));
        self.driver
            .enter(|all, now| all.update_queue(key, self.kind, leave, nodes, now));
    }

    /// Waits until then at the latest, and returns what has arrived.
    pub(crate) fn wait(&self, until: Timestamp) -> Wakening {
        self.driver.run(
            |nodes, now| {
                let ticket = nodes.subscribers.sleep(
                    self.entry.number,
                    &mut nodes.connections,
                    &mut nodes.rounds,
                    now,
                );
                (ticket, until)
            },
            |nodes, ticket| {
                nodes.rounds.unrefer(ticket);
                nodes.subscribers.registry.wake(self.entry.number)
            },
        )
    }

    /// Whether every release by a quorum is certain to be noticed, though these nodes have no
    /// entry.
    pub(crate) fn is_attentive(&self, unstored: NodeSet) -> bool {
        self.driver.enter(|nodes, now| {
            let registry = &mut nodes.subscribers.registry;
            registry.is_attentive_without(unstored) && !registry.misses_messages(&self.key, now)
        })
    }

    /// The nodes that do not permit the subscription, if they are so many that no quorum of
    /// messages arrives.
    pub(crate) fn denied(&self) -> Option<NodeSet> {
        self.driver.enter(|nodes, _| nodes.denied_subscriptions())
    }

    /// The lock has changed hands, and no message arrived. Before the channel is subscribed to,
    /// none can.
    pub(crate) fn record_missed_message(&self) {
        self.driver.enter(|nodes, now| {
            let registry = &mut nodes.subscribers.registry;
            if registry.is_attentive() {
                registry.record_missed_message(&self.key, now);
            }
        });
    }

    /// The call has won the lock, and has it until then unless that is extended. Its release
    /// removes the entry, and has to reach the nodes that this returns.
    pub(crate) fn win(mut self, until: Timestamp) -> NodeSet {
        self.has_won = true;
        self.driver
            .enter(|nodes, _| nodes.subscribers.registry.hold(self.entry.number, until));
        self.may_have
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let Seat {
            ref key,
            kind,
            entry,
            may_have,
            has_won,
            ..
        } = *self;
        self.driver.enter(|nodes, now| {
            if !has_won {
                nodes.subscribers.registry.leave(entry.number);
                nodes.update_queue(key, kind, Verb::Leave(Some(entry)), may_have, now);
            }
            nodes.subscribers.on_wait_ended(&mut nodes.connections, now);
        });
    }
}
