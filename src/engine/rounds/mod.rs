//! The rounds in flight: one command sent to all nodes, and its tally.
//!
//! A round lives in a slot that is used again. It stays for as long as there is a reference to it:
//! by the owner, which waits for the verdict, and by each node whose reply is still to come or
//! whose release is still pending. So a straggler's reply, however late, finds its own round and no
//! other. A background release is a round without an owner. If its outcome is to be reported, the
//! round refers to itself until it has a verdict.

mod attempt;
mod purpose;
mod refusals;
mod request;
mod result;

use super::driver::WaitSlot;
use crate::algorithm::fence::FencingToken;
use crate::algorithm::inspection::Inspection;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::pending_release::ReleaseConditions;
use crate::algorithm::queue::QueueReply;
use crate::algorithm::vote::{Tally, Vote};
use crate::events::event_queue::{EventQueue, ReleaseContext};
use crate::fault::counts::FaultCounts;
use crate::fault::{Cause, Fault, Phase};
use crate::protocol::lock_key::LockKey;
use crate::protocol::operation::Operation;
use crate::protocol::session::{Command, Ticket};
pub(crate) use attempt::Attempt;
pub(crate) use purpose::{HolderQuestion, Purpose};
pub(crate) use refusals::Refusal;
use request::Request;
pub(crate) use result::RoundResult;
use std::collections::VecDeque;
use std::sync::Arc;

/// The thread that waits for the verdict. A background release has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Absent,
    Awake,
    Asleep(WaitSlot),
}

/// What that thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// The verdict. The nodes that have not voted at its deadline have failed.
    Verdict,
    /// The verdict, or a deadline at which it only checks something: that leaves the nodes without
    /// a vote.
    Glance,
    /// It has the verdict, and waits for the other votes. Its deadline leaves the nodes without
    /// one.
    Stragglers,
}

/// One round.
#[derive(Debug)]
pub(crate) struct Round {
    generation: u32,
    references: u32,
    pub(crate) purpose: Purpose,
    request: Option<Request>,
    pub(crate) tally: Tally,
    faults: Box<[Fault]>,
    reached: NodeSet,
    /// The nodes that the request is sent to once more, on another connection than the one that is
    /// lost.
    pub(crate) resent: NodeSet,
    is_decided: bool,
    owner: Owner,
    awaited: Awaited,
}

impl Round {
    fn has_verdict(&self) -> bool {
        match (&self.purpose, self.awaited) {
            (Purpose::Acquire(_) | Purpose::Extend, Awaited::Stragglers) => {
                self.tally.undecided().is_empty()
            }
            (purpose, _) => purpose.has_verdict(&self.tally),
        }
    }

    /// Decides the round. Its owner is woken if it sleeps.
    fn decide(&mut self, decided: &mut VecDeque<WaitSlot>) {
        self.is_decided = true;
        if let Owner::Asleep(slot) = self.owner {
            decided.push_back(slot);
        }
    }
}

/// All rounds in flight of one client.
pub(crate) struct Rounds {
    slots: Vec<Round>,
    unused: Vec<u32>,
    fault_counts: Box<[FaultCounts]>,
    /// The owners that sleep on a round which was decided, until the driver has woken them.
    decided: VecDeque<WaitSlot>,
    /// Where outcomes are reported, if anywhere.
    events: Option<Arc<EventQueue>>,
}

impl Rounds {
    pub(crate) fn new(nodes: usize, events: Option<Arc<EventQueue>>) -> Rounds {
        let fault_counts = vec![FaultCounts::default(); nodes].into();
        Rounds {
            slots: Vec::new(),
            unused: Vec::new(),
            fault_counts,
            decided: VecDeque::new(),
            events,
        }
    }

    /// Opens a round that is about no key. The caller has the first reference to it.
    pub(crate) fn open(&mut self, purpose: Purpose) -> Ticket {
        let nodes = self.fault_counts.len();
        let slot = self.unused.pop().unwrap_or_else(|| {
            self.slots.push(Round {
                generation: 0,
                references: 0,
                purpose: Purpose::Wait,
                request: None,
                tally: Tally::new(nodes),
                faults: vec![Fault::new(Phase::Reply, Cause::TimedOut); nodes].into(),
                reached: NodeSet::EMPTY,
                resent: NodeSet::EMPTY,
                is_decided: false,
                owner: Owner::Absent,
                awaited: Awaited::Verdict,
            });
            (self.slots.len() - 1) as u32
        });
        let round = &mut self.slots[slot as usize];
        round.references = 1;
        round.purpose = purpose;
        round.tally = Tally::new(nodes);
        round.reached = NodeSet::EMPTY;
        round.resent = NodeSet::EMPTY;
        round.is_decided = false;
        round.owner = Owner::Absent;
        round.awaited = Awaited::Verdict;
        Ticket {
            slot,
            generation: round.generation,
        }
    }

    /// Opens the round of a command about the key of a lock.
    pub(crate) fn open_command(
        &mut self,
        purpose: Purpose,
        key: &LockKey,
        token: &OwnerToken,
        operation: Operation,
    ) -> Ticket {
        let ticket = self.open(purpose);
        self.slots[ticket.slot as usize].request = Some(Request {
            key: key.clone(),
            token: token.clone(),
            operation,
        });
        ticket
    }

    /// What the nodes of a round are asked, if it is about a key.
    pub(crate) fn command(&self, ticket: Ticket) -> Option<Command<'_>> {
        Some(self.round(ticket)?.request.as_ref()?.command(ticket))
    }

    /// Whether a node's request is worth sending on another connection before the node votes: its
    /// owner waits for the verdict, and it was not done before.
    pub(crate) fn resend(&mut self, ticket: Ticket, node: NodeId) -> bool {
        self.round_mut(ticket).is_some_and(|round| {
            let is_unreported = matches!(round.purpose, Purpose::Release { context: None, .. });
            let is_over = round.is_decided || is_unreported && round.owner == Owner::Absent;
            !is_over && round.resent.insert(node)
        })
    }

    /// Records the fence that a node has granted the key with. To be called before its vote.
    pub(crate) fn record_fence(&mut self, ticket: Ticket, node: NodeId, fence: FencingToken) {
        if let Some(attempt) = self.attempt(ticket, |tally| tally.undecided().contains(node)) {
            attempt.fences.record(node, fence);
        }
    }

    /// Records what a node that has not granted replied about the queue. To be called before its
    /// vote.
    pub(crate) fn record_queue_reply(&mut self, ticket: Ticket, node: NodeId, reply: &QueueReply) {
        if let Some(attempt) = self.attempt(ticket, |tally| tally.undecided().contains(node)) {
            attempt.record_queue_reply(node, reply);
        }
    }

    /// Records what a node has replied about the key that it has refused for.
    pub(crate) fn record_refusal(&mut self, ticket: Ticket, node: NodeId, refusal: Refusal) {
        if let Some(attempt) = self.attempt(ticket, |tally| tally.refused().contains(node)) {
            attempt.refusals.record(node, refusal);
        }
    }

    fn attempt(
        &mut self,
        ticket: Ticket,
        is_counted: impl Fn(&Tally) -> bool,
    ) -> Option<&mut Attempt> {
        self.round_mut(ticket)
            .filter(|round| is_counted(&round.tally))?
            .purpose
            .attempt()
    }

    /// The answers to a question that changes nothing.
    pub(crate) fn inquiry(&mut self, ticket: Ticket) -> Option<&mut Inspection> {
        match &mut self.round_mut(ticket)?.purpose {
            Purpose::Inspect(question) => Some(&mut question.answers),
            _ => None,
        }
    }

    /// No thread waits for the round: nothing is asked again for it. The caller transfers its
    /// reference.
    pub(crate) fn disown(&mut self, ticket: Ticket) {
        if let Some(round) = self.round_mut(ticket) {
            round.is_decided = true;
        }
        self.unrefer(ticket);
    }

    /// The round of a ticket, for as long as there is a reference to it.
    pub(crate) fn round(&self, ticket: Ticket) -> Option<&Round> {
        let round = self.slots.get(ticket.slot as usize)?;
        (round.generation == ticket.generation).then_some(round)
    }

    /// More references: replies of these nodes are to come.
    pub(crate) fn refer(&mut self, ticket: Ticket, nodes: NodeSet) {
        if let Some(round) = self.round_mut(ticket) {
            round.references += nodes.len() as u32;
            round.reached = round.reached.union(nodes);
        }
    }

    /// One reference less. The last one frees the slot, and no ticket of the past opens it again.
    #[inline]
    pub(crate) fn unrefer(&mut self, ticket: Ticket) {
        let Some(round) = self.round_mut(ticket) else {
            return;
        };
        round.references -= 1;
        if round.references == 0 {
            round.generation = round.generation.wrapping_add(1);
            round.request = None;
            self.unused.push(ticket.slot);
        }
    }

    /// What a round is for, while there is a reference to it.
    pub(crate) fn purpose(&self, ticket: Ticket) -> Option<&Purpose> {
        self.round(ticket).map(|round| &round.purpose)
    }

    /// For a release: what decides whether, and for how long, it is kept for a node.
    pub(crate) fn conditions(&self, ticket: Ticket) -> Option<&ReleaseConditions> {
        match self.purpose(ticket)? {
            Purpose::Release { conditions, .. } => Some(conditions),
            _ => None,
        }
    }

    /// Sets what the owner of a round sleeps on, if it does.
    pub(crate) fn assign(&mut self, ticket: Ticket, slot: Option<WaitSlot>) {
        if let Some(round) = self.round_mut(ticket) {
            round.owner = slot.map_or(Owner::Awake, Owner::Asleep);
        }
    }

    /// The next owner to be woken.
    pub(crate) fn next_decided(&mut self) -> Option<WaitSlot> {
        self.decided.pop_front()
    }

    /// Counts a vote.
    pub(crate) fn vote(&mut self, ticket: Ticket, node: NodeId, vote: &Vote) {
        let Some(round) = live(&mut self.slots, ticket) else {
            return;
        };
        if round.tally.record(node, *vote)
            && let Vote::Fault(fault) = vote
        {
            round.faults[node.index()] = *fault;
            self.fault_counts[node.index()].record(*fault);
        }
        if !round.is_decided && round.has_verdict() {
            round.decide(&mut self.decided);
            if let Purpose::Release { context, .. } = &mut round.purpose
                && let Some(context) = context.take()
            {
                self.report(ticket, context);
            }
        }
    }

    /// Counts the vote of a node that refers to the round for the last time.
    #[inline]
    pub(crate) fn count(&mut self, ticket: Ticket, node: NodeId, vote: &Vote) {
        self.vote(ticket, node, vote);
        self.unrefer(ticket);
    }

    /// A node has granted, by an answer on another connection to the same server. The vote of that
    /// connection, which follows, decides the round if this does.
    pub(crate) fn granted_at(&mut self, ticket: Ticket, node: NodeId) {
        if let Some(round) = self.round_mut(ticket) {
            round.tally.granted_at(node);
        }
    }

    /// A node turns out not to count: nor do its grants, and their fences, in attempts that are not
    /// decided.
    pub(crate) fn withdraw(&mut self, node: NodeId, fault: Fault) {
        let reopened: Vec<Ticket> = self.reopened(node).map(|(ticket, ..)| ticket).collect();
        for ticket in reopened {
            self.vote(ticket, node, &Vote::Fault(fault));
        }
    }

    /// It is open whether a node counts: so are its grants in attempts that are not decided.
    /// Returns them, with their fences, and refers to their rounds once more.
    pub(crate) fn take_back(&mut self, node: NodeId) -> Vec<(Ticket, Option<FencingToken>)> {
        let mut taken = Vec::new();
        for (ticket, round, fence) in self.reopened(node) {
            round.references += 1;
            taken.push((ticket, fence));
        }
        taken
    }

    /// The attempts that are not decided and had a grant of the node, as if it had not voted; and
    /// the fence of its grant.
    fn reopened(
        &mut self,
        node: NodeId,
    ) -> impl Iterator<Item = (Ticket, &mut Round, Option<FencingToken>)> {
        (0..).zip(&mut self.slots).filter_map(move |(slot, round)| {
            let ticket = Ticket {
                slot,
                generation: round.generation,
            };
            let Purpose::Acquire(attempt) = &mut round.purpose else {
                return None;
            };
            if round.references == 0 || round.is_decided || !round.tally.take_back(node) {
                return None;
            }
            let fence = attempt.fences.forget(node);
            Some((ticket, round, fence))
        })
    }

    /// How often a node's vote was lost to faults.
    pub(crate) fn fault_counts(&self, node: NodeId) -> &FaultCounts {
        &self.fault_counts[node.index()]
    }

    /// Ends a wait.
    pub(crate) fn end_wait(&mut self, ticket: Ticket) {
        if let Some(round) = live(&mut self.slots, ticket)
            && !round.is_decided
        {
            round.decide(&mut self.decided);
        }
    }

    /// Reports the verdict on a release, now or when there is one. The caller transfers its
    /// reference. True when the verdict was there.
    pub(crate) fn report_verdict(&mut self, ticket: Ticket, reported: ReleaseContext) -> bool {
        let is_decided = self.is_decided(ticket);
        if is_decided {
            self.report(ticket, reported);
        } else if let Some(Round {
            purpose: Purpose::Release { context, .. },
            ..
        }) = self.round_mut(ticket)
        {
            *context = Some(reported);
        }
        is_decided
    }

    fn report(&mut self, ticket: Ticket, context: ReleaseContext) {
        let result = self.conclude(ticket);
        if let Some(events) = &self.events {
            events.push_release(&context, result.tally.release(), &result.faults);
        }
    }

    /// Sets whether the owner's next deadline leaves the nodes without a vote.
    pub(crate) fn set_soft_deadline(&mut self, ticket: Ticket, is_soft: bool) {
        if let Some(round) = self.round_mut(ticket) {
            round.awaited = if is_soft {
                Awaited::Glance
            } else {
                Awaited::Verdict
            };
        }
    }

    /// Whether the owner's deadline leaves the nodes without a vote.
    pub(crate) fn has_soft_deadline(&self, ticket: Ticket) -> bool {
        let is_soft = |round: &Round| {
            round.awaited != Awaited::Verdict || matches!(round.purpose, Purpose::Wait)
        };
        self.round(ticket).is_some_and(is_soft)
    }

    /// Waits for the nodes that have not voted, where their votes are of use though there is a
    /// verdict. The owner's deadline leaves them without a vote. False when there is none to wait
    /// for.
    pub(crate) fn await_stragglers(&mut self, ticket: Ticket) -> bool {
        let Some(round) = self.round_mut(ticket) else {
            return false;
        };
        let has_stragglers =
            !round.tally.undecided().is_empty() && round.purpose.awaits_stragglers(&round.tally);
        if has_stragglers {
            round.is_decided = false;
            round.awaited = Awaited::Stragglers;
        }
        has_stragglers
    }

    /// Ends the owner's wait: returns the count as it is now, and refers to the round no more.
    pub(crate) fn conclude(&mut self, ticket: Ticket) -> RoundResult {
        let round = &mut self.slots[ticket.slot as usize];
        debug_assert_eq!(
            round.generation, ticket.generation,
            "the owner refers to its round until here"
        );
        let tally = round.tally;
        let purpose = &mut round.purpose;
        let matters = matches!(purpose, Purpose::Check | Purpose::Inspect(_))
            || tally.granted().len() < tally.quorum();
        let faulted = if matters {
            tally.faulted()
        } else {
            NodeSet::EMPTY
        };
        let faults = faulted
            .iter()
            .map(|node| (node, round.faults[node.index()]))
            .collect();
        let inquiry = if let Purpose::Inspect(question) = purpose {
            Some(std::mem::take(&mut question.answers))
        } else {
            None
        };
        let Attempt {
            refusals,
            fences,
            queue,
        } = purpose.attempt().map(std::mem::take).unwrap_or_default();
        // The owner goes on to undo the attempt: no node that it has not awaited is asked again.
        round.is_decided = true;
        let result = RoundResult {
            reached: round.reached,
            faults,
            refusals,
            agreement: fences.agreement(),
            queue,
            inquiry,
            tally,
        };
        self.unrefer(ticket);
        result
    }

    /// Whether the verdict is in. A round that is gone has nothing to wait for.
    pub(crate) fn is_decided(&self, ticket: Ticket) -> bool {
        self.round(ticket).is_none_or(|round| round.is_decided)
    }

    fn round_mut(&mut self, ticket: Ticket) -> Option<&mut Round> {
        live(&mut self.slots, ticket)
    }
}

/// The round of a ticket, while there is a reference to it.
fn live(slots: &mut [Round], ticket: Ticket) -> Option<&mut Round> {
    let round = slots.get_mut(ticket.slot as usize)?;
    (round.generation == ticket.generation).then_some(round)
}

#[cfg(test)]
mod tests;
