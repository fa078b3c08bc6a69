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

use super::Fleet;
use crate::net::relay::Bells;
use crate::proto::fault::{Cause, Fault, Phase};
use crate::proto::fenced::{Ask, Deed};
use crate::proto::node::{NodeId, NodeSet};
use crate::proto::session::Ticket;
use crate::proto::time::Timestamp;
use crate::proto::vote::Vote;

/// Unanswered requests, and unsent bytes, up to which more pending releases are queued: half of what a node may have to
/// answer, so that it can be asked other things, and far from where its connection is given up.
const PAYMENT_LIMIT: usize = 512;
const PAYMENT_BYTES: usize = 1024 * 1024;

impl Fleet {
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
        bells: &mut Bells,
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
        // The first one may have deleted the key, and its answer be lost: nobody can tell.
        if vote == Vote::Refused && was_resent { Vote::Fault(Fault::new(Phase::Reply, Cause::Closed)) } else { vote }
    }

    /// The node could not run a release.
    pub(super) fn not_run(&mut self, node: NodeId, ticket: Ticket, fault: Fault, now: Timestamp, bells: &mut Bells) {
        let vote = self.weigh(node, ticket, Vote::Fault(fault), now);
        self.rounds.vote(ticket, node, vote, bells);
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
            match self.rounds.round(ticket) {
                Some(round) if round.is_fenced() => {
                    let ask = Ask { deed: Deed::Release(None), retention_millis: self.retention_millis };
                    link.session.fenced(ticket, ask, round.key(), round.token(), now);
                }
                Some(round) => link.session.release_owed(ticket, round.key(), round.token(), now),
                None => {}
            }
        }
        if link.pending.is_empty() {
            self.owing = self.owing.without(NodeSet::from_iter([node]));
        }
    }

    /// Does what is due for pending releases: drops those whose keys have ended, makes connections again, sends.
    pub(super) fn tend_pending(&mut self, now: Timestamp, bells: &mut Bells) {
        for node in self.owing.iter() {
            if self.links[node.index()].pending_due() > now {
                continue;
            }
            if let Some(fault) = self.links[node.index()].hopeless(now) {
                self.lose(node, fault, now, bells);
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
        self.owing.iter().map(due).min().unwrap_or(Timestamp::NEVER)
    }

    /// The other connection could not be made: this is the node's vote in the releases that were to be sent on it.
    fn give_up_resending(&mut self, node: NodeId, fault: Fault, bells: &mut Bells) {
        for ticket in self.links[node.index()].pending.tickets() {
            if self.rounds.round(ticket).is_some_and(|round| round.was_resent(node)) {
                self.rounds.vote(ticket, node, Vote::Fault(fault), bells);
            }
        }
    }
}
