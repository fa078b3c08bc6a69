//! What is asked of all nodes about one key: acquire, raise, extend, repair, release.
//!
//! A command is queued on every connection that can take it. A node that cannot be asked votes with its fault at once.
//! Plain and fenced locks differ in nothing here but the fence of their operation.

use super::Nodes;
use super::commands::Command;
use crate::algorithm::fault::Fault;
use crate::algorithm::fence::{Agreement, FencingToken};
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::pending_release::ReleaseConditions;
use crate::algorithm::time::{Readings, Timestamp};
use crate::algorithm::vote::Vote;
use crate::engine::driver::WaitSlots;
use crate::engine::node_connection::NodeConnection;
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
    /// To the nodes that the acquire may have reached and that did not refuse it: the undo of a lost attempt.
    Reached,
}

/// A lease that is asked for: the key, its value, and for how long.
#[derive(Clone, Copy)]
pub(crate) struct LeaseRequest<'o> {
    pub(crate) key: &'o [u8],
    pub(crate) token: &'o OwnerToken,
    pub(crate) ttl_millis: u64,
    /// Of a fenced lock: its fence, or for an attempt, the floor.
    pub(crate) fence: Option<FencingToken>,
}

/// What is to be released.
#[derive(Clone, Copy)]
pub(in crate::engine) struct ReleaseRequest<'o> {
    pub(in crate::engine) key: &'o [u8],
    pub(in crate::engine) attempt: &'o AttemptRecord,
    pub(in crate::engine) scope: ReleaseScope,
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
    /// The nodes where the key may have been set. Of an undo: less those that refused.
    pub(crate) reached: NodeSet,
    pub(crate) origin: KeyOrigin,
    /// Whether the lock was waited for, and other programs were waiting too.
    pub(crate) has_waited: bool,
    /// Of a fenced lock: its fence, or while that is not known yet, the floor.
    pub(crate) fence: Option<FencingToken>,
}

/// Which client has set the key of a lock: decides whether a release is kept for a node that it cannot be queued for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyOrigin {
    /// Another client, or this one before the lock was handed over: the key may be on any node.
    Elsewhere,
    /// This client's attempt: a node that it has written nothing to has no key of it.
    Here,
}

impl ReleaseRequest<'_> {
    /// Which nodes need the release, and until when.
    fn conditions(&self, now: Timestamp) -> ReleaseConditions {
        // A node's clock may be slower than this one's: by a fiftieth at most, twice the usual allowance.
        let key_ends = now.after(self.key_lasts + self.key_lasts / 50);
        let is_ours = self.attempt.origin == KeyOrigin::Here;
        ReleaseConditions { set_since: is_ours.then_some(self.attempt.t0.steady), key_ends }
    }
}

impl Nodes {
    /// Queues an acquire for every node that may be asked. `now` was read before any byte of it is written.
    /// `asks_remaining`: a node that refuses also says for how long the key lives.
    pub(in crate::engine) fn acquire(
        &mut self,
        request: &LeaseRequest<'_>,
        asks_remaining: bool,
        now: Timestamp,
        notify: &mut WaitSlots,
    ) -> Ticket {
        let (ttl_millis, fence) = (request.ttl_millis, self.commands.fence(request.fence));
        let operation = Operation::Acquire { ttl_millis, fence };
        let (command, ready) = self.begin(Purpose::Acquire, request, operation, now, notify);
        // When no quorum is left to ask, the other nodes are spared a key that would only have to be deleted.
        if !self.rounds.is_decided(command.ticket) {
            self.queue(Command { asks_remaining, ..command }, ready, now);
        }
        command.ticket
    }

    /// Queues an extension for every node that may be asked.
    pub(in crate::engine) fn extend(
        &mut self,
        request: &LeaseRequest<'_>,
        now: Timestamp,
        notify: &mut WaitSlots,
    ) -> Ticket {
        let purpose = Purpose::Extend(Straggler::LeftBehind);
        let (ttl_millis, fence) = (request.ttl_millis, self.commands.fence(request.fence));
        let operation = Operation::Extend { ttl_millis, fence };
        let (command, ready) = self.begin(purpose, request, operation, now, notify);
        self.queue(command, ready, now);
        command.ticket
    }

    /// Queues a raise for the nodes that have answered less than the greatest fence. The others have their votes
    /// already: those that answered the greatest have granted, and a node that was not counted is not asked.
    pub(in crate::engine) fn raise(
        &mut self,
        (key, token): (&[u8], &OwnerToken),
        agreement: &Agreement,
        now: Timestamp,
        notify: &mut WaitSlots,
    ) -> Ticket {
        self.expire_background(now, notify);
        let ticket = self.rounds.open_command(Purpose::Acquire, (key, token), true);
        let mut ready = NodeSet::EMPTY;
        for node in self.nodes() {
            let vote = if agreement.settled().contains(node) {
                Vote::Granted
            } else if !agreement.behind().contains(node) {
                Vote::Absent
            } else if let Err(fault) = self.prepare_to_ask(node, now, notify) {
                self.filter(node).note_failure(fault, now);
                Vote::Fault(fault)
            } else {
                ready.insert(node);
                continue;
            };
            self.rounds.vote(ticket, node, vote, notify);
        }
        let operation = Operation::Raise(self.commands.fence_of(agreement.fence()));
        self.queue(Command::new(ticket, key, token, operation), ready, now);
        ticket
    }

    /// Queues an acquire with the token of a lock that is held, for nodes that have lost its key. No thread waits for
    /// it. Gives the nodes that it may reach.
    pub(in crate::engine) fn repair(
        &mut self,
        request: &LeaseRequest<'_>,
        nodes: NodeSet,
        now: Timestamp,
        notify: &mut WaitSlots,
    ) -> NodeSet {
        let &LeaseRequest { key, token, ttl_millis, fence } = request;
        let ticket = self.rounds.open_command(Purpose::Acquire, (key, token), fence.is_some());
        let mut ready = NodeSet::EMPTY;
        for node in nodes.iter() {
            if !self.node(node).is_ready(now) {
                // It has answered, and other nodes have been waited for since.
                self.refresh(node, now, notify);
            }
            if self.node(node).is_ready(now) {
                ready.insert(node);
            } else {
                let fault = self.node(node).fault();
                self.rounds.vote(ticket, node, Vote::Fault(fault), notify);
            }
        }
        // A fence that does not fall is all that the next holder needs: the lock's own is the floor.
        let operation = Operation::Acquire { ttl_millis, fence: self.commands.fence(fence) };
        self.queue(Command::new(ticket, key, token, operation), ready, now);
        self.rounds.mark_decided(ticket);
        self.rounds.unrefer(ticket);
        ready
    }

    /// Queues a compare-and-delete for what an attempt may have set. For a node without a connection it is kept, if the
    /// key can have reached the node at all.
    pub(in crate::engine) fn release(
        &mut self,
        request: &ReleaseRequest<'_>,
        now: Timestamp,
        notify: &mut WaitSlots,
    ) -> Ticket {
        let &ReleaseRequest { key, attempt: AttemptRecord { token, reached, .. }, scope, .. } = request;
        let (fence, conditions) = (request.attempt.fence, request.conditions(now));
        self.tidy(now, notify);
        let ticket = self.rounds.open_release((key, token), fence.is_some(), conditions);
        let hint = self.hint(request, now);
        for node in reached.iter() {
            self.prepare_to_release(node, now, notify);
        }
        let is_wanted = |node: &NodeId| match scope {
            ReleaseScope::Everywhere => reached.contains(*node) || self.node(*node).is_responsive(now),
            ReleaseScope::Reached => reached.contains(*node),
        };
        let wanted: NodeSet = self.nodes().filter(is_wanted).collect();
        let ready: NodeSet = wanted.iter().filter(|&node| !self.node(node).is_closed()).collect();
        for node in ready.iter() {
            let may_hold = self.node(node).may_hold(&conditions);
            self.node_mut(node).pending.is_carried |= may_hold;
        }
        for node in self.nodes().filter(|&node| !ready.contains(node)) {
            let fault = self.node(node).fault();
            if wanted.contains(node) && self.node(node).may_hold(&conditions) {
                self.rounds.refer(ticket, NodeSet::from_iter([node]));
                self.defer_release(node, ticket);
            }
            self.rounds.vote(ticket, node, Vote::Fault(fault), notify);
        }
        let operation = Operation::Release { hint, fence: self.commands.fence(fence) };
        self.queue(Command::new(ticket, key, token, operation), ready, now);
        ticket
    }

    /// Takes over a lock whose key other connections have set: it may be on any node. Begins to connect to the nodes
    /// that there is no connection to, so that the lock's release need not wait for that, and asks nothing.
    pub(in crate::engine) fn adopt(
        &mut self,
        token: OwnerToken,
        fence: Option<FencingToken>,
        now: Readings,
        notify: &mut WaitSlots,
    ) -> AttemptRecord {
        for node in self.nodes() {
            self.prepare_to_release(node, now.steady, notify);
        }
        let (reached, origin) = (self.nodes().collect(), KeyOrigin::Elsewhere);
        AttemptRecord { token, t0: now, reached, origin, has_waited: false, fence }
    }

    /// Whether an attempt that began now would depend on connections that are still being made: fewer than a quorum can
    /// answer without them.
    pub(in crate::engine) fn has_to_connect(&self, now: Timestamp) -> bool {
        let ready = self.connections.iter().filter(|connection| connection.is_responsive(now)).count();
        let is_connecting =
            |connection: &NodeConnection| !connection.is_closed() && !connection.is_handshake_answered();
        ready <= self.connections.len() / 2 && self.connections.iter().any(is_connecting)
    }

    /// Opens the round of an operation, and gives its command and the nodes that can be asked.
    fn begin<'o>(
        &mut self,
        purpose: Purpose,
        request: &LeaseRequest<'o>,
        operation: Operation,
        now: Timestamp,
        notify: &mut WaitSlots,
    ) -> (Command<'o>, NodeSet) {
        self.tidy(now, notify);
        let &LeaseRequest { key, token, fence, .. } = request;
        let ticket = self.rounds.open_command(purpose, (key, token), fence.is_some());
        let ready = self.prepare_all(ticket, now, notify);
        (Command::new(ticket, key, token, operation), ready)
    }

    /// Queues a command for these nodes, and lets its round wait for their replies.
    fn queue(&mut self, command: Command<'_>, nodes: NodeSet, now: Timestamp) {
        self.commands.queue(command, &mut self.connections, nodes, now);
        self.rounds.refer(command.ticket, nodes);
    }

    /// Does what was left for the next operation.
    fn tidy(&mut self, now: Timestamp, notify: &mut WaitSlots) {
        self.expire_background(now, notify);
        self.subscribers.close_idle(&mut self.poll, now);
    }

    /// What a release publishes. A lost attempt was never a lock, and no program waits for its end.
    fn hint(&self, request: &ReleaseRequest<'_>, now: Timestamp) -> Option<Hint> {
        let publishes = request.scope == ReleaseScope::Everywhere && self.subscribers.is_on();
        let crowd = self.subscribers.registry.crowd(request.key, now);
        publishes.then_some(Hint { crowd, has_waited: request.attempt.has_waited })
    }

    /// Prepares every node for a request, and gives those that it can be queued for. The others have voted with their
    /// faults.
    pub(super) fn prepare_all(&mut self, ticket: Ticket, now: Timestamp, notify: &mut WaitSlots) -> NodeSet {
        let mut ready = NodeSet::EMPTY;
        for node in self.nodes() {
            let Err(fault) = self.prepare_to_ask(node, now, notify) else {
                ready.insert(node);
                continue;
            };
            self.filter(node).note_failure(fault, now);
            if self.node(node).may_grant_for_another(now) && self.counts_duplicates(ticket) {
                ready.insert(node);
            } else {
                self.rounds.vote(ticket, node, Vote::Fault(fault), notify);
            }
        }
        ready
    }

    /// Whether a grant by a duplicate counts as the voter's. That of a fenced lock does not: the fence would have to be
    /// raised on the connection that answered it.
    fn counts_duplicates(&self, ticket: Ticket) -> bool {
        let is_fenced = self.rounds.round(ticket).is_none_or(Round::is_fenced);
        !is_fenced && matches!(self.rounds.purpose(ticket), Some(Purpose::Acquire | Purpose::Extend(_)))
    }

    /// Prepares a node for a request.
    ///
    /// # Errors
    /// Why none can be queued for it.
    fn prepare_to_ask(&mut self, node: NodeId, now: Timestamp, notify: &mut WaitSlots) -> Result<(), Fault> {
        if self.node(node).is_ready(now) {
            return Ok(());
        }
        self.refresh(node, now, notify);
        if let Some(fault) = self.node(node).retry_reason(now) {
            self.lose(node, fault, now, notify);
        }
        if self.node(node).is_closed() {
            self.node(node).may_open(now)?;
            self.open(node, now, notify)?;
        }
        self.node_mut(node).admit(now)
    }

    /// Prepares a node for a release, if that is possible at present.
    fn prepare_to_release(&mut self, node: NodeId, now: Timestamp, notify: &mut WaitSlots) {
        if self.node(node).is_ready(now) {
            return;
        }
        self.refresh(node, now, notify);
        let connection = self.node(node);
        if connection.is_closed() && connection.may_open(now).is_ok() {
            // What went wrong is the connection's fault from now on, and the caller asks for that.
            let _ = self.open(node, now, notify);
        }
    }
}
