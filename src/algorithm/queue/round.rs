//! The replies of one round of a call that asks in its turn.

use super::reply::QueueReply;
use super::setup::{Setup, latest_ticket};
use crate::algorithm::node::{NodeId, NodeSet, ascending};
use crate::algorithm::time::Timestamp;
use std::time::Duration;

/// What a round comes to, from the replies of the nodes that did not grant.
#[derive(Clone, Debug, Default)]
pub struct QueueRound {
    /// The call's ticket, if it had one; no reply changes it.
    own: Option<u64>,
    /// The greatest ticket that the client's clock explains.
    latest: u64,
    /// The replies of the nodes that did not grant.
    pub replies: Vec<(NodeId, QueueReply)>,
    /// The nodes that refused, and have no queue.
    pub without_queue: NodeSet,
    /// Whether it asks without the script: no node replies about its queue.
    pub is_by_command: bool,
}

impl QueueRound {
    /// A round of a call with this ticket. `latest`: the client's clock explains no greater one.
    pub fn new(own: Option<u64>, latest: u64) -> QueueRound {
        QueueRound {
            own,
            latest,
            ..QueueRound::default()
        }
    }

    /// A node replied, and did not grant.
    pub fn on_refused(&mut self, node: NodeId, reply: QueueReply) {
        self.replies.push((node, reply));
    }

    /// The same, and whether it asks without the script: no node replies about its queue.
    #[must_use]
    pub fn by_command(self, is_by_command: bool) -> QueueRound {
        QueueRound {
            is_by_command,
            ..self
        }
    }

    /// These nodes refused in all. If they have replied nothing about a queue, they have none.
    pub fn on_refusals(&mut self, refused: NodeSet) {
        self.without_queue = refused.without(self.nodes());
    }

    /// The call's ticket from this round on: its own, or the greatest reply. One that neither the
    /// client's clock nor another node explains is damage, or a lie; if all are so, it is the
    /// least.
    pub fn ticket(&self) -> u64 {
        let tickets = ascending(self.replies.iter().map(|(_, reply)| reply.ticket));
        let is_explained = |pair: &&[u64]| pair[1] <= self.latest.max(latest_ticket(pair[0]));
        let greatest = tickets
            .windows(2)
            .rev()
            .find(is_explained)
            .map(|pair| pair[1]);
        self.own
            .or(greatest)
            .or(tickets.first().copied())
            .unwrap_or(0)
    }

    /// The nodes that have stored exactly that.
    pub fn exact(&self) -> NodeSet {
        let ticket = self.ticket();
        self.nodes_where(|reply| reply.ticket == ticket && reply.storage.is_stored())
    }

    /// The nodes that replied.
    pub fn nodes(&self) -> NodeSet {
        self.nodes_where(|_| true)
    }

    fn nodes_where(&self, is_one: impl Fn(&QueueReply) -> bool) -> NodeSet {
        let found = self.replies.iter().filter(|(_, reply)| is_one(reply));
        found.map(|&(node, _)| node).collect()
    }

    /// How many entries are in front, on the node with the fewest.
    pub fn rank(&self) -> Option<u32> {
        self.replies.iter().map(|(_, reply)| reply.rank).min()
    }

    /// Whether a node has one entry in front of a lock that is free: that one may have ended.
    pub fn is_next(&self) -> bool {
        self.replies
            .iter()
            .any(|(_, reply)| reply.is_free() && reply.rank == 1)
    }

    /// Whether the call may be the first to get a lock that another library holds, which sends no
    /// message when it is released.
    pub fn waits_for_other_library(&self) -> bool {
        self.rank().is_some_and(|rank| rank == 0)
            && self.replies.iter().any(|(_, reply)| reply.is_other_library)
    }

    /// Whether a node would grant another slot than the one that it was asked for.
    pub fn has_other_slots(&self) -> bool {
        self.replies
            .iter()
            .any(|(_, reply)| reply.slots.free() > reply.rank)
    }

    /// The nodes that could not store the entry: they send no message.
    pub fn unstored(&self) -> NodeSet {
        self.nodes_where(|reply| !reply.storage.is_stored())
            .union(self.without_queue)
    }

    /// The open slot of `permits` that most nodes would grant the call, from `start` on: a quorum
    /// of them, if those that are silent would.
    pub fn free_slot(
        &self,
        setup: &Setup,
        silent: usize,
        permits: usize,
        start: usize,
        is_open: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        // The other slots that are free are for the entries in front.
        let grants = |reply: &QueueReply| reply.slots.free() > reply.rank;
        let free = |slot: usize| {
            self.nodes_where(|reply| grants(reply) && reply.slots.is_free(slot))
                .len()
        };
        let slots = (0..permits)
            .map(|slot| (start + slot) % permits)
            .filter(|&slot| is_open(slot));
        let enough = |&(_, free): &(usize, usize)| free > 0 && free + silent >= setup.quorum();
        slots
            .map(|slot| (slot, free(slot)))
            .filter(enough)
            .rev()
            .max_by_key(|&(_, free)| free)
            .map(|(slot, _)| slot)
    }

    /// The slots that a quorum of nodes holds without an end, with those nodes.
    pub fn endless_slots(&self, setup: &Setup, permits: usize) -> Vec<(usize, NodeSet)> {
        let nodes = |slot| self.nodes_where(|reply| reply.slots.is_endless(slot));
        (0..permits)
            .map(|slot| (slot, nodes(slot)))
            .filter(|(_, nodes)| nodes.len() >= setup.quorum())
            .collect()
    }
}

/// The head of one node's queue, as its refusals show it to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeadWatch<M, V> {
    /// The first entry.
    pub head: M,
    /// Since when the call has seen it there.
    pub since: Timestamp,
    /// What the lock's key held.
    pub holder: Option<V>,
    /// Whether the lock was free, or changed hands, since then.
    pub is_passed: bool,
}

impl<M: Copy + Eq, V: Copy + Eq> HeadWatch<M, V> {
    /// What is known after a refusal.
    pub fn after(earlier: Option<Self>, head: M, holder: Option<V>, now: Timestamp) -> Self {
        match earlier.filter(|earlier| earlier.head == head) {
            None => HeadWatch {
                head,
                since: now,
                holder,
                is_passed: holder.is_none(),
            },
            Some(same) => {
                let is_passed = same.is_passed || holder.is_none() || holder != same.holder;
                HeadWatch {
                    holder,
                    is_passed,
                    ..same
                }
            }
        }
    }

    /// The head that the next round challenges on this node.
    pub fn challenged(&self, place_lease: Duration, now: Timestamp) -> Option<M> {
        (self.is_passed && now >= self.since.after(place_lease)).then_some(self.head)
    }
}
