//! Releases that a node has not run: kept, sent again, and dropped when their keys have ended.
//!
//! ```text
//!   from      when                                                      to
//!   new       there is a connection                                     sent
//!   new       there is none, and the key may be on the node             pending
//!   new       there is none, and the key cannot be on the node          done
//!   sent      the node has run it                                       done
//!   sent      the connection is lost, and the key may be on the node    pending
//!   sent      the connection is lost, and the key cannot be there       done
//!   sent      the node answers with an error that means "not run"       pending, and after a pause
//!   pending   there is a connection, and the pause is over              sent
//!   pending   the key has ended                                         dropped
//!   pending   too many are kept for the node, and its key ends first    dropped
//! ```
//!
//! `Nodes::release` makes the first step. `Nodes::absorb` calls `Nodes::serve_pending` after each
//! poll, and the poll ends no later than the next back-off, pause or key. Without a driving thread,
//! `driver/helper.rs` does this.

use super::Nodes;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::pending_release::Settled;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::engine::driver::Reactor;
use crate::engine::rounds::Purpose;
use crate::fault::{Cause, Fault};
use crate::protocol::session::Ticket;

/// Unanswered requests, and unsent bytes, up to which more pending releases are queued: half of
/// what a node may have to answer, so that it can be asked other things, and far from where its
/// connection is closed.
const FLUSH_LIMIT: usize = 512;
const FLUSH_BYTES: usize = 1024 * 1024;

impl Nodes {
    /// Keeps a release for later. `refusal`: why the node has not run it now. The round must be
    /// referred to for it.
    pub(super) fn defer_release(
        &mut self,
        node: NodeId,
        ticket: Ticket,
        refusal: Option<Fault>,
        now: Timestamp,
    ) {
        let end = self
            .rounds
            .conditions(ticket)
            .map_or(Timestamp::ORIGIN, |conditions| conditions.key_ends);
        let refusal = refusal.map(|fault| (fault, now));
        if let Some(dropped) = self.apart(node).pending.insert(ticket, end, refusal) {
            self.rounds.unrefer(dropped);
        }
        self.releases.pending.insert(node);
        // The driver has to bound its poll by what is due for it.
        self.poll.note_change(true);
    }

    /// Keeps a release that a lost connection left unanswered, if its key may be on the node. The
    /// node's vote is the fault. It has none yet if the release is sent at once on another
    /// connection: when the server has closed one that was in use.
    pub(super) fn defer_abandoned(
        &mut self,
        node: NodeId,
        ticket: Ticket,
        fault: Fault,
        is_closed_in_use: bool,
        now: Timestamp,
    ) {
        let conditions = self.rounds.conditions(ticket);
        let is_needed = conditions.is_some_and(|conditions| self.node(node).may_hold(conditions));
        if !(is_needed && is_closed_in_use && self.rounds.resend(ticket, node)) {
            self.rounds.vote(ticket, node, &Vote::Fault(fault));
        }
        match is_needed {
            true => self.defer_release(node, ticket, None, now),
            false => self.rounds.unrefer(ticket),
        }
    }

    /// The node could not run a release: keeps it for later.
    pub(super) fn note_not_run(
        &mut self,
        node: NodeId,
        ticket: Ticket,
        fault: Fault,
        now: Timestamp,
    ) {
        let mut vote = Vote::Fault(fault);
        self.filter(node).filter_vote(None, &mut vote, now);
        self.rounds.vote(ticket, node, &vote);
        self.filter(node).note_vote(None, &vote, now);
        self.defer_release(node, ticket, Some(fault), now);
    }

    /// Queues pending releases of a node, as many as it can take at once.
    pub(super) fn flush_pending(&mut self, node: NodeId, now: Timestamp) {
        let connection = &mut self.connections[node.index()];
        while let Some(ticket) = connection.pending.take_ended(now) {
            self.rounds.unrefer(ticket);
        }
        while connection.runs_releases()
            && let backlog = connection.session.pipeline.backlog()
            && backlog.requests < FLUSH_LIMIT
            && backlog.unsent < FLUSH_BYTES
            && let Some(ticket) = connection.pending.take(now)
        {
            if let (Some(conditions), Some(command)) =
                (self.rounds.conditions(ticket), self.rounds.command(ticket))
            {
                connection.pending.carry(conditions.key_ends);
                connection.queue(&command, now);
            }
        }
        if connection.pending.is_empty() {
            self.releases.pending.set(node, false);
        }
    }

    /// Does what is due for pending releases: drops those whose keys have ended, makes connections
    /// again, sends.
    pub(super) fn serve_pending(&mut self, now: Timestamp) {
        let mut nodes = self.releases.pending.union(self.releases.blocked);
        if !self.releases.waits.is_empty() {
            // It also finds out which nodes are silent.
            let silent = self
                .nodes()
                .filter(|&node| self.node(node).awaits_release(&self.following.log));
            nodes = nodes.union(silent.collect());
        }
        for node in nodes.iter() {
            if let Some(fault) = self.node(node).exceeded_limit(now) {
                self.lose(node, fault, now);
            }
            if self.node(node).pending_due() > now {
                continue;
            }
            if let Some(fault) = self.node(node).retry_reason(now)
                && !self.node(node).runs_releases()
            {
                self.lose(node, fault, now);
            }
            self.flush_pending(node, now);
            let connection = self.node(node);
            if !connection.pending.is_empty()
                && connection.is_closed()
                && connection.health.may_ask(now).is_ok()
                && let Err(fault) = self.open(node, now)
            {
                // This is the node's vote in the releases that were to be sent on another
                // connection.
                for ticket in self.connections[node.index()].pending.tickets() {
                    if self
                        .rounds
                        .round(ticket)
                        .is_some_and(|round| round.resent.contains(node))
                    {
                        self.rounds.vote(ticket, node, &Vote::Fault(fault));
                    }
                }
            }
            self.commands.on_queued(NodeSet::only(node), now);
        }
    }

    /// Ends the background releases whose deadlines are not after `last`: those that no thread
    /// waits for, and whose outcome is reported as an event. The votes decide such a round like any
    /// other. As no thread's deadline ends it, the next operation on the nodes, or the helper,
    /// counts the nodes that have not answered as timed out.
    pub(in crate::engine) fn expire_background(&mut self, last: Timestamp, now: Timestamp) {
        self.leave_late(now);
        while let Some(&(ticket, deadline)) = self.background.front()
            && (deadline <= last || self.rounds.is_decided(ticket))
        {
            self.background.pop_front();
            if !self.rounds.is_decided(ticket) {
                self.expire(ticket, now);
            }
        }
    }

    /// Begins to wait for releases.
    pub(in crate::engine) fn await_settled(&mut self, target: Settled, now: Timestamp) -> Ticket {
        let ticket = self.rounds.open(Purpose::Wait);
        self.releases.waits.push((ticket, target));
        // The driver has to bound its poll by what is due for releases.
        self.poll.note_change(true);
        self.end_settled(now);
        ticket
    }

    /// Ends the waits for what has been reached.
    pub(super) fn end_settled(&mut self, now: Timestamp) {
        if self.releases.waits.is_empty() {
            return;
        }
        let is_sent = self.work_due(now).is_none_or(|due| due > now);
        let is_answered = !self.awaits_release();
        for &(ticket, target) in &self.releases.waits {
            let is_reached = match target {
                Settled::Answered => is_answered,
                Settled::Run => self.releases.pending.is_empty() && is_answered,
                // Nothing is left to do at once.
                Settled::Sent => is_sent,
            };
            if is_reached {
                self.rounds.end_wait(ticket);
            }
        }
    }

    /// Whether a node has not answered a release.
    pub(super) fn awaits_release(&self) -> bool {
        self.connections
            .iter()
            .any(|connection| connection.awaits_release(&self.following.log))
    }

    /// When there is something to do for pending releases next.
    pub(super) fn pending_due(&self) -> Timestamp {
        let log = &self.following.log;
        let blocked = self
            .releases
            .blocked
            .iter()
            .filter(|&node| self.node(node).has_unsent_release(log));
        let due = |node: NodeId| self.node(node).pending_due();
        self.releases
            .pending
            .iter()
            .chain(blocked)
            .map(due)
            .min()
            .unwrap_or(Timestamp::NEVER)
    }

    /// When there is something to do for releases next, if any is left: now, while one is on its
    /// way; when the answers were not looked for, after a while.
    pub(super) fn release_due(&self, now: Timestamp) -> Timestamp {
        let pending = if self.releases.pending.is_empty() {
            Timestamp::NEVER
        } else {
            self.pending_due()
        };
        let dues = self
            .connections
            .iter()
            .map(|connection| connection.release_due(&self.following.log, now));
        dues.fold(pending, Timestamp::min)
    }

    /// Ends a wait for releases.
    pub(in crate::engine) fn leave_settled(&mut self, ticket: Ticket) {
        self.releases.waits.retain(|&(other, _)| other != ticket);
        self.rounds.unrefer(ticket);
    }

    /// When a node last sent anything.
    pub(in crate::engine) fn heard_at(&self) -> Timestamp {
        self.releases.heard_at
    }

    /// The nodes that have not run all releases, each with what keeps it from that.
    pub(in crate::engine) fn unsettled(&self) -> Vec<(NodeId, Fault)> {
        let fault = |node: NodeId| {
            let connection = self.node(node);
            let is_left =
                !connection.pending.is_empty() || connection.awaits_release(&self.following.log);
            let cannot_run = connection.is_closed() || !connection.runs_releases();
            let late = Fault::new(connection.phase(), Cause::TimedOut);
            let fault = if cannot_run {
                connection.fault()
            } else {
                connection.pending.refusal().unwrap_or(late)
            };
            is_left.then_some((node, fault))
        };
        self.nodes().filter_map(fault).collect()
    }
}
