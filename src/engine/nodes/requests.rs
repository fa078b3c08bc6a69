//! What is asked of all nodes about one key: acquire, raise, extend, repair, release; and the
//! entries of calls that wait, which are stored and removed without a thread that waits for it.
//!
//! A command is queued on every connection that can take it. A node that cannot be asked votes with
//! its fault at once. The kinds of locks differ in nothing here but in their operations.

use super::Nodes;
use super::connections::Connections;
use super::submission::{
    AttemptRecord, AttemptRequest, InTurn, KeyOrigin, LeaseRequest, Release, ReleaseScope,
};
use crate::algorithm::fence::Agreement;
use crate::algorithm::inspection::Inspection;
use crate::algorithm::kind::Kind;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::time::{Readings, Timestamp};
use crate::algorithm::vote::Vote;
use crate::engine::rounds::{Attempt, HolderQuestion, Purpose};
use crate::fault::Fault;
use crate::protocol::lock_key::LockKey;
use crate::protocol::operation::{Departure, Operation, Verb};
use crate::protocol::session::{Command, Session, Ticket};
use std::sync::Arc;

impl Nodes {
    /// Queues an acquire for every node that may be asked. `now` was read before any byte of it is
    /// written.
    pub(in crate::engine) fn acquire(
        &mut self,
        request: &AttemptRequest,
        now: Timestamp,
    ) -> Ticket {
        let &AttemptRequest {
            ref key,
            ref token,
            ttl_millis,
            kind,
            in_turn,
        } = request;
        let verb = match in_turn {
            Some(InTurn { request, .. }) if !request.by_command => Verb::Take {
                ttl_millis,
                request,
            },
            _ => Verb::Acquire { ttl_millis },
        };
        let attempt = Attempt::new(in_turn.map(|in_turn| in_turn.round()));
        let is_place = in_turn.is_some_and(|in_turn| in_turn.request.stores_only);
        let purpose = if is_place {
            Purpose::Enqueue(attempt)
        } else {
            Purpose::Acquire(attempt)
        };
        self.tidy(now);
        let ticket = self.open_command(purpose, key, token, kind, verb);
        let ready = self.prepare(ticket, self.connections.nodes().collect(), now);
        // When no quorum is left to ask, the other nodes are spared a key that would only have to
        // be deleted.
        if !self.rounds.is_decided(ticket) {
            self.queue(ticket, ready, now);
        }
        ticket
    }

    /// Queues an extension for every node that may be asked.
    pub(in crate::engine) fn extend(
        &mut self,
        request: &LeaseRequest<'_>,
        now: Timestamp,
    ) -> Ticket {
        self.tidy(now);
        let verb = Verb::Extend {
            ttl_millis: request.ttl_millis,
        };
        let ticket = self.open_command(
            Purpose::Extend,
            request.key,
            request.token,
            request.kind,
            verb,
        );
        let ready = self.prepare(ticket, self.connections.nodes().collect(), now);
        self.queue(ticket, ready, now);
        ticket
    }

    /// Queues a raise for the nodes that have answered less than the greatest fence. The others
    /// have their votes already: those that answered the greatest have granted, and a node that was
    /// not counted is not asked.
    pub(in crate::engine) fn raise(
        &mut self,
        key: &LockKey,
        attempt: &AttemptRecord,
        agreement: &Agreement,
        now: Timestamp,
    ) -> Ticket {
        self.tidy(now);
        let kind = attempt.kind.with_fence(agreement.fence());
        let purpose = Purpose::Acquire(Attempt::default());
        let ticket = self.open_command(purpose, key, &attempt.token, kind, Verb::Raise);
        for node in self
            .connections
            .nodes()
            .filter(|&node| !agreement.behind().contains(node))
        {
            let has_granted = agreement.settled().contains(node);
            self.rounds.vote(
                ticket,
                node,
                if has_granted {
                    &Vote::Granted
                } else {
                    &Vote::Absent
                },
            );
        }
        let ready = self.prepare(ticket, agreement.behind(), now);
        self.queue(ticket, ready, now);
        ticket
    }

    /// Queues an acquire with the token of a lock that is held, for nodes that have lost its key.
    /// No thread waits for it. Returns the nodes that it may reach.
    pub(in crate::engine) fn repair(
        &mut self,
        request: &LeaseRequest<'_>,
        nodes: NodeSet,
        now: Timestamp,
    ) -> NodeSet {
        self.connections.leave_late(now);
        // A node that has some keys of a set gets those that it lacks.
        request
            .key
            .each()
            .iter()
            .fold(NodeSet::EMPTY, |ready, key| {
                let key = &LockKey::One(Arc::clone(key));
                ready.union(self.repair_key(&LeaseRequest { key, ..*request }, nodes, now))
            })
    }

    fn repair_key(
        &mut self,
        request: &LeaseRequest<'_>,
        nodes: NodeSet,
        now: Timestamp,
    ) -> NodeSet {
        // A fence that does not fall is all that the next holder needs: the lock's own is the
        // floor.
        let purpose = Purpose::Acquire(Attempt::default());
        let verb = Verb::Acquire {
            ttl_millis: request.ttl_millis,
        };
        let ticket = self.open_command(purpose, request.key, request.token, request.kind, verb);
        let mut ready = NodeSet::EMPTY;
        for node in nodes.iter() {
            if !self.connections[node].is_ready(now) {
                // It has answered, and other nodes have been waited for since.
                self.refresh(node, now);
            }
            if self.connections[node].is_ready(now) {
                ready.insert(node);
            } else {
                let fault = self.connections[node].health.fault();
                self.rounds.vote(ticket, node, &Vote::Fault(fault));
            }
        }
        self.queue(ticket, ready, now);
        self.rounds.disown(ticket);
        ready
    }

    /// Notices connections that have ended, and begins to make them again. Returns the nodes that
    /// have lost their data since this was asked last, and whether a node is being connected to.
    /// Nothing is sent on connections that exist.
    pub(in crate::engine) fn reconnect(&mut self, now: Timestamp) -> (NodeSet, bool) {
        self.connections.leave_late(now);
        for node in self.connections.nodes() {
            // One that cannot be connected to now is tried again.
            let _ = self.connect(node, now);
        }
        (
            std::mem::take(&mut self.incarnations.returned),
            self.connections.are_connecting(),
        )
    }

    /// Queues a compare-and-delete for what an attempt may have set. For a node without a
    /// connection it is kept, if the key can have reached the node at all. A lock with a minimum
    /// hold time gets a new expiry, by compare and expire. Nothing is kept for it, because its key
    /// ends by itself.
    pub(super) fn release(&mut self, release: &Release, now: Timestamp) -> Ticket {
        let Release {
            key,
            attempt:
                AttemptRecord {
                    token,
                    reached,
                    kind,
                    departure,
                    ..
                },
            scope,
            ..
        } = release;
        let kind = *kind;
        let departure = *departure;
        let conditions = release.conditions(now);
        let verb = match *scope {
            ReleaseScope::Everywhere {
                stands_for: Some(millis),
            } => Verb::Keep {
                ttl_millis: millis.get(),
            },
            _ => Verb::Release(departure),
        };
        let stands = matches!(verb, Verb::Keep { .. });
        let is_everywhere = matches!(scope, ReleaseScope::Everywhere { .. });
        if let (true, Some(departure)) = (is_everywhere, departure) {
            self.subscribers.registry.leave(departure.entry.number);
        }
        self.tidy(now);
        let purpose = Purpose::Release {
            conditions,
            context: None,
        };
        let ticket = self.open_command(purpose, key, token, kind, verb);
        for node in reached.without(self.connections.ready(now)).iter() {
            self.prepare_to_release(node, now);
        }
        let mut ready = NodeSet::EMPTY;
        for node in self.connections.nodes() {
            let connection = &mut self.connections[node];
            let is_wanted =
                reached.contains(node) || is_everywhere && connection.is_responsive(now);
            let may_hold = is_wanted && !stands && connection.may_hold(&conditions);
            if is_wanted && !connection.is_closed() {
                if may_hold {
                    connection.pending.carry(conditions.key_ends);
                }
                ready.insert(node);
                continue;
            }
            let fault = connection.health.fault();
            if may_hold {
                self.rounds.refer(ticket, NodeSet::only(node));
                self.releases.defer(
                    node,
                    ticket,
                    None,
                    &mut self.connections,
                    &mut self.rounds,
                    now,
                );
            }
            self.rounds.vote(ticket, node, &Vote::Fault(fault));
        }
        self.queue(ticket, ready, now);
        match departure {
            Some(departure) if stands => {
                self.update_queue(
                    &key.each()[usize::from(departure.key)],
                    kind,
                    Verb::Leave(Some(departure.entry)),
                    ready,
                    now,
                );
            }
            Some(Departure {
                entry,
                ticket: None,
                ..
            }) => self.subscribers.on_removed(entry, ready),
            _ => {}
        }
        ticket
    }

    /// Takes over a lock whose key other connections have set: it may be on any node. Begins to
    /// connect to the nodes that there is no connection to, so that the lock's release need not
    /// wait for that, and asks nothing.
    pub(in crate::engine) fn adopt(
        &mut self,
        token: OwnerToken,
        kind: Kind,
        now: Readings,
    ) -> AttemptRecord {
        self.connections.leave_late(now.steady);
        for node in self.connections.nodes() {
            self.prepare_to_release(node, now.steady);
        }
        AttemptRecord {
            token,
            t0: now,
            reached: self.connections.nodes().collect(),
            origin: KeyOrigin::Elsewhere,
            departure: None,
            kind,
        }
    }

    /// Asks every node that can be asked which holder has a lock. It changes nothing there.
    pub(in crate::engine) fn inspect(
        &mut self,
        key: &str,
        is_fenced: bool,
        now: Timestamp,
    ) -> Ticket {
        let inspect =
            |session: &mut Session, ticket| session.inspect(ticket, key.as_bytes(), is_fenced, now);
        let question = HolderQuestion {
            key: key.into(),
            is_fenced,
            answers: Inspection::default(),
        };
        self.ask_alone(Purpose::Inspect(question), inspect, now)
    }

    /// Asks every node that can be asked something that is no command, and that each node is asked
    /// alone.
    pub(super) fn ask_alone(
        &mut self,
        purpose: Purpose,
        ask: impl Fn(&mut Session, Ticket),
        now: Timestamp,
    ) -> Ticket {
        self.tidy(now);
        let ticket = self.rounds.open(purpose);
        let ready = self.prepare(ticket, self.connections.nodes().collect(), now);
        for node in ready.iter() {
            let connection = self.connections.apart(node);
            connection.on_request(now);
            ask(&mut connection.session, ticket);
        }
        self.rounds.refer(ticket, ready);
        self.connections.on_queued(ready, now);
        ticket
    }

    /// Queues requests on another connection than the one that has ended with this fault: no byte
    /// of them was written, or the server was a replica, or they only ask.
    pub(super) fn queue_again(
        &mut self,
        node: NodeId,
        again: &[Ticket],
        fault: Fault,
        now: Timestamp,
    ) {
        let opened = self.reopen(node, now);
        for &ticket in again {
            let connection = &mut self.connections[node];
            match (
                opened,
                self.rounds.purpose(ticket),
                self.rounds.command(ticket),
            ) {
                (Ok(()), _, Some(command)) => connection.queue(&command, now),
                (Ok(()), Some(Purpose::Check), None) => connection.session.check(ticket, now),
                (Ok(()), Some(Purpose::Inspect(question)), None) => {
                    let key = question.key.as_bytes();
                    connection
                        .session
                        .inspect(ticket, key, question.is_fenced, now);
                }
                _ => {
                    let fault = opened.err().unwrap_or(fault);
                    self.rounds.count(ticket, node, &Vote::Fault(fault));
                }
            }
        }
        self.connections.on_queued(NodeSet::only(node), now);
    }

    /// Queues the command of a round for these nodes, and lets the round wait for their replies.
    pub(super) fn queue(&mut self, ticket: Ticket, nodes: NodeSet, now: Timestamp) {
        self.rounds.refer(ticket, nodes);
        if let Some(command) = self.rounds.command(ticket) {
            self.connections.queue(&command, nodes, now);
        }
    }

    /// Has these nodes, as far as they are connected, store a call's entry, remove it, or without
    /// one tell those that wait. Where no connection takes the removal of an entry, its client is
    /// told, and removes it then. No thread waits for it.
    pub(in crate::engine) fn update_queue(
        &mut self,
        key: &Arc<str>,
        kind: Kind,
        verb: Verb,
        nodes: NodeSet,
        now: Timestamp,
    ) {
        let ready: NodeSet = nodes
            .iter()
            .filter(|node| self.connections[*node].runs_releases())
            .collect();
        self.subscribers
            .on_left(nodes.without(ready), &mut self.connections.poll, now);
        if !ready.is_empty() {
            let key = LockKey::One(Arc::clone(key));
            let token = OwnerToken::from_entropy([0; OwnerToken::ENTROPY]);
            let ticket = self.open_command(Purpose::Entry, &key, &token, kind, verb);
            self.queue(ticket, ready, now);
            self.rounds.disown(ticket);
        }
        if let Verb::Leave(Some(entry)) = verb {
            self.subscribers.on_removed(entry, nodes);
        }
    }

    /// The nodes that do not permit the subscription, if they are so many that no quorum of
    /// messages arrives.
    pub(in crate::engine) fn denied_subscriptions(&self) -> Option<NodeSet> {
        let denied = self.subscribers.subscribe_denied;
        let nodes = self.connections.each.len();
        (denied.len() > nodes - (nodes / 2 + 1)).then_some(denied)
    }

    /// Does what was left for the next operation. What was not polled a moment ago is polled: a
    /// connection may have been closed.
    fn tidy(&mut self, now: Timestamp) {
        let Connections { poll, counting, .. } = &self.connections;
        // While a thread polls, it has the list, and each connection is read.
        if !counting.is_empty() && poll.watch.is_some() && !poll.is_fresh(now) {
            self.look(now);
        }
        self.connections.leave_late(now);
        self.expire_background(now, now);
        self.subscribers.close_idle(&mut self.connections.poll, now);
    }

    /// Opens the round of a command.
    fn open_command(
        &mut self,
        purpose: Purpose,
        key: &LockKey,
        token: &OwnerToken,
        kind: Kind,
        verb: Verb,
    ) -> Ticket {
        let operation = Operation {
            verb,
            kind,
            retention_millis: self.retention_millis,
        };
        self.rounds.open_command(purpose, key, token, operation)
    }

    /// Prepares these nodes for a request, and returns those that it can be queued for. The others
    /// have voted with their faults.
    fn prepare(&mut self, ticket: Ticket, nodes: NodeSet, now: Timestamp) -> NodeSet {
        let unknown = nodes.without(self.connections.ready(now));
        let mut ready = nodes.without(unknown);
        for node in unknown.iter() {
            let Err(fault) = self.prepare_to_ask(node, now) else {
                ready.insert(node);
                continue;
            };
            self.connections.filter(node).on_failure(fault, now);
            // A grant by a duplicate counts as the voter's. A grant of a fenced lock does not: the
            // fence would have to be raised on the connection that answered it.
            let is_fenced = |command: Command<'_>| command.operation.kind.fence().is_some();
            let counts = matches!(
                self.rounds.purpose(ticket),
                Some(Purpose::Acquire(_) | Purpose::Extend)
            ) && !self.rounds.command(ticket).is_some_and(is_fenced);
            if counts && self.connections[node].may_grant_for_another(now) {
                ready.insert(node);
            } else {
                self.rounds.vote(ticket, node, &Vote::Fault(fault));
            }
        }
        ready
    }

    /// Prepares a node for a request.
    ///
    /// # Errors
    /// Why none can be queued for it.
    fn prepare_to_ask(&mut self, node: NodeId, now: Timestamp) -> Result<(), Fault> {
        if self.connections[node].is_ready(now) {
            return Ok(());
        }
        self.connect(node, now)?;
        // Most are only to be read before they are used again.
        if self.connections[node].is_ready(now) {
            return Ok(());
        }
        self.connections.changing(node).admit(now)
    }

    /// Sees whether the connection still exists, and begins to make another one if not.
    ///
    /// # Errors
    /// Why not.
    fn connect(&mut self, node: NodeId, now: Timestamp) -> Result<(), Fault> {
        self.refresh(node, now);
        if let Some(fault) = self.connections[node].retry_reason(now) {
            self.lose(node, fault, now);
        }
        self.reopen(node, now)
    }

    /// Begins to make another connection if there is none.
    ///
    /// # Errors
    /// Why not.
    fn reopen(&mut self, node: NodeId, now: Timestamp) -> Result<(), Fault> {
        if self.connections[node].is_closed() {
            self.connections[node].health.may_ask(now)?;
            self.open(node, now)?;
        }
        Ok(())
    }

    /// Prepares a node for a release, if that is possible at present.
    fn prepare_to_release(&mut self, node: NodeId, now: Timestamp) {
        if self.connections[node].is_ready(now) {
            return;
        }
        self.refresh(node, now);
        // What went wrong is the connection's fault, and the caller asks for that.
        let _ = self.reopen(node, now);
    }
}
