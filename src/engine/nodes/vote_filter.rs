//! Whose votes count: nodes that were restarted are in quarantine, and replicas are sent away.
//!
//! A node is met when its greeting is answered, which comes before every vote on its connection, and says again what it is
//! before a vote that comes much later. So what it is known to have forgotten is taken into account from the first vote on.
//! What was judged by the time of a look at the clock is decided later than that: a vote that came in quarantine may be
//! thrown away for nothing, and none counts too early.

use super::Nodes;
use crate::algorithm::detail::Detail;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::fence::FencingToken;
use crate::algorithm::node::NodeId;
use crate::algorithm::quarantine;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::engine::driver::WaitSlots;
use crate::engine::rounds::Purpose;
use crate::events::event_queue::PendingEvent;
use crate::protocol::session::{HandshakeState, Ticket};

impl Nodes {
    /// The greeting was accepted: is this the process that it was?
    pub(super) fn meet(&mut self, node: NodeId) {
        let link = &mut self.links[node.index()];
        link.known = link.session.identity().clone();
        // The clock is read anew. This thread may have been held up since the last time, and the restart come after that.
        if link.quarantine.meet(&link.known.process(), self.clock.now()).is_some() {
            self.presence.quarantine_began(node);
        }
        if link.quarantine.is_contradicted_by(&link.known.process()) {
            self.presence.push(PendingEvent::NotDurable(node));
        }
        if let Some(policy) = link.known.eviction() {
            self.presence.may_evict(node, policy);
        }
    }

    /// The node has said once more what it is: was it a replica meanwhile?
    pub(super) fn recheck(&mut self, node: NodeId) {
        let link = &mut self.links[node.index()];
        link.known = link.session.identity().clone();
        if link.quarantine.recheck(&link.known.process(), self.clock.now()).is_some() {
            self.presence.quarantine_began(node);
        }
    }

    /// The greeting was refused, or the node has become a replica.
    pub(super) fn meet_rejected(&mut self, node: NodeId, fault: Fault, now: Timestamp) {
        let link = &mut self.links[node.index()];
        link.known = link.session.identity().clone();
        if fault.cause == Cause::NotMaster {
            link.quarantine.turn_replica();
        }
        self.note_failure(node, fault, now);
    }

    /// Counts a vote, and the fence that a grant has brought. True when the node has answered whether a lock may be had or kept.
    pub(super) fn count(
        &mut self,
        ticket: Ticket,
        node: NodeId,
        (vote, fence): (Vote, Option<FencingToken>),
        now: Timestamp,
        bells: &mut WaitSlots,
    ) -> bool {
        let vote = self.weigh(node, ticket, vote, now);
        let vote = self.credit(node, ticket, vote);
        if let (Vote::Granted, Some(fence)) = (vote, fence) {
            self.rounds.record_fence(ticket, node, fence);
        }
        let purpose = self.rounds.purpose(ticket);
        let vote = if purpose == Some(Purpose::Release) { self.released(node, ticket, vote) } else { vote };
        self.rounds.vote(ticket, node, vote, bells);
        let is_usable = self.note_vote(node, purpose, vote, now);
        self.rounds.unrefer(ticket);
        match purpose {
            Some(Purpose::Release) => return false,
            // It answers. That does not show that it also takes locks.
            Some(Purpose::Check) => return true,
            _ => {}
        }
        let link = &mut self.links[node.index()];
        // A rejected node is connected to again after its back-off, whatever it answers meanwhile.
        if link.session.standing() == HandshakeState::Accepted {
            link.answered();
        }
        is_usable
    }

    /// Notes in the node's state what its vote says of the node. False when it refuses every lock: then no answer but a
    /// better one to an attempt shows that it votes. A full server, say, still extends locks.
    pub(super) fn note_vote(&mut self, node: NodeId, purpose: Option<Purpose>, vote: Vote, now: Timestamp) -> bool {
        match (purpose, vote) {
            // One lock cannot be served. Others can.
            (_, Vote::Fault(fault @ Fault { cause: Cause::UnexpectedValue | Cause::FenceAhead, .. })) => {
                self.presence.record_fault(node, fault);
            }
            (_, Vote::Fault(Fault { cause: Cause::Quarantined, .. } | Fault { phase: Phase::Handshake, .. })) => {}
            (Some(Purpose::Acquire), Vote::Fault(fault)) => {
                self.presence.mark_refusing(node, fault, now);
                return false;
            }
            (_, Vote::Fault(fault)) => {
                if self.presence.is_up(node) {
                    self.presence.record_fault(node, fault);
                }
                return !self.presence.is_refusing(node);
            }
            (Some(Purpose::Acquire), _) => {}
            (_, _) => return !self.presence.is_refusing(node),
        }
        if purpose == Some(Purpose::Acquire) {
            self.presence.clear_refusing(node);
        }
        true
    }

    /// One run id has one vote, however many URLs report it, and a grant by any of them counts as the voter's: of two URLs of
    /// one server, either may be the first to set or to delete the key. And a server that repeats the run id of another one, and
    /// is met first, cannot take the vote of that one away. Two quorums have more nodes in common than there are such
    /// servers, so that one server that lies about its run id makes no second holder.
    fn credit(&mut self, node: NodeId, ticket: Ticket, vote: Vote) -> Vote {
        match (vote, self.links[node.index()].session.standing()) {
            (Vote::Granted, HandshakeState::Rejected(fault @ Fault { cause: Cause::Duplicate(voter), .. })) => {
                self.rounds.granted_at(ticket, voter);
                Vote::Fault(fault)
            }
            _ => vote,
        }
    }

    /// What counts of a vote. One that a replica gives away is its last on this connection: it was a master when it
    /// was met, and its data are another's now.
    pub(super) fn weigh(&mut self, node: NodeId, ticket: Ticket, vote: Vote, now: Timestamp) -> Vote {
        let link = &mut self.links[node.index()];
        if let Vote::Fault(
            fault @ Fault { cause: Cause::NotMaster | Cause::ReadOnly | Cause::Server("MASTERDOWN"), .. },
        ) = vote
            && link.session.standing() == HandshakeState::Accepted
        {
            link.quarantine.turn_replica();
            link.known = link.session.identity().clone();
            link.reject(fault, now);
            self.note_failure(node, fault, now);
            return vote;
        }
        if !link.quarantine.is_on() {
            return vote;
        }
        if link.quarantine.end(self.clock.now()) {
            self.presence.quarantine_ended(node);
            return vote;
        }
        let left = Detail::Left(link.quarantine.remaining(self.clock.now()));
        let counted = match self.rounds.purpose(ticket) {
            Some(Purpose::Acquire | Purpose::Check) => quarantine::of_attempt(vote),
            Some(Purpose::Extend(_)) => quarantine::of_extension(vote),
            Some(Purpose::Release | Purpose::Wait) | None => vote,
        };
        match counted {
            Vote::Fault(fault) if fault.cause == Cause::Quarantined => Vote::Fault(fault.with(left)),
            counted => counted,
        }
    }

    /// One server has one vote, however many URLs lead to it: the one it has answered on first (rule 7.3). Whoever comes
    /// second is refused, whatever its place in the list, because the first may have voted already.
    pub(super) fn refuse_second_vote(&mut self, node: NodeId, now: Timestamp) {
        let Some(run_id) = self.links[node.index()].run_id(now) else { return };
        let is_twin = |&other: &NodeId| other != node && self.links[other.index()].run_id(now) == Some(run_id);
        if let Some(first) = self.nodes().find(is_twin) {
            let fault = Fault::new(Phase::Handshake, Cause::Duplicate(first));
            self.links[node.index()].reject(fault, now);
            self.note_failure(node, fault, now);
        }
    }
}
