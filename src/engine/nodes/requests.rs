//! What is asked of all nodes at once: take, extend, repair, release.
//!
//! Each is queued on every link that it can be queued on. A node that cannot be asked votes with its fault at once.

use super::Nodes;
use crate::algorithm::fault::Fault;
use crate::algorithm::fence::{Fencing, FencingToken};
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::pending_release::ReleaseConditions;
use crate::algorithm::time::{Readings, Timestamp};
use crate::algorithm::vote::Vote;
use crate::engine::driver::WaitSlots;
use crate::engine::rounds::{Purpose, Round, Straggler};
use crate::protocol::operation::Operation;
use crate::protocol::publish::Hint;
use crate::protocol::session::Ticket;
use std::time::Duration;

/// Where a release goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum ReleaseScope {
    /// To every node that can answer: the verdict is wanted.
    Everywhere,
    /// To the nodes that the `SET` may have reached, and no other: the undo of a lost attempt.
    Reached,
}

/// What is to be extended, and for how long.
#[derive(Clone, Copy)]
pub(crate) struct LeaseRequest<'o> {
    pub(crate) key: &'o [u8],
    pub(crate) token: &'o OwnerToken,
    pub(crate) ttl_millis: u64,
    /// Of a fenced lock.
    pub(crate) fence: Option<FencingToken>,
}

/// What is to be released.
#[derive(Clone, Copy)]
pub(in crate::engine) struct ReleaseRequest<'o> {
    pub(in crate::engine) key: &'o [u8],
    pub(in crate::engine) claim: &'o AttemptRecord,
    pub(in crate::engine) extent: ReleaseScope,
    /// For how long the key can live from now on.
    pub(in crate::engine) key_lasts: Duration,
}

/// What a release needs to know of the attempt that it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttemptRecord {
    /// The attempt's token.
    pub(crate) token: OwnerToken,
    /// When the attempt began, read before its first byte was written.
    pub(crate) t0: Readings,
    /// The nodes where the key may have been set.
    pub(crate) reached: NodeSet,
    pub(crate) setter: KeyOrigin,
    /// Whether it was waited for, among others.
    pub(crate) has_waited: bool,
    /// Of a fenced lock: its fence, or while that is not known yet, the floor.
    pub(crate) fence: Fencing,
}

/// By whom the key of a lock was set: what is known of the nodes that a release cannot be queued for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyOrigin {
    /// By another client, or by this one before the lock was handed over: the key may be on any node.
    Elsewhere,
    /// By this client's attempt: what it has written nothing to has no key of its.
    Here,
}

impl Nodes {
    /// Queues a `SET NX PX` for every node that may be asked, at a time that was read before any byte of it is written, and
    /// perhaps asks for how long the key lives of which a node refuses it.
    pub(in crate::engine) fn acquire(
        &mut self,
        key: &[u8],
        token: &OwnerToken,
        ttl_millis: u64,
        asks_remaining: bool,
        t0: Timestamp,
        bells: &mut WaitSlots,
    ) -> Ticket {
        self.settle_posts(t0, bells);
        self.rest(t0);
        let ticket = self.rounds.open(Purpose::Acquire, key, token);
        let asked = self.prepare_all(ticket, t0, bells);
        // When no quorum is left to ask, the others are spared a SET that would only have to be undone.
        if !self.rounds.is_decided(ticket) {
            let operation = Operation::Acquire { ttl_millis, fence: None };
            for node in asked.iter() {
                let link = &mut self.links[node.index()];
                link.asks(t0);
                link.session.queue(ticket, operation, key, token, t0);
                // The voter says how long the key lives: one key ends once.
                if asks_remaining && !link.is_duplicate() {
                    link.session.remaining(ticket, key, t0);
                }
            }
            self.rounds.refer(ticket, asked);
            self.queued(asked, t0);
        }
        ticket
    }

    /// Whether an attempt that was begun now depends on connections that are still being made: fewer than a quorum can answer
    /// without.
    pub(in crate::engine) fn has_to_connect(&self, now: Timestamp) -> bool {
        let ready = self.links.iter().filter(|link| link.is_responsive(now)).count();
        ready <= self.links.len() / 2 && self.links.iter().any(|link| !link.is_closed() && !link.has_greeted())
    }

    /// Takes over a lock whose key other connections have set: it may be on any node. Begins to connect to those that there
    /// is no connection to, so that the lock's release need not wait for that, and asks nothing.
    pub(in crate::engine) fn adopt(
        &mut self,
        token: OwnerToken,
        fence: Option<FencingToken>,
        now: Readings,
        bells: &mut WaitSlots,
    ) -> AttemptRecord {
        for node in self.nodes() {
            self.prepare_to_release(node, now.steady, bells);
        }
        let (reached, setter, fence) = (self.nodes().collect(), KeyOrigin::Elsewhere, fence.into());
        AttemptRecord { token, t0: now, reached, setter, has_waited: false, fence }
    }

    /// Queues an extension for every node that may be asked.
    pub(in crate::engine) fn extend(
        &mut self,
        order: &LeaseRequest<'_>,
        now: Timestamp,
        bells: &mut WaitSlots,
    ) -> Ticket {
        self.settle_posts(now, bells);
        self.rest(now);
        let ticket = self.open_round(Purpose::Extend(Straggler::LeftBehind), order.key, order.token, order.fence);
        let asked = self.prepare_all(ticket, now, bells);
        let operation = Operation::Extend { ttl_millis: order.ttl_millis, fence: self.fence(order.fence) };
        self.queue_all(ticket, asked, operation, order.key, order.token, now);
        ticket
    }

    /// Queues a `SET NX PX` with the token of a lock that is held, for nodes that have lost its key. Nobody waits for it.
    /// Gives the nodes that it may reach.
    pub(in crate::engine) fn repair(
        &mut self,
        order: &LeaseRequest<'_>,
        nodes: NodeSet,
        now: Timestamp,
        bells: &mut WaitSlots,
    ) -> NodeSet {
        let ticket = self.open_round(Purpose::Acquire, order.key, order.token, order.fence);
        // A fence that does not fall is all that the next holder needs.
        let operation = Operation::Acquire { ttl_millis: order.ttl_millis, fence: self.fence(order.fence) };
        let mut asked = NodeSet::EMPTY;
        for node in nodes.iter() {
            if !self.links[node.index()].is_in_order(now) {
                // It answered, and others have been waited for since.
                self.look(node, now, bells);
            }
            let link = &mut self.links[node.index()];
            if link.is_in_order(now) {
                if order.fence.is_none() {
                    link.session.queue(ticket, operation, order.key, order.token, now);
                }
                asked.insert(node);
            } else {
                self.rounds.vote(ticket, node, Vote::Fault(link.fault()), bells);
            }
        }
        match order.fence {
            Some(_) => {
                self.queue_all(ticket, asked, operation, order.key, order.token, now);
                self.rounds.settle(ticket);
            }
            None => self.rounds.refer(ticket, asked),
        }
        self.rounds.unrefer(ticket);
        self.queued(asked, now);
        asked
    }

    /// Queues a compare-and-delete for what an attempt may have set. To a node without a connection it is owed, if anything
    /// can have reached it at all.
    pub(in crate::engine) fn release(
        &mut self,
        releasing: &ReleaseRequest<'_>,
        now: Timestamp,
        bells: &mut WaitSlots,
    ) -> Ticket {
        let &ReleaseRequest { key, claim, extent, key_lasts } = releasing;
        let AttemptRecord { token, t0, reached, setter, has_waited, fence } = claim;
        let fence = fence.token();
        // A node's clock may be slower than ours: by a fiftieth at most, twice the usual allowance.
        let key_ends = now.after(key_lasts + key_lasts / 50);
        let terms = ReleaseConditions { set_since: (*setter == KeyOrigin::Here).then_some(t0.steady), key_ends };
        self.settle_posts(now, bells);
        self.rest(now);
        let ticket = self.rounds.open_release((key, token), fence.is_some(), terms);
        let hint = Hint { crowd: self.listening.crowd(key, now), has_waited: *has_waited };
        // A lost attempt was never a lock, and no client waits for its end.
        let publishes = extent == ReleaseScope::Everywhere && self.listening.is_on;
        let operation = Operation::Release { hint: publishes.then_some(hint), fence: self.fence(fence) };
        let mut asked = NodeSet::EMPTY;
        for node in self.nodes() {
            if reached.contains(node) {
                self.prepare_to_release(node, now, bells);
            }
            let link = &mut self.links[node.index()];
            let wanted = reached.contains(node) || (extent == ReleaseScope::Everywhere && link.is_responsive(now));
            if wanted && !link.is_closed() {
                link.pending.is_carried |= link.may_hold(&terms);
                link.session.queue(ticket, operation, key, token, now);
                asked.insert(node);
                continue;
            }
            let fault = link.fault();
            if wanted && link.may_hold(&terms) {
                self.rounds.refer(ticket, NodeSet::from_iter([node]));
                self.owe(node, ticket);
            }
            self.rounds.vote(ticket, node, Vote::Fault(fault), bells);
        }
        self.rounds.refer(ticket, asked);
        self.queued(asked, now);
        ticket
    }

    fn open_round(&mut self, purpose: Purpose, key: &[u8], token: &OwnerToken, fence: Option<FencingToken>) -> Ticket {
        match fence {
            Some(_) => self.rounds.open_fenced(purpose, key, token),
            None => self.rounds.open(purpose, key, token),
        }
    }

    /// Sees to it that a request can be queued for every node, and gives those that it can be queued for. The others have
    /// voted with their faults.
    pub(super) fn prepare_all(&mut self, ticket: Ticket, now: Timestamp, bells: &mut WaitSlots) -> NodeSet {
        let mut ready = NodeSet::EMPTY;
        for node in self.nodes() {
            match self.prepare_to_ask(node, now, bells) {
                Ok(()) => {
                    ready.insert(node);
                }
                Err(fault) => {
                    self.note_failure(node, fault, now);
                    if self.links[node.index()].may_grant_for_another(now) && self.counts_duplicates(ticket) {
                        ready.insert(node);
                    } else {
                        self.rounds.vote(ticket, node, Vote::Fault(fault), bells);
                    }
                }
            }
        }
        ready
    }

    /// Whether a grant by a duplicate counts as the voter's. That of a fenced lock does not: the fence would have to be raised
    /// on the connection that answered it.
    fn counts_duplicates(&self, ticket: Ticket) -> bool {
        let is_fenced = self.rounds.round(ticket).is_none_or(Round::is_fenced);
        !is_fenced && matches!(self.rounds.purpose(ticket), Some(Purpose::Acquire | Purpose::Extend(_)))
    }

    /// Sees to it that a `SET` can be queued for the node, or says why not.
    pub(super) fn prepare_to_ask(&mut self, node: NodeId, now: Timestamp, bells: &mut WaitSlots) -> Result<(), Fault> {
        if self.links[node.index()].is_in_order(now) {
            return Ok(());
        }
        self.look(node, now, bells);
        if let Some(fault) = self.links[node.index()].deserves_another_chance(now) {
            self.lose(node, fault, now, bells);
        }
        if self.links[node.index()].is_closed() {
            self.links[node.index()].may_open(now)?;
            self.open(node, now, bells)?;
        }
        self.links[node.index()].admit(now)
    }

    /// Sees to it that a release can be queued for the node, if that is possible at present.
    fn prepare_to_release(&mut self, node: NodeId, now: Timestamp, bells: &mut WaitSlots) {
        if self.links[node.index()].is_in_order(now) {
            return;
        }
        self.look(node, now, bells);
        let link = &self.links[node.index()];
        if link.is_closed() && link.may_open(now).is_ok() {
            // What went wrong is the link's fault from now on, and the caller asks for that.
            let _ = self.open(node, now, bells);
        }
    }

    pub(super) fn queued(&mut self, nodes: NodeSet, now: Timestamp) {
        self.unsent = self.unsent.union(nodes);
        self.queued_at = self.queued_at.max(now);
    }
}
