//! The rounds in flight: one command sent to all nodes, and its tally.
//!
//! A round lives in a slot that is used again. It stays for as long as there is a reference to it: by the owner, which
//! waits for the verdict, and by each node whose reply is still to come or whose release is still pending. So a
//! straggler's reply, however late, finds its own round and no other. A background release is a round without an owner.
//! If its outcome is to be reported, the round refers to itself until it has a verdict.

mod asking;
mod purpose;
mod queueing;
mod refusals;
mod result;
mod withdrawal;

use super::driver::WaitSlot;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::fault_counts::FaultCounts;
use crate::algorithm::fence::{Fences, FencingToken};
use crate::algorithm::inspection::Inspection;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::lock_kind::LockKind;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::pending_release::ReleaseConditions;
use crate::algorithm::queue::QueueRound;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::{ExtensionVerdict, Outcome, ReleaseVerdict, Tally, Vote};
use crate::events::event_queue::{EventQueue, PendingEvent, ReleaseContext};
use crate::protocol::operation::Operation;
use crate::protocol::session::Ticket;
pub(crate) use purpose::{Purpose, Straggler};
pub(crate) use result::RoundResult;
use std::collections::VecDeque;
use std::sync::Arc;

/// Longest key buffer that an unused slot keeps.
const KEPT_KEY: usize = 256;

/// The thread that waits for the verdict. A background release has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Absent,
    Awake,
    Asleep(WaitSlot),
}

/// One round.
#[derive(Debug)]
pub(crate) struct Round {
    generation: u32,
    references: u32,
    purpose: Purpose,
    key: Vec<u8>,
    token: OwnerToken,
    tally: Tally,
    faults: Box<[Fault]>,
    /// When the keys end for which nodes refused, as far as they have said.
    ends: Vec<Timestamp>,
    /// For which keys of a set they refused: a bit for each.
    refusals: Vec<u64>,
    /// The nodes that refused for a key without expiry.
    endless: NodeSet,
    /// For an attempt that is made in turn: what the nodes replied about the queue.
    queue: Option<Box<QueueRound>>,
    /// What the nodes are asked, if it is about the key.
    operation: Option<Operation>,
    reached: NodeSet,
    decided: bool,
    /// Whether its owner's deadline leaves the nodes without a vote: the owner only checks something, or has its
    /// verdict.
    soft_deadline: bool,
    owner: Owner,
    /// Of a background release whose outcome is to be reported.
    context: Option<ReleaseContext>,
    kind: LockKind,
    /// Of a release: what decides whether, and for how long, it is kept for a node.
    conditions: ReleaseConditions,
    /// The nodes that it is sent to once more, on another connection.
    resent: NodeSet,
    /// What the nodes of a fenced attempt have answered.
    fences: Fences,
    /// What nodes have answered to a question that changes nothing.
    inquiry: Option<Box<Inspection>>,
}

impl Round {
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) fn conditions(&self) -> &ReleaseConditions {
        &self.conditions
    }

    pub(crate) fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Whether the node was sent the request on a connection that is lost, and once more on another one.
    pub(crate) fn was_resent(&self, node: NodeId) -> bool {
        self.resent.contains(node)
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// What kind of lock its key is of.
    pub(crate) fn kind(&self) -> LockKind {
        self.kind
    }

    fn has_verdict(&self) -> bool {
        match self.purpose {
            // The owner has its verdict already, and waits for the other nodes.
            Purpose::Acquire if self.soft_deadline => self.tally.undecided().is_empty(),
            Purpose::Acquire | Purpose::Enqueue => self.tally.acquisition() != Outcome::Pending && !self.lacks_ticket(),
            Purpose::Extend(straggler) => match self.tally.extension() {
                ExtensionVerdict::Pending => false,
                ExtensionVerdict::Extended => straggler == Straggler::LeftBehind || self.tally.undecided().is_empty(),
                ExtensionVerdict::Lost | ExtensionVerdict::Unavailable => true,
            },
            Purpose::Check => self.tally.undecided().is_empty(),
            Purpose::Inspect => self.inquiry.as_ref().is_some_and(|answers| answers.is_decided(&self.tally)),
            Purpose::Release => self.tally.release() != ReleaseVerdict::Pending,
            // No thread waits for it. A wait is ended.
            Purpose::Entry | Purpose::Wait => false,
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
        Rounds { slots: Vec::new(), unused: Vec::new(), fault_counts, decided: VecDeque::new(), events }
    }

    /// Opens a round. The caller has the first reference to it.
    pub(crate) fn open(&mut self, purpose: Purpose, key: &[u8], token: &OwnerToken) -> Ticket {
        let slot = match self.unused.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(Round {
                    generation: 0,
                    references: 0,
                    purpose,
                    key: Vec::new(),
                    token: token.clone(),
                    tally: Tally::new(self.fault_counts.len()),
                    faults: vec![Fault::new(Phase::Reply, Cause::TimedOut); self.fault_counts.len()].into_boxed_slice(),
                    ends: Vec::new(),
                    refusals: Vec::new(),
                    endless: NodeSet::EMPTY,
                    queue: None,
                    operation: None,
                    reached: NodeSet::EMPTY,
                    decided: false,
                    soft_deadline: false,
                    owner: Owner::Absent,
                    context: None,
                    kind: LockKind::Plain,
                    conditions: ReleaseConditions::default(),
                    resent: NodeSet::EMPTY,
                    fences: Fences::default(),
                    inquiry: None,
                });
                (self.slots.len() - 1) as u32
            }
        };
        let round = &mut self.slots[slot as usize];
        round.references = 1;
        round.purpose = purpose;
        round.key.extend_from_slice(key);
        round.token.clone_from(token);
        round.tally = Tally::new(self.fault_counts.len());
        round.ends.clear();
        round.refusals.clear();
        (round.reached, round.endless, round.resent) = (NodeSet::EMPTY, NodeSet::EMPTY, NodeSet::EMPTY);
        (round.queue, round.operation) = (None, None);
        (round.decided, round.soft_deadline, round.kind) = (false, false, LockKind::Plain);
        round.owner = Owner::Absent;
        round.inquiry = (purpose == Purpose::Inspect).then(Box::default);
        Ticket { slot, generation: round.generation }
    }

    /// Opens the round of a command about the key of a lock.
    pub(crate) fn open_command(
        &mut self,
        purpose: Purpose,
        (key, token): (&[u8], &OwnerToken),
        kind: LockKind,
    ) -> Ticket {
        let ticket = self.open(purpose, key, token);
        let round = &mut self.slots[ticket.slot as usize];
        round.kind = kind;
        if kind.is_fenced() {
            round.fences.clear();
        }
        ticket
    }

    /// Opens the round of a release.
    pub(crate) fn open_release(
        &mut self,
        lock: (&[u8], &OwnerToken),
        kind: LockKind,
        conditions: ReleaseConditions,
    ) -> Ticket {
        let ticket = self.open_command(Purpose::Release, lock, kind);
        self.slots[ticket.slot as usize].conditions = conditions;
        ticket
    }

    /// Whether a node's request is worth sending on another connection before the node votes: its owner waits for the
    /// verdict, and it was not done before.
    pub(crate) fn resend(&mut self, ticket: Ticket, node: NodeId) -> bool {
        self.round_mut(ticket).is_some_and(|round| {
            let is_background = round.purpose == Purpose::Release && round.owner == Owner::Absent;
            let is_awaited = !round.decided && (!is_background || round.context.is_some());
            is_awaited && round.resent.insert(node)
        })
    }

    /// Notes the fence that a node has granted the key with.
    pub(crate) fn record_fence(&mut self, ticket: Ticket, node: NodeId, fence: FencingToken) {
        if let Some(round) = self.round_mut(ticket)
            && round.tally.undecided().contains(node)
        {
            round.fences.record(node, fence);
        }
    }

    /// The answers to a question that changes nothing.
    pub(crate) fn inquiry(&mut self, ticket: Ticket) -> Option<&mut Inspection> {
        self.round_mut(ticket)?.inquiry.as_deref_mut()
    }

    /// Decides a round that no thread waits for: nothing is asked again for it.
    pub(crate) fn mark_decided(&mut self, ticket: Ticket) {
        if let Some(round) = self.round_mut(ticket) {
            round.decided = true;
        }
    }

    /// The round of a ticket, for as long as there is a reference to it.
    pub(crate) fn round(&self, ticket: Ticket) -> Option<&Round> {
        let round = self.slots.get(ticket.slot as usize)?;
        (round.generation == ticket.generation && round.references > 0).then_some(round)
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
        let Some(round) = self.round_mut(ticket) else { return };
        round.references -= 1;
        if round.references == 0 {
            round.generation = round.generation.wrapping_add(1);
            round.key.clear();
            round.key.shrink_to(KEPT_KEY);
            self.unused.push(ticket.slot);
        }
    }

    /// What a round is for, while there is a reference to it.
    pub(crate) fn purpose(&self, ticket: Ticket) -> Option<Purpose> {
        self.round(ticket).map(|round| round.purpose)
    }

    /// Says what the owner of a round sleeps on, if it does.
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
        let Some(round) = live(&mut self.slots, ticket) else { return };
        if round.tally.record(node, *vote)
            && let Vote::Fault(fault) = vote
        {
            round.faults[node.index()] = *fault;
            self.fault_counts[node.index()].record(*fault);
        }
        if !round.decided && round.has_verdict() {
            round.decided = true;
            if let Owner::Asleep(slot) = round.owner {
                self.decided.push_back(slot);
            }
            if round.context.is_some() {
                self.push_verdict(ticket);
            }
        }
    }

    /// Counts the last vote of a node that refers to the round: it grants or refuses.
    pub(crate) fn count(&mut self, ticket: Ticket, node: NodeId, is_granted: bool) {
        self.vote(ticket, node, if is_granted { &Vote::Granted } else { &Vote::Refused });
        self.unrefer(ticket);
    }

    /// A node has granted, by an answer on another connection to the same server. The vote of that connection, which
    /// follows, decides the round if this does.
    pub(crate) fn granted_at(&mut self, ticket: Ticket, node: NodeId) {
        if let Some(round) = self.round_mut(ticket) {
            round.tally.granted_at(node);
        }
    }

    /// How often a node's vote was lost to faults.
    pub(crate) fn fault_counts(&self, node: NodeId) -> &FaultCounts {
        &self.fault_counts[node.index()]
    }

    /// Ends a wait.
    pub(crate) fn end_wait(&mut self, ticket: Ticket) {
        if let Some(round) = self.round_mut(ticket)
            && !std::mem::replace(&mut round.decided, true)
            && let Owner::Asleep(slot) = round.owner
        {
            self.decided.push_back(slot);
        }
    }

    /// Reports the verdict on a release, now or when there is one. The caller gives its reference away. True when the
    /// verdict was there.
    pub(crate) fn report_verdict(&mut self, ticket: Ticket, context: ReleaseContext) -> bool {
        let is_decided = self.is_decided(ticket);
        if let Some(round) = self.round_mut(ticket) {
            round.context = Some(context);
        }
        if is_decided {
            self.push_verdict(ticket);
        }
        is_decided
    }

    fn push_verdict(&mut self, ticket: Ticket) {
        let Some(context) = self.round_mut(ticket).and_then(|round| round.context.take()) else { return };
        let result = self.conclude(ticket);
        if let Some(events) = &self.events {
            events.push(PendingEvent::Release(context, result.tally.release(), result.faults));
        }
    }

    /// Says whether the owner's next deadline leaves the nodes without a vote.
    pub(crate) fn set_soft_deadline(&mut self, ticket: Ticket, is_soft: bool) {
        if let Some(round) = self.round_mut(ticket) {
            round.soft_deadline = is_soft;
        }
    }

    /// Whether the owner's deadline leaves the nodes without a vote.
    pub(crate) fn has_soft_deadline(&self, ticket: Ticket) -> bool {
        self.round(ticket).is_some_and(|round| round.soft_deadline)
    }

    /// Waits for the nodes that have not voted in an extension that is won. Its deadline leaves them without a vote.
    /// False when there is none to wait for.
    pub(crate) fn await_stragglers(&mut self, ticket: Ticket) -> bool {
        let Some(round) = self.round_mut(ticket) else { return false };
        let is_won = round.tally.extension() == ExtensionVerdict::Extended;
        let has_stragglers = is_won && !round.tally.undecided().is_empty();
        if has_stragglers {
            round.purpose = Purpose::Extend(Straggler::Awaited);
            (round.decided, round.soft_deadline) = (false, true);
        }
        has_stragglers
    }

    /// Waits for the nodes that have not voted in an attempt that is lost, if those that have voted refused it: where
    /// the others refuse it as well, nothing is to be undone. The owner's deadline leaves them without a vote. False
    /// when there is none to wait for.
    pub(crate) fn await_refusals(&mut self, ticket: Ticket) -> bool {
        let Some(round) = self.round_mut(ticket) else { return false };
        let tally = &round.tally;
        let is_refused = tally.untouched().len() >= tally.quorum() && tally.granted().is_empty();
        let has_stragglers = is_refused && !tally.undecided().is_empty();
        if has_stragglers {
            (round.decided, round.soft_deadline) = (false, true);
        }
        has_stragglers
    }

    /// Ends the owner's wait: gives the count as it is now, and refers to the round no more.
    pub(crate) fn conclude(&mut self, ticket: Ticket) -> RoundResult {
        let round = &mut self.slots[ticket.slot as usize];
        debug_assert_eq!(round.generation, ticket.generation, "the owner refers to its round until here");
        let matters = matches!(round.purpose, Purpose::Check | Purpose::Inspect)
            || round.tally.granted().len() < round.tally.quorum();
        let faulted = if matters { round.tally.faulted() } else { NodeSet::EMPTY };
        let faults = faulted.iter().map(|node| (node, round.faults[node.index()])).collect();
        let (inquiry, queue) = (round.inquiry.take(), round.queue.take());
        // The owner goes on to undo the attempt: no node that it has not awaited is asked again.
        round.decided = true;
        let Round { tally, reached, endless, .. } = *round;
        let agreement = round.kind.is_fenced().then(|| round.fences.agreement()).flatten();
        let free_at = round.free_at();
        let refused_key = round.refused_key();
        let result = RoundResult { tally, reached, faults, free_at, refused_key, endless, agreement, queue, inquiry };
        self.unrefer(ticket);
        result
    }

    /// Whether the verdict is in. A round that is gone has nothing to wait for.
    pub(crate) fn is_decided(&self, ticket: Ticket) -> bool {
        self.round(ticket).is_none_or(|round| round.decided)
    }

    fn round_mut(&mut self, ticket: Ticket) -> Option<&mut Round> {
        live(&mut self.slots, ticket)
    }
}

/// The round of a ticket, while there is a reference to it.
fn live(slots: &mut [Round], ticket: Ticket) -> Option<&mut Round> {
    let round = slots.get_mut(ticket.slot as usize)?;
    (round.generation == ticket.generation && round.references > 0).then_some(round)
}

#[cfg(test)]
mod tests;
