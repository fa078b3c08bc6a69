//! Whose votes count, and what each vote shows about its node.
//!
//! A restarted node is in quarantine, and a replica is rejected. The handshake is answered before
//! every vote on its connection, and a node reports again what it is before a vote that comes much
//! later. So a restart is known before the first vote. A node that was judged by an older reading
//! of the clock is judged too strictly, never too mildly: a vote that came in quarantine may be
//! thrown away needlessly, and none counts too early.
//!
//! A node is up when it votes, and down when it fails, and neither in quarantine. A handshake alone
//! does not make it up: a node that can do no more would go up and down with every attempt. The end
//! of an idle connection is not a failure, because servers close idle connections. If no new
//! connection can be made, that is one.

use crate::algorithm::fence::FencingToken;
use crate::algorithm::node::NodeId;
use crate::algorithm::quarantine;
use crate::algorithm::time::{Clock, Timestamp};
use crate::algorithm::vote::Vote;
use crate::engine::node_connection::NodeConnection;
use crate::engine::rounds::{Purpose, Rounds};
use crate::events::event::Event;
use crate::events::node_states::NodeStates;
use crate::fault::detail::Detail;
use crate::fault::server_error::ServerError;
use crate::fault::{Cause, Fault, Phase};
use crate::protocol::session::{HandshakeState, Ticket};

/// A node's vote in a round, with the fence that a grant has brought.
#[derive(Clone, Copy)]
pub(super) struct NodeVote {
    pub(super) ticket: Ticket,
    pub(super) node: NodeId,
    pub(super) vote: Vote,
    pub(super) fence: Option<FencingToken>,
}

/// What counts of a vote in a round for this purpose, while the node is in quarantine.
pub(super) fn in_quarantine(purpose: Option<&Purpose>, vote: Vote) -> Vote {
    match purpose {
        Some(Purpose::Acquire(_) | Purpose::Enqueue(_) | Purpose::Check) => {
            quarantine::of_attempt(vote)
        }
        Some(Purpose::Extend) => quarantine::of_extension(vote),
        Some(Purpose::Inspect(_)) => quarantine::of_inspection(vote),
        Some(Purpose::Entry | Purpose::Release { .. } | Purpose::Wait) | None => vote,
    }
}

/// One node, with all that decides whether its votes count.
pub(super) struct VoteFilter<'n> {
    pub(super) node: NodeId,
    pub(super) connection: &'n mut NodeConnection,
    pub(super) states: &'n mut NodeStates,
    pub(super) clock: &'n dyn Clock,
}

impl VoteFilter<'_> {
    /// The handshake was accepted: finds out whether this is another process than before.
    pub(super) fn on_handshake(&mut self) {
        self.connection.learn_server_info();
        let process = self.connection.server_info.process();
        // The clock is read anew: the thread may have been delayed since its last reading, and the
        // restart be later than that.
        if self
            .connection
            .quarantine
            .meet(&process, self.clock.now())
            .is_some()
        {
            self.states.quarantine_began(self.node);
        }
        if self.connection.quarantine.is_contradicted_by(&process) {
            self.states.push(|names| Event::NodeNotDurable {
                node: names.node(self.node),
            });
        }
    }

    /// The node has reported how much memory it may use.
    pub(super) fn on_memory_known(&mut self) {
        self.connection.learn_server_info();
        if let Some(policy) = self.connection.server_info.eviction() {
            self.states.push(|names| Event::NodeMayEvict {
                node: names.node(self.node),
                policy,
            });
        }
    }

    /// The node has reported again what it is: finds out whether it was a replica meanwhile.
    pub(super) fn on_recheck(&mut self) {
        self.connection.learn_server_info();
        let process = self.connection.server_info.process();
        if self
            .connection
            .quarantine
            .recheck(&process, self.clock.now())
            .is_some()
        {
            self.states.quarantine_began(self.node);
        }
    }

    /// The handshake was rejected, or the node has become a replica.
    pub(super) fn on_rejected(&mut self, fault: Fault, now: Timestamp) {
        self.connection.health.failed(fault, now);
        self.connection.learn_server_info();
        if fault.cause == Cause::NotMaster {
            self.connection.quarantine.turn_replica();
        }
        self.on_failure(fault, now);
    }

    /// The node has answered whether a lock may be acquired or kept. A node that was hung first
    /// answers what it was asked meanwhile, and is not up before it answers in time.
    #[inline]
    pub(super) fn on_answer(&mut self, now: Timestamp) {
        let quarantine = &self.connection.quarantine;
        let is_known = self.states.is_up(self.node) && !quarantine.is_on();
        if is_known || self.states.is_refusing(self.node) || !self.connection.is_responsive(now) {
            return;
        }
        if quarantine.is_on() {
            // The quarantine began by a later reading of the clock than `now`.
            self.states
                .mark_quarantined(self.node, quarantine.remaining(self.clock.now()), now);
        } else {
            self.states.mark_up(self.node, now);
        }
    }

    /// The node has failed. A node with a long backlog is slow, and still answers.
    pub(super) fn on_failure(&mut self, fault: Fault, now: Timestamp) {
        if fault.cause != Cause::Backlog {
            self.states.mark_down(self.node, fault, now);
        }
    }

    /// Leaves what counts of a vote in a round for this purpose.
    #[inline]
    pub(super) fn filter_vote(
        &mut self,
        purpose: Option<&Purpose>,
        vote: &mut Vote,
        now: Timestamp,
    ) {
        if let &mut Vote::Fault(fault) = vote
            && matches!(
                fault.cause,
                Cause::NotMaster | Cause::ReadOnly | Cause::Server(ServerError::MasterDown)
            )
            && self.connection.session.standing() == HandshakeState::Accepted
        {
            // The node was a master at the handshake, and its data are another node's now: no later
            // vote on this connection counts.
            self.connection.quarantine.turn_replica();
            self.connection.learn_server_info();
            self.connection.reject(fault, now);
            self.on_failure(fault, now);
            return;
        }
        let quarantine = &mut self.connection.quarantine;
        if !quarantine.is_on() {
            return;
        }
        if quarantine.end(self.clock.now()) {
            self.states.quarantine_ended(self.node);
            return;
        }
        *vote = in_quarantine(purpose, *vote);
        if let Vote::Fault(fault) = vote
            && fault.cause == Cause::Quarantined
        {
            fault.detail = Detail::Left(quarantine.remaining(self.clock.now()));
        }
    }

    /// The node has answered a release, with this vote.
    pub(super) fn on_released(&mut self, ticket: Ticket, vote: &mut Vote, rounds: &Rounds) {
        self.connection.pending.resume(ticket);
        let was_resent = || {
            rounds
                .round(ticket)
                .is_some_and(|round| round.resent.contains(self.node))
        };
        // The first request may have deleted the key, and its answer be lost: which is not known.
        if *vote == Vote::Refused && was_resent() {
            *vote = Vote::Fault(Fault::new(Phase::Reply, Cause::Closed));
        }
    }

    /// Records in the node's state what its vote shows about the node. False when the node refuses
    /// every lock: then only a better answer to an attempt shows that it votes. A full server still
    /// extends locks.
    #[inline]
    pub(super) fn on_vote(
        &mut self,
        purpose: Option<&Purpose>,
        vote: &Vote,
        now: Timestamp,
    ) -> bool {
        let is_attempt = matches!(purpose, Some(Purpose::Acquire(_)));
        match *vote {
            // One lock cannot be served. Others can.
            Vote::Fault(fault)
                if matches!(fault.cause, Cause::UnexpectedValue | Cause::FenceAhead) =>
            {
                self.states.record_fault(self.node, fault);
            }
            Vote::Fault(fault)
                if fault.cause == Cause::Quarantined || fault.phase == Phase::Handshake => {}
            Vote::Fault(fault) if is_attempt => {
                self.states.mark_refusing(self.node, fault, now);
                return false;
            }
            Vote::Fault(fault) => {
                if self.states.is_up(self.node) {
                    self.states.record_fault(self.node, fault);
                }
                return !self.states.is_refusing(self.node);
            }
            _ if is_attempt => {}
            _ => return !self.states.is_refusing(self.node),
        }
        if is_attempt {
            self.states.clear_refusing(self.node);
        }
        true
    }
}

#[cfg(test)]
mod tests;
