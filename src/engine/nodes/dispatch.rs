//! Replies: read from a connection, and each handed to the round that it belongs to.

use super::Nodes;
use super::incarnations::HeldVote;
use super::vote_filter::VoteFilter;
use crate::algorithm::detail::Detail;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::fence::FencingToken;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::engine::node_connection::Received;
use crate::engine::rounds::Purpose;
use crate::protocol::lock_key;
use crate::protocol::session::{Answer, PlainVote, SessionEvent, Ticket, Wakes};
use std::time::Duration;

impl Nodes {
    /// Reads all that is there, and hands it out. False when the connection has ended, and there may be another one.
    pub(super) fn read(&mut self, node: NodeId, now: Timestamp) -> bool {
        self.read_while(|received| received == Received::Much, node, now)
    }

    pub(super) fn read_while(&mut self, goes_on: fn(Received) -> bool, node: NodeId, now: Timestamp) -> bool {
        let mut is_answered = false;
        loop {
            let received = self.connections[node.index()].read(now);
            match received.and_then(|_| self.dispatch(node, now)) {
                Ok(more) => is_answered |= more,
                Err(fault) => {
                    self.lose(node, fault, now);
                    return false;
                }
            }
            if !received.is_ok_and(goes_on) {
                break;
            }
        }
        // Not before all was read: what is still unanswered then is late, and the node with it.
        if is_answered {
            self.note_answer(node, now);
        }
        if self.releases.is_pending(node) {
            self.flush_pending(node, now);
        }
        if !self.counting.contains(node) {
            self.follow_or_leave(node);
        }
        if self.node(node).has_unsent(&self.log) {
            // A release goes out again: in another form, or because it was pending. Or the handshake of TLS is over,
            // or has another flight. An error shows at the next read.
            let _ = self.flush_node(node, now);
        }
        true
    }

    /// Hands out what the bytes of a connection mean. True when the node has answered whether a lock may be acquired or
    /// kept.
    fn dispatch(&mut self, node: NodeId, now: Timestamp) -> Result<bool, Fault> {
        if self.counting.contains(node) {
            let counted = self.count_plain_votes(node, now);
            counted.map_err(|error| Fault::new(self.node(node).phase(), Cause::Protocol(error)))?;
            // The other replies contain more: perhaps the node is not what it was.
            let is_plain = !self.node(node).session.has_event();
            self.counting.set(node, is_plain);
        }
        let mut is_answered = false;
        while self.node(node).session.has_event() {
            // By reference: an event is wide, and this runs for each reply.
            match &mut self.connections[node.index()].session.next_event(&self.log) {
                Ok(Some(event)) => is_answered |= self.handle(event, node, now),
                Ok(None) => break,
                Err(error) => return Err(Fault::new(self.node(node).phase(), Cause::Protocol(*error))),
            }
        }
        Ok(is_answered)
    }

    /// Counts replies that are plain votes, of a node whose votes count as they are. All other replies stay.
    fn count_plain_votes(&mut self, node: NodeId, now: Timestamp) -> Result<(), ProtocolError> {
        let Nodes { connections, log, releases, rounds, .. } = self;
        let session = &mut connections[node.index()].session;
        while !session.incoming.is_empty()
            && let Some(PlainVote { ticket, is_granted, is_release }) = session.next_plain_vote(log)?
        {
            if is_release {
                releases.note_answer(now);
            }
            rounds.count(ticket, node, is_granted);
        }
        Ok(())
    }

    /// Hands out one event. True when it says whether a lock may be acquired or kept.
    fn handle(&mut self, event: &mut SessionEvent, node: NodeId, now: Timestamp) -> bool {
        match event {
            SessionEvent::Answered(ticket, answer) => return self.on_answer((*ticket, node), answer, now),
            SessionEvent::Inspected(ticket, inspected) => {
                self.note_inspected(*ticket, node, inspected, now);
                return self.count_vote((*ticket, node), (&mut inspected.vote, None), now);
            }
            SessionEvent::NotRun(ticket, fault) => {
                self.take_wakes(node, *ticket, now);
                self.note_not_run(node, *ticket, *fault, now);
            }
            SessionEvent::Accepted => {
                self.filter(node).on_handshake();
                self.reject_duplicate(node, now);
                self.on_look(node, now);
            }
            SessionEvent::Rechecked => {
                self.filter(node).on_recheck();
                self.on_look(node, now);
            }
            SessionEvent::MemoryKnown => self.filter(node).on_memory_known(),
            SessionEvent::Noted => self.on_noted(node, now),
            SessionEvent::Rejected(fault) => {
                self.filter(node).on_rejected(*fault, now);
                self.on_silence(node, (*fault, false), now);
            }
        }
        false
    }

    /// Counts the vote in an answer, and records whatever else the answer contains.
    fn on_answer(&mut self, (ticket, node): (Ticket, NodeId), answer: &mut Answer, now: Timestamp) -> bool {
        self.take_wakes(node, ticket, now);
        let (vote, fence) = match answer {
            Answer::Vote(vote) | Answer::RefusedFor(vote, _) => (vote, None),
            Answer::Fence(fence) => (&mut Vote::Granted, Some(*fence)),
            Answer::Held(_) => (&mut Vote::Refused, None),
            Answer::Queued(reply) => {
                self.rounds.record_queue_reply(ticket, node, reply);
                (&mut Vote::Refused, None)
            }
            Answer::WrongForm => {
                self.resend(node, ticket, now);
                return false;
            }
        };
        let is_usable = self.count_vote((ticket, node), (vote, fence), now);
        match answer {
            Answer::Held(left) => self.rounds.record_end(ticket, node, now.after(*left)),
            Answer::RefusedFor(_, keys) => self.rounds.record_refused_keys(ticket, node, *keys),
            Answer::Queued(reply) => match reply.held {
                Some(Duration::ZERO) => {}
                Some(left) => self.rounds.record_end(ticket, node, now.after(left)),
                None => self.rounds.record_endless(ticket, node),
            },
            Answer::Fence(_) | Answer::Vote(_) | Answer::WrongForm => {}
        }
        is_usable
    }

    /// Queues an operation once more, in another form. An acquire is not repeated when its attempt is over: its
    /// release has been queued, or will be, and must be the last command.
    fn resend(&mut self, node: NodeId, ticket: Ticket, now: Timestamp) {
        self.apart(node);
        match self.rounds.command(ticket) {
            Some(command) if !command.operation.acquires() || !self.rounds.is_decided(ticket) => {
                self.connections[node.index()].session.ask_again(&command, now);
            }
            _ => self.rounds.unrefer(ticket),
        }
    }

    /// Takes what a release or a leave has found in the queues, as its reply reports.
    fn take_wakes(&mut self, node: NodeId, ticket: Ticket, now: Timestamp) {
        let wakes = self.connections[node.index()].session.take_wakes();
        if wakes != Wakes::default() {
            self.on_wakes(node, ticket, wakes, now);
        }
    }

    /// Apart from what runs for each reply.
    #[inline(never)]
    fn on_wakes(&mut self, node: NodeId, ticket: Ticket, wakes: Wakes, now: Timestamp) {
        if wakes.is_denied {
            let fault = Fault::new(Phase::Reply, Cause::NoPermission).with(Detail::Command("PUBLISH"));
            self.subscribers.note_publish_denied(node, fault);
        }
        let Some(round) = self.rounds.round(ticket) else { return };
        let (kind, keys) = (round.kind(), round.key().to_vec());
        for (key, part) in lock_key::each(&keys).zip(0..) {
            if wakes.told & 1 << part != 0 {
                self.subscribers.registry.note_woken(key, now);
            }
            if wakes.more & 1 << part != 0 && self.subscribers.may_repeat(now) {
                self.leave((key, kind), None, NodeSet::from_iter([node]), now);
            }
        }
    }

    /// Counts a vote, and the fence that a grant has brought. True when the node has answered whether a lock may be
    /// acquired or kept.
    pub(super) fn count_vote(
        &mut self,
        (ticket, node): (Ticket, NodeId),
        (vote, fence): (&mut Vote, Option<FencingToken>),
        now: Timestamp,
    ) -> bool {
        let Nodes { rounds, connections, states, clock, releases, incarnations, .. } = self;
        let purpose = rounds.purpose(ticket);
        if incarnations.is_doubtful(node) {
            let refusal = connections[node.index()].session.identity().look.refusal;
            let held = HeldVote { ticket, node, vote: *vote, fence };
            if incarnations.holds(held, rounds.round(ticket), refusal, vote) {
                return purpose != Some(Purpose::Inspect);
            }
        }
        // A grant for the voter waits with it, and counts as little. A key that was deleted is deleted.
        let is_release = matches!(purpose, Some(Purpose::Entry | Purpose::Release) | None);
        let voter = if *vote == Vote::Granted { connections[node.index()].session.standing().voter() } else { None };
        if let (Some(voter), false) = (voter, is_release) {
            if incarnations.is_doubtful(voter) && incarnations.judging.is_some() {
                incarnations.held.push(HeldVote { ticket, node, vote: *vote, fence });
                return false;
            }
            let left = connections[voter.index()].quarantine.remaining(clock.now());
            if incarnations.is_doubtful(voter) || !left.is_zero() {
                *vote = Vote::Fault(Fault::new(Phase::Handshake, Cause::Duplicate(voter)));
            }
        }
        let connection = &mut connections[node.index()];
        let mut filter = VoteFilter { node, connection, states, clock: &**clock };
        filter.filter_vote(purpose, vote, now);
        if voter.is_some() {
            filter.credit_voter(ticket, vote, rounds);
        }
        if let (Vote::Granted, Some(fence)) = (&*vote, fence) {
            rounds.record_fence(ticket, node, fence);
        }
        if purpose == Some(Purpose::Release) {
            filter.note_released(ticket, vote, rounds);
            releases.note_answer(now);
        }
        rounds.vote(ticket, node, vote);
        if matches!(purpose, Some(Purpose::Inspect)) {
            // That a user may not ask says nothing of locks.
            rounds.unrefer(ticket);
            return false;
        }
        let is_usable = filter.note_vote(purpose, vote, now);
        rounds.unrefer(ticket);
        match purpose {
            Some(Purpose::Entry | Purpose::Release) => return false,
            // It answers. That does not show that it also grants locks.
            Some(Purpose::Check) => return true,
            _ => {}
        }
        // A rejected node is connected to again after its back-off, whatever it answers meanwhile.
        filter.connection.note_answer();
        is_usable
    }

    /// One server has one vote, however many URLs lead to it: the one that answered first (rule 7.3). The second one is
    /// rejected, whatever its place in the list, because the first may have voted already.
    fn reject_duplicate(&mut self, node: NodeId, now: Timestamp) {
        let Some(run_id) = self.node(node).run_id(now) else { return };
        let is_same = |&other: &NodeId| other != node && self.node(other).run_id(now) == Some(run_id);
        if let Some(first) = self.nodes().find(is_same) {
            let fault = Fault::new(Phase::Handshake, Cause::Duplicate(first));
            self.node_mut(node).reject(fault, now);
            self.filter(node).note_failure(fault, now);
        }
    }
}
