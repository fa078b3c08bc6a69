//! Releases that a node has not run: kept, sent again, and dropped when their keys have ended.
//!
//! ```text
//!   sent ── run ───────────────────────────────────────► done
//!    │ ▲
//!    │ └──────────── sent again ───────────────┐
//!    ├── connection lost, the key may be there ─┴─► pending ── the key has ended ──► dropped
//!    └── error that means "not run" ────────────┘   (back-off, or a pause)
//! ```
//!
//! Every thread that drives does this on the way: it makes connections again when their back-off is over, and bounds its poll
//! by the next such time.

use super::Nodes;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::fence::FencingToken;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::pending_release::Settled;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::engine::driver::WaitSlots;
use crate::engine::node_connection::NodeConnection;
use crate::engine::rounds::Purpose;
use crate::protocol::operation::{FenceRequest, Operation};
use crate::protocol::session::Ticket;

/// Unanswered requests, and unsent bytes, up to which more pending releases are queued: half of what a node may have to
/// answer, so that it can be asked other things, and far from where its connection is given up.
const PAYMENT_LIMIT: usize = 512;
const PAYMENT_BYTES: usize = 1024 * 1024;

impl Nodes {
    /// Keeps a release for later. The round must be referred to for it.
    pub(super) fn owe(&mut self, node: NodeId, ticket: Ticket) {
        let end = self.rounds.round(ticket).map_or(Timestamp::ORIGIN, |round| round.release_terms().key_ends);
        let link = &mut self.links[node.index()];
        if let Some(dropped) = link.pending.insert(ticket, end) {
            self.rounds.unrefer(dropped);
        }
        self.owing.insert(node);
        // The driver is to bound its poll by what is due for it.
        self.changed = true;
    }

    /// Keeps a release that a lost connection left unanswered, if its key may be on the node. Its vote is the fault, unless
    /// the release is sent at once on another connection: when the other side has closed one that was in use.
    pub(super) fn owe_abandoned(
        &mut self,
        node: NodeId,
        ticket: Ticket,
        (fault, is_closed_in_use): (Fault, bool),
        bells: &mut WaitSlots,
    ) {
        let is_held = |terms| self.links[node.index()].may_hold(terms);
        let is_owed = self.rounds.round(ticket).is_some_and(|round| is_held(round.release_terms()));
        if !(is_owed && is_closed_in_use && self.rounds.resend(ticket, node)) {
            self.rounds.vote(ticket, node, Vote::Fault(fault), bells);
        }
        match is_owed {
            true => self.owe(node, ticket),
            false => self.rounds.unrefer(ticket),
        }
    }

    /// The node has answered a release.
    pub(super) fn released(&mut self, node: NodeId, ticket: Ticket, vote: Vote) -> Vote {
        self.links[node.index()].pending.resume();
        let was_resent = self.rounds.round(ticket).is_some_and(|round| round.was_resent(node));
        // The first one may have deleted the key, and its answer be lost: which is not known.
        if vote == Vote::Refused && was_resent { Vote::Fault(Fault::new(Phase::Reply, Cause::Closed)) } else { vote }
    }

    /// The node could not run a release.
    pub(super) fn not_run(
        &mut self,
        node: NodeId,
        ticket: Ticket,
        fault: Fault,
        now: Timestamp,
        bells: &mut WaitSlots,
    ) {
        let vote = self.weigh(node, ticket, Vote::Fault(fault), now);
        self.rounds.vote(ticket, node, vote, bells);
        self.note_vote(node, Some(Purpose::Release), vote, now);
        self.links[node.index()].pending.refused(now);
        self.owe(node, ticket);
    }

    /// Queues pending releases of a node, as many as it can take at once.
    pub(super) fn pay(&mut self, node: NodeId, now: Timestamp) {
        let link = &mut self.links[node.index()];
        while let Some(ticket) = link.pending.take_ended(now) {
            self.rounds.unrefer(ticket);
        }
        while link.runs_releases()
            && link.session.backlog() < PAYMENT_LIMIT
            && link.session.unsent().len() < PAYMENT_BYTES
            && let Some(ticket) = link.pending.take(now)
        {
            if let Some(round) = self.rounds.round(ticket) {
                // A release does not send the fence.
                let fence = FenceRequest { least: FencingToken::GREATEST, retention_millis: self.retention_millis };
                let operation = Operation::Release { hint: None, fence: round.is_fenced().then_some(fence) };
                link.session.queue(ticket, operation, round.key(), round.token(), now);
            }
            link.pending.is_carried = true;
        }
        if link.pending.is_empty() {
            self.owing = self.owing.without(NodeSet::from_iter([node]));
        }
    }

    /// Does what is due for pending releases: drops those whose keys have ended, makes connections again, sends.
    pub(super) fn tend_pending(&mut self, now: Timestamp, bells: &mut WaitSlots) {
        for node in self.owing.union(self.clogged).iter() {
            if let Some(fault) = self.links[node.index()].hopeless(now) {
                self.lose(node, fault, now, bells);
            }
            if self.links[node.index()].pending_due() > now {
                continue;
            }
            if let Some(fault) = self.links[node.index()].deserves_another_chance(now)
                && !self.links[node.index()].runs_releases()
            {
                self.lose(node, fault, now, bells);
            }
            self.pay(node, now);
            let link = &self.links[node.index()];
            if !link.pending.is_empty() && link.is_closed() && link.may_open(now).is_ok() {
                let opened = self.open(node, now, bells);
                if let Err(fault) = opened {
                    self.give_up_resending(node, fault, bells);
                }
            }
            self.queued(NodeSet::from_iter([node]), now);
        }
    }

    /// When there is something to do for pending releases next.
    pub(super) fn pending_due(&self) -> Timestamp {
        let due = |node: NodeId| self.links[node.index()].pending_due();
        let clogged = self.clogged.iter().filter(|node| self.links[node.index()].has_unsent_release());
        self.owing.iter().chain(clogged).map(due).min().unwrap_or(Timestamp::NEVER)
    }

    /// Notes whether a node took all that it was written.
    pub(super) fn note_clogged(&mut self, node: NodeId) {
        match self.links[node.index()].session.unsent().is_empty() {
            true => self.clogged = self.clogged.without(NodeSet::from_iter([node])),
            false => {
                self.clogged.insert(node);
            }
        }
    }

    /// When there is something to do for releases next, if any is left: now, while one is on its way, or its answer.
    pub(super) fn next_release(&self, now: Timestamp) -> Option<Timestamp> {
        let is_moving = |link: &NodeConnection| {
            link.has_release_on_its_way(now)
                || !link.pending.is_empty() && !link.is_closed() && link.session.backlog() > 0
        };
        if self.links.iter().any(is_moving) {
            return Some(now);
        }
        (!self.owing.is_empty()).then(|| self.pending_due())
    }

    /// Begins to wait for releases.
    pub(in crate::engine) fn await_settled(&mut self, what: Settled, now: Timestamp, bells: &mut WaitSlots) -> Ticket {
        let nobody = OwnerToken::from_entropy([0; OwnerToken::ENTROPY]);
        let ticket = self.rounds.open(Purpose::Wait, &[], &nobody);
        self.rounds.bear_with(ticket, true);
        self.settling.push((ticket, what));
        // A driver is to bound its poll by what is due for releases.
        self.changed = true;
        self.ring_settled(now, bells);
        ticket
    }

    pub(in crate::engine) fn leave_settling(&mut self, ticket: Ticket) {
        self.settling.retain(|&(other, _)| other != ticket);
        self.rounds.unrefer(ticket);
    }

    /// Ends the waits for releases that have come so far.
    pub(super) fn ring_settled(&mut self, now: Timestamp, bells: &mut WaitSlots) {
        for index in 0..self.settling.len() {
            let (ticket, what) = self.settling[index];
            if self.is_settled(what, now) {
                self.rounds.ring(ticket, bells);
            }
        }
    }

    pub(in crate::engine) fn is_settled(&self, what: Settled, now: Timestamp) -> bool {
        match what {
            Settled::Answered => !self.links.iter().any(NodeConnection::awaits_release),
            Settled::Run => self.owing.is_empty() && !self.links.iter().any(NodeConnection::awaits_release),
            Settled::Sent => self.next_release(now).is_none_or(|due| due > now),
        }
    }

    /// The nodes that have not run all releases, each with what keeps it from that.
    pub(in crate::engine) fn unsettled(&self) -> Vec<(NodeId, Fault)> {
        let fault = |node: NodeId| {
            let link = &self.links[node.index()];
            let is_left = !link.pending.is_empty() || link.awaits_release();
            let is_mute = link.is_closed() || !link.runs_releases();
            let fault = if is_mute { link.fault() } else { Fault::new(link.phase(), Cause::TimedOut) };
            is_left.then_some((node, fault))
        };
        self.nodes().filter_map(fault).collect()
    }

    /// The other connection could not be made: this is the node's vote in the releases that were to be sent on it.
    fn give_up_resending(&mut self, node: NodeId, fault: Fault, bells: &mut WaitSlots) {
        for ticket in self.links[node.index()].pending.tickets() {
            if self.rounds.round(ticket).is_some_and(|round| round.was_resent(node)) {
                self.rounds.vote(ticket, node, Vote::Fault(fault), bells);
            }
        }
    }
}
