//! What is asked of all nodes about one key: acquire, raise, extend, repair, release.
//!
//! A command is queued on every connection that can take it. A node that cannot be asked votes with its fault at once.
//! The kinds of locks differ in nothing here but in their operations.

use super::Nodes;
use super::commands::InTurn;
use super::submission::{AttemptRecord, KeyOrigin, LeaseRequest, Posting, Release, ReleaseScope, Submission};
use crate::algorithm::fault::Fault;
use crate::algorithm::fence::Agreement;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::lock_kind::LockKind;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::time::{Readings, Timestamp};
use crate::algorithm::vote::Vote;
use crate::engine::node_connection::NodeConnection;
use crate::engine::rounds::{Purpose, Straggler};
use crate::protocol::lock_key;
use crate::protocol::operation::{Departure, Verb};
use crate::protocol::session::Ticket;

impl Nodes {
    /// Begins an attempt or a release. True: an attempt depends on connections that are still being made.
    pub(super) fn begin_submission(&mut self, submission: &Submission, now: Timestamp) -> (Ticket, bool) {
        match submission {
            Submission::Acquire { key, token, ttl_millis, kind, in_turn } => {
                let request = LeaseRequest { key: key.as_bytes(), token, ttl_millis: *ttl_millis, kind: *kind };
                let ticket = self.acquire(&request, *in_turn, now);
                (ticket, self.has_to_connect(now))
            }
            Submission::Release(release) => (self.release(release, now), false),
        }
    }

    /// Begins a release that no thread waits for.
    pub(super) fn begin_posting(&mut self, posting: Posting, now: Timestamp) {
        let ticket = self.release(&posting.release, now);
        match posting.report {
            Some((context, deadline)) => self.background.follow(&mut self.rounds, ticket, context, deadline),
            None => self.rounds.unrefer(ticket),
        }
    }

    /// Queues an acquire for every node that may be asked: in the call's turn, or taking what is free, whichever calls
    /// wait. `now` was read before any byte of it is written.
    pub(in crate::engine) fn acquire(
        &mut self,
        request: &LeaseRequest<'_>,
        in_turn: Option<InTurn>,
        now: Timestamp,
    ) -> Ticket {
        let ttl_millis = request.ttl_millis;
        let verb = match in_turn {
            Some(InTurn { request, .. }) if !request.by_command => Verb::Take { ttl_millis, request },
            _ => Verb::Acquire { ttl_millis },
        };
        let operation = self.commands.operation(request.kind, verb);
        let is_place = in_turn.is_some_and(|in_turn| in_turn.request.stores_only);
        let purpose = if is_place { Purpose::Enqueue } else { Purpose::Acquire };
        let (ticket, ready) = self.begin(purpose, request, now);
        if let Some(in_turn) = in_turn {
            self.rounds.collect_replies(ticket, in_turn.round());
        }
        // When no quorum is left to ask, the other nodes are spared a key that would only have to be deleted.
        if !self.rounds.is_decided(ticket) {
            self.queue(ticket, operation, ready, now);
        }
        ticket
    }

    /// Queues an extension for every node that may be asked.
    pub(in crate::engine) fn extend(&mut self, request: &LeaseRequest<'_>, now: Timestamp) -> Ticket {
        let purpose = Purpose::Extend(Straggler::LeftBehind);
        let operation = self.commands.operation(request.kind, Verb::Extend { ttl_millis: request.ttl_millis });
        let (ticket, ready) = self.begin(purpose, request, now);
        self.queue(ticket, operation, ready, now);
        ticket
    }

    /// Queues a raise for the nodes that have answered less than the greatest fence. The others have their votes
    /// already: those that answered the greatest have granted, and a node that was not counted is not asked.
    pub(in crate::engine) fn raise(
        &mut self,
        (key, attempt): (&[u8], &AttemptRecord),
        agreement: &Agreement,
        now: Timestamp,
    ) -> Ticket {
        self.expire_background(now);
        let (token, kind) = (&attempt.token, LockKind::Fenced(agreement.fence()));
        let ticket = self.rounds.open_command(Purpose::Acquire, (key, token), kind);
        let mut ready = NodeSet::EMPTY;
        for node in self.nodes() {
            let vote = if agreement.settled().contains(node) {
                Vote::Granted
            } else if !agreement.behind().contains(node) {
                Vote::Absent
            } else if let Err(fault) = self.prepare_to_ask(node, now) {
                self.filter(node).note_failure(fault, now);
                Vote::Fault(fault)
            } else {
                ready.insert(node);
                continue;
            };
            self.rounds.vote(ticket, node, &vote);
        }
        let operation = self.commands.operation(attempt.kind.with_fence(agreement.fence()), Verb::Raise);
        self.queue(ticket, operation, ready, now);
        ticket
    }

    /// Queues an acquire with the token of a lock that is held, for nodes that have lost its key. No thread waits for
    /// it. Gives the nodes that it may reach.
    pub(in crate::engine) fn repair(&mut self, request: &LeaseRequest<'_>, nodes: NodeSet, now: Timestamp) -> NodeSet {
        self.leave_late(now);
        // A node that has some keys of a set gets those that it lacks.
        let each = lock_key::each(request.key).map(|key| LeaseRequest { key, ..*request });
        each.fold(NodeSet::EMPTY, |ready, request| ready.union(self.repair_key(&request, nodes, now)))
    }

    fn repair_key(&mut self, request: &LeaseRequest<'_>, nodes: NodeSet, now: Timestamp) -> NodeSet {
        let &LeaseRequest { key, token, kind, .. } = request;
        let ticket = self.rounds.open_command(Purpose::Acquire, (key, token), kind);
        let mut ready = NodeSet::EMPTY;
        for node in nodes.iter() {
            if !self.node(node).is_ready(now) {
                // It has answered, and other nodes have been waited for since.
                self.refresh(node, now);
            }
            if self.node(node).is_ready(now) {
                ready.insert(node);
            } else {
                let fault = self.node(node).fault();
                self.rounds.vote(ticket, node, &Vote::Fault(fault));
            }
        }
        // A fence that does not fall is all that the next holder needs: the lock's own is the floor.
        let operation = self.commands.operation(kind, Verb::Acquire { ttl_millis: request.ttl_millis });
        self.queue(ticket, operation, ready, now);
        self.rounds.mark_decided(ticket);
        self.rounds.unrefer(ticket);
        ready
    }

    /// Notices connections that have ended, and begins to make them again. Gives the nodes that have lost their data
    /// since this was asked last, and whether a node is being connected to. Nothing is sent on connections that stand.
    pub(in crate::engine) fn reconnect(&mut self, now: Timestamp) -> (NodeSet, bool) {
        self.leave_late(now);
        for node in self.nodes() {
            // One that cannot be connected to now is tried again.
            let _ = self.connect(node, now);
        }
        let is_connecting = self.connections.iter().any(NodeConnection::is_connecting);
        (self.incarnations.take_returned(), is_connecting)
    }

    /// Queues a compare-and-delete for what an attempt may have set. For a node without a connection it is kept, if the
    /// key can have reached the node at all. A lock that is to stand gets an end, by compare and expire. Nothing is
    /// kept for it, because its key ends by itself.
    fn release(&mut self, release: &Release, now: Timestamp) -> Ticket {
        let Release { key, attempt: AttemptRecord { token, reached, kind, departure, .. }, scope, .. } = release;
        let (key, kind, conditions) = (key.as_bytes(), *kind, release.conditions(now));
        let departure = match scope {
            ReleaseScope::Everywhere { .. } => *departure,
            ReleaseScope::Reached { departure } => *departure,
        };
        if let (ReleaseScope::Everywhere { .. }, Some(departure)) = (scope, departure) {
            self.subscribers.registry.leave(departure.entry.number);
        }
        let stands = matches!(scope, ReleaseScope::Everywhere { stands_for: Some(_) });
        self.tidy(now);
        let ticket = self.rounds.open_release((key, token), kind, conditions);
        let mut ready = NodeSet::EMPTY;
        for node in self.nodes() {
            if reached.contains(node) {
                self.prepare_to_release(node, now);
            }
            let connection = &mut self.connections[node.index()];
            let is_wanted = match scope {
                ReleaseScope::Everywhere { .. } => reached.contains(node) || connection.is_responsive(now),
                ReleaseScope::Reached { .. } => reached.contains(node),
            };
            let may_hold = is_wanted && !stands && connection.may_hold(&conditions);
            if is_wanted && !connection.is_closed() {
                if may_hold {
                    connection.pending.carry(conditions.key_ends);
                }
                ready.insert(node);
                continue;
            }
            let fault = connection.fault();
            if may_hold {
                self.rounds.refer(ticket, NodeSet::from_iter([node]));
                self.defer_release(node, ticket, None);
            }
            self.rounds.vote(ticket, node, &Vote::Fault(fault));
        }
        let verb = match *scope {
            ReleaseScope::Everywhere { stands_for: Some(millis) } => Verb::Extend { ttl_millis: millis.get() },
            ReleaseScope::Everywhere { .. } | ReleaseScope::Reached { .. } => Verb::Release(departure),
        };
        let operation = self.commands.operation(kind, verb);
        self.queue(ticket, operation, ready, now);
        match departure {
            Some(departure) if stands => {
                let key = lock_key::each(key).nth(departure.key.into()).unwrap_or(key);
                self.leave((key, kind), Some(departure.entry), ready, now);
            }
            Some(Departure { entry, ticket: None, .. }) => self.subscribers.note_removed(entry, ready),
            _ => {}
        }
        ticket
    }

    /// Takes over a lock whose key other connections have set: it may be on any node. Begins to connect to the nodes
    /// that there is no connection to, so that the lock's release need not wait for that, and asks nothing.
    pub(in crate::engine) fn adopt(&mut self, token: OwnerToken, kind: LockKind, now: Readings) -> AttemptRecord {
        self.leave_late(now.steady);
        for node in self.nodes() {
            self.prepare_to_release(node, now.steady);
        }
        let (reached, origin) = (self.nodes().collect(), KeyOrigin::Elsewhere);
        AttemptRecord { token, t0: now, reached, origin, departure: None, kind }
    }

    /// Whether an attempt that began now would depend on connections that are still being made: fewer than a quorum can
    /// answer without them.
    pub(in crate::engine) fn has_to_connect(&self, now: Timestamp) -> bool {
        let ready = self.connections.iter().filter(|connection| connection.is_responsive(now)).count();
        ready <= self.connections.len() / 2 && self.connections.iter().any(NodeConnection::is_connecting)
    }

    /// Opens the round of an operation. Returns its ticket, and the nodes that can be asked.
    fn begin(&mut self, purpose: Purpose, request: &LeaseRequest<'_>, now: Timestamp) -> (Ticket, NodeSet) {
        self.tidy(now);
        let &LeaseRequest { key, token, kind, .. } = request;
        let ticket = self.rounds.open_command(purpose, (key, token), kind);
        (ticket, self.prepare_all(ticket, now))
    }

    /// Queues requests on another connection of which no byte was written on the one that has ended with this fault.
    pub(super) fn queue_unwritten(&mut self, node: NodeId, unwritten: &[Ticket], (fault, now): (Fault, Timestamp)) {
        let opened = self.node(node).health.may_ask(now).and_then(|()| self.open(node, now));
        for &ticket in unwritten {
            if let (Ok(()), Some(command)) = (opened, self.rounds.command(ticket)) {
                self.connections[node.index()].queue(&command, now);
            } else {
                self.rounds.vote(ticket, node, &Vote::Fault(opened.err().unwrap_or(fault)));
                self.rounds.unrefer(ticket);
            }
        }
        self.commands.on_queued(NodeSet::from_iter([node]), now);
    }

    /// Does what was left for the next operation.
    fn tidy(&mut self, now: Timestamp) {
        self.expire_background(now);
        self.subscribers.close_idle(&mut self.poll, now);
    }

    /// Prepares every node for a request, and gives those that it can be queued for. The others have voted with their
    /// faults.
    pub(super) fn prepare_all(&mut self, ticket: Ticket, now: Timestamp) -> NodeSet {
        let mut ready = NodeSet::EMPTY;
        for node in self.nodes() {
            let Err(fault) = self.prepare_to_ask(node, now) else {
                ready.insert(node);
                continue;
            };
            self.filter(node).note_failure(fault, now);
            if self.node(node).may_grant_for_another(now) && self.counts_duplicates(ticket) {
                ready.insert(node);
            } else {
                self.rounds.vote(ticket, node, &Vote::Fault(fault));
            }
        }
        ready
    }

    /// Whether a grant by a duplicate counts as the voter's. That of a fenced lock does not: the fence would have to be
    /// raised on the connection that answered it.
    fn counts_duplicates(&self, ticket: Ticket) -> bool {
        let is_fenced = self.rounds.round(ticket).is_none_or(|round| round.kind().is_fenced());
        !is_fenced && matches!(self.rounds.purpose(ticket), Some(Purpose::Acquire | Purpose::Extend(_)))
    }

    /// Prepares a node for a request.
    ///
    /// # Errors
    /// Why none can be queued for it.
    fn prepare_to_ask(&mut self, node: NodeId, now: Timestamp) -> Result<(), Fault> {
        if self.node(node).is_ready(now) {
            return Ok(());
        }
        self.connect(node, now)?;
        self.node_mut(node).admit(now)
    }

    /// Sees whether the connection still stands, and begins to make another one if not.
    ///
    /// # Errors
    /// Why not.
    fn connect(&mut self, node: NodeId, now: Timestamp) -> Result<(), Fault> {
        self.refresh(node, now);
        if let Some(fault) = self.node(node).retry_reason(now) {
            self.lose(node, fault, now);
        }
        if self.node(node).is_closed() {
            self.node(node).health.may_ask(now)?;
            self.open(node, now)?;
        }
        Ok(())
    }

    /// Prepares a node for a release, if that is possible at present.
    fn prepare_to_release(&mut self, node: NodeId, now: Timestamp) {
        if self.node(node).is_ready(now) {
            return;
        }
        self.refresh(node, now);
        let connection = self.node(node);
        if connection.is_closed() && connection.health.may_ask(now).is_ok() {
            // What went wrong is the connection's fault from now on, and the caller asks for that.
            let _ = self.open(node, now);
        }
    }
}
