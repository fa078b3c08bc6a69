//! The rounds in flight: one command sent to all nodes, and its tally.
//!
//! A round lives in a slot that is used again. It stays for as long as somebody refers to it: the owner who waits for the
//! verdict, and each node whose reply is still to come or to whom a release is still owed. So a straggler's reply, however
//! late, finds its own round and no other. A *post* is a round without an owner: a release that nobody waits for. Somebody
//! may want to be told of its verdict all the same; then the round refers to itself until it has one.

use super::driver::{WaitSlot, WaitSlots};
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::fence::{Agreement, Fences, FencingToken};
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::pending_release::ReleaseConditions;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::{ExtensionVerdict, Outcome, ReleaseVerdict, Tally, Vote};
use crate::events::event_queue::{EventQueue, PendingEvent, ReleaseContext};
use crate::protocol::session::Ticket;
use std::sync::Arc;

/// Longest key buffer that an unused slot keeps.
const KEPT_KEY: usize = 256;

/// What a round asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Acquire,
    /// Whether nodes may vote. The verdict is there when each has said so.
    Check,
    /// With [`Straggler::Awaited`] it has no verdict before everybody has voted, unless it is lost.
    Extend(Straggler),
    Release,
    /// Nothing: somebody waits, until he is rung.
    Wait,
}

/// What becomes of nodes that have not answered when a quorum has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Straggler {
    Awaited,
    LeftBehind,
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
    /// The nodes that refused for a key without expiry.
    endless: NodeSet,
    reached: NodeSet,
    decided: bool,
    /// Whether its owner's deadline blames nobody: the owner only looks up, or has what it wants.
    patient: bool,
    /// What its owner sleeps on. A post has none.
    bell: Option<WaitSlot>,
    /// A post whose verdict is to be told.
    farewell: Option<ReleaseContext>,
    is_fenced: bool,
    /// Of a release: what decides whether, and for how long, a node is owed it.
    release: ReleaseConditions,
    /// Of a release: the nodes that it is sent to once more, on another connection.
    resent: NodeSet,
    /// What the nodes of a fenced attempt have answered.
    fences: Fences,
}

impl Round {
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) fn token(&self) -> &OwnerToken {
        &self.token
    }

    pub(crate) fn release_terms(&self) -> &ReleaseConditions {
        &self.release
    }

    /// Whether the node was sent the release on a connection that is lost, and once more on another one.
    pub(crate) fn was_resent(&self, node: NodeId) -> bool {
        self.resent.contains(node)
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// A quorum may be had when that many nodes have no key but ours. A verdict may be there before so many have said: the keys of
    /// one lock end together, so that what is known stands for the rest.
    fn free_at(&self) -> Timestamp {
        let missing = self.tally.quorum().saturating_sub(self.tally.granted().len());
        let mut ends = self.ends.clone();
        ends.sort_unstable();
        let last = missing.min(ends.len()).checked_sub(1);
        last.and_then(|last| ends.get(last)).copied().unwrap_or(Timestamp::NEVER)
    }

    /// Whether it is about the key of a fenced lock.
    pub(crate) fn is_fenced(&self) -> bool {
        self.is_fenced
    }

    fn has_verdict(&self) -> bool {
        match self.purpose {
            Purpose::Acquire => self.tally.acquisition() != Outcome::Pending,
            Purpose::Extend(straggler) => match self.tally.extension() {
                ExtensionVerdict::Pending => false,
                ExtensionVerdict::Extended => straggler == Straggler::LeftBehind || self.tally.undecided().is_empty(),
                ExtensionVerdict::Lost | ExtensionVerdict::Unavailable => true,
            },
            Purpose::Check => self.tally.undecided().is_empty(),
            Purpose::Release => self.tally.release() != ReleaseVerdict::Pending,
            Purpose::Wait => false,
        }
    }
}

/// What its owner takes out of a round.
#[derive(Debug)]
pub(crate) struct RoundResult {
    /// The votes, as far as they mattered.
    pub(crate) tally: Tally,
    /// The nodes that the command was queued for, and may have reached.
    pub(crate) reached: NodeSet,
    /// Each failed node's fault. None if a quorum granted, but for a check: then they are of no interest.
    pub(crate) faults: Vec<(NodeId, Fault)>,
    /// When so many keys have ended by themselves that a quorum may be had, as far as nodes have said; otherwise never.
    pub(crate) free_at: Timestamp,
    /// The nodes that refused for a key without expiry, as far as they have said.
    pub(crate) endless: NodeSet,
}

impl RoundResult {
    /// Whether an extension was won.
    pub(crate) fn is_extended(&self) -> bool {
        self.tally.extension() == ExtensionVerdict::Extended
    }

    /// Whether an extension found that a quorum cannot hold the key any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.tally.extension() == ExtensionVerdict::Lost
    }

    /// Whether a quorum granted.
    pub(crate) fn is_won(&self) -> bool {
        self.tally.acquisition() == Outcome::Won
    }
}

/// All rounds in flight of one client.
pub(crate) struct Rounds {
    nodes: usize,
    slots: Vec<Round>,
    unused: Vec<u32>,
    /// Where verdicts are told, if anywhere.
    news: Option<Arc<EventQueue>>,
}

impl Rounds {
    pub(crate) fn new(nodes: usize, news: Option<Arc<EventQueue>>) -> Rounds {
        Rounds { nodes, slots: Vec::new(), unused: Vec::new(), news }
    }

    /// Opens a round, with the caller as the one who refers to it.
    pub(crate) fn open(&mut self, purpose: Purpose, key: &[u8], token: &OwnerToken) -> Ticket {
        let slot = match self.unused.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(Round {
                    generation: 0,
                    references: 0,
                    purpose,
                    key: Vec::new(),
                    token: *token,
                    tally: Tally::new(self.nodes),
                    faults: vec![Fault::new(Phase::Reply, Cause::TimedOut); self.nodes].into_boxed_slice(),
                    ends: Vec::new(),
                    endless: NodeSet::EMPTY,
                    reached: NodeSet::EMPTY,
                    decided: false,
                    patient: false,
                    bell: None,
                    farewell: None,
                    is_fenced: false,
                    release: ReleaseConditions::default(),
                    resent: NodeSet::EMPTY,
                    fences: Fences::default(),
                });
                (self.slots.len() - 1) as u32
            }
        };
        let round = &mut self.slots[slot as usize];
        round.references = 1;
        round.purpose = purpose;
        round.key.extend_from_slice(key);
        round.token = *token;
        round.tally = Tally::new(self.nodes);
        round.ends.clear();
        (round.reached, round.endless, round.resent) = (NodeSet::EMPTY, NodeSet::EMPTY, NodeSet::EMPTY);
        (round.decided, round.patient, round.is_fenced) = (false, false, false);
        round.bell = None;
        Ticket { slot, generation: round.generation }
    }

    /// Opens a round about the key of a fenced lock.
    pub(crate) fn open_fenced(&mut self, purpose: Purpose, key: &[u8], token: &OwnerToken) -> Ticket {
        let ticket = self.open(purpose, key, token);
        let round = &mut self.slots[ticket.slot as usize];
        round.is_fenced = true;
        round.fences.clear();
        ticket
    }

    /// Opens the round of a release.
    pub(crate) fn open_release(
        &mut self,
        (key, token): (&[u8], &OwnerToken),
        is_fenced: bool,
        terms: ReleaseConditions,
    ) -> Ticket {
        let ticket = match is_fenced {
            true => self.open_fenced(Purpose::Release, key, token),
            false => self.open(Purpose::Release, key, token),
        };
        self.slots[ticket.slot as usize].release = terms;
        ticket
    }

    /// Whether a node's release is worth sending on another connection before the node votes: its owner waits for the verdict,
    /// and it was not done before.
    pub(crate) fn resend(&mut self, ticket: Ticket, node: NodeId) -> bool {
        self.round_mut(ticket).is_some_and(|round| {
            let is_awaited = !round.decided && (round.bell.is_some() || round.farewell.is_some());
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

    /// What the fences of an attempt come to.
    pub(crate) fn agreement(&self, ticket: Ticket) -> Option<Agreement> {
        self.round(ticket)?.fences.agreement()
    }

    /// Nobody waits for a verdict on it, and nothing is asked again for its sake.
    pub(crate) fn settle(&mut self, ticket: Ticket) {
        if let Some(round) = self.round_mut(ticket) {
            round.decided = true;
        }
    }

    /// The round of a ticket, for as long as somebody refers to it.
    pub(crate) fn round(&self, ticket: Ticket) -> Option<&Round> {
        let round = self.slots.get(ticket.slot as usize)?;
        (round.generation == ticket.generation && round.references > 0).then_some(round)
    }

    /// More refer to it: replies of these nodes are to come.
    pub(crate) fn refer(&mut self, ticket: Ticket, nodes: NodeSet) {
        if let Some(round) = self.round_mut(ticket) {
            round.references += nodes.len() as u32;
            round.reached = round.reached.union(nodes);
        }
    }

    /// One less refers to it. The last one frees the slot, and no ticket of the past opens it again.
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

    /// What a round is for, while somebody refers to it.
    pub(crate) fn purpose(&self, ticket: Ticket) -> Option<Purpose> {
        self.round(ticket).map(|round| round.purpose)
    }

    /// Says what the owner of a round sleeps on.
    pub(crate) fn assign(&mut self, ticket: Ticket, bell: WaitSlot) {
        if let Some(round) = self.round_mut(ticket) {
            round.bell = Some(bell);
        }
    }

    /// Counts a vote, and notes the bell of a round that it decides. Gives what the round is for.
    pub(crate) fn vote(&mut self, ticket: Ticket, node: NodeId, vote: Vote, bells: &mut WaitSlots) -> Option<Purpose> {
        let round = self.round_mut(ticket)?;
        let purpose = round.purpose;
        if round.tally.record(node, vote)
            && let Vote::Fault(fault) = vote
        {
            round.faults[node.index()] = fault;
        }
        if !round.decided && round.has_verdict() {
            round.decided = true;
            if let Some(bell) = round.bell {
                bells.insert(bell);
            }
            if round.farewell.is_some() {
                self.tell_verdict(ticket);
            }
        }
        Some(purpose)
    }

    /// A node has granted, by an answer on another connection to the same server. The vote of that connection, which follows,
    /// decides the round if this does.
    pub(crate) fn granted_at(&mut self, ticket: Ticket, node: NodeId) {
        if let Some(round) = self.round_mut(ticket) {
            round.tally.granted_at(node);
        }
    }

    /// Notes when the key ends for which a node has refused.
    pub(crate) fn note_end(&mut self, ticket: Ticket, node: NodeId, end: Timestamp) {
        if let Some(round) = self.round_mut(ticket)
            && round.tally.refused().contains(node)
        {
            round.ends.push(end);
        }
    }

    /// Notes that the key has no expiry for which a node has refused.
    pub(crate) fn note_endless(&mut self, ticket: Ticket, node: NodeId) {
        if let Some(round) = self.round_mut(ticket)
            && round.tally.refused().contains(node)
        {
            round.endless.insert(node);
        }
    }

    /// Ends a wait.
    pub(crate) fn ring(&mut self, ticket: Ticket, bells: &mut WaitSlots) {
        if let Some(round) = self.round_mut(ticket)
            && !std::mem::replace(&mut round.decided, true)
            && let Some(bell) = round.bell
        {
            bells.insert(bell);
        }
    }

    /// Tells the verdict on a release, now or when there is one. The caller gives its reference away. True when the verdict
    /// was there.
    pub(crate) fn follow(&mut self, ticket: Ticket, farewell: ReleaseContext) -> bool {
        let is_decided = self.is_decided(ticket);
        if let Some(round) = self.round_mut(ticket) {
            round.farewell = Some(farewell);
        }
        if is_decided {
            self.tell_verdict(ticket);
        }
        is_decided
    }

    fn tell_verdict(&mut self, ticket: Ticket) {
        let Some(farewell) = self.round_mut(ticket).and_then(|round| round.farewell.take()) else { return };
        let count = self.conclude(ticket);
        if let Some(news) = &self.news {
            news.push(PendingEvent::Release(farewell, count.tally.release(), count.faults));
        }
    }

    /// Says whether nobody is to be blamed when the owner's next deadline comes.
    pub(crate) fn bear_with(&mut self, ticket: Ticket, patient: bool) {
        if let Some(round) = self.round_mut(ticket) {
            round.patient = patient;
        }
    }

    /// Whether nobody is to be blamed yet.
    pub(crate) fn is_patient(&self, ticket: Ticket) -> bool {
        self.round(ticket).is_some_and(|round| round.patient)
    }

    /// Waits for those who have not voted in an extension that is won, and blames none of them; false when there is nobody to
    /// wait for.
    pub(crate) fn await_stragglers(&mut self, ticket: Ticket) -> bool {
        let Some(round) = self.round_mut(ticket) else { return false };
        let is_won = round.tally.extension() == ExtensionVerdict::Extended;
        let has_stragglers = is_won && !round.tally.undecided().is_empty();
        if has_stragglers {
            round.purpose = Purpose::Extend(Straggler::Awaited);
            (round.decided, round.patient) = (false, true);
        }
        has_stragglers
    }

    /// Ends the owner's wait: gives the count as it is now, and refers to the round no more.
    pub(crate) fn conclude(&mut self, ticket: Ticket) -> RoundResult {
        let round = &self.slots[ticket.slot as usize];
        debug_assert_eq!(round.generation, ticket.generation, "the owner refers to its round until here");
        let matters = round.purpose == Purpose::Check || round.tally.granted().len() < round.tally.quorum();
        let faulted = if matters { round.tally.faulted() } else { NodeSet::EMPTY };
        let faults = faulted.iter().map(|node| (node, round.faults[node.index()])).collect();
        let Round { tally, reached, endless, .. } = *round;
        let count = RoundResult { tally, reached, faults, free_at: round.free_at(), endless };
        self.unrefer(ticket);
        count
    }

    /// Whether the verdict is in. A round that is gone has nothing to wait for.
    pub(crate) fn is_decided(&self, ticket: Ticket) -> bool {
        self.round(ticket).is_none_or(|round| round.decided)
    }

    /// How many rounds somebody refers to.
    #[cfg(test)]
    pub(crate) fn in_flight(&self) -> usize {
        self.slots.len() - self.unused.len()
    }

    fn round_mut(&mut self, ticket: Ticket) -> Option<&mut Round> {
        let round = self.slots.get_mut(ticket.slot as usize)?;
        (round.generation == ticket.generation && round.references > 0).then_some(round)
    }
}

#[cfg(test)]
mod tests;
