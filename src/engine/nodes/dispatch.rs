//! Replies: read from a connection, and each handed to the round that it belongs to.

use super::Nodes;
use super::vote_filter::NodeVote;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::engine::node_connection::Received;
use crate::engine::rounds::{Purpose, Refusal};
use crate::fault::detail::Detail;
use crate::fault::protocol_error::ProtocolError;
use crate::fault::{Cause, Fault, Phase};
use crate::protocol::operation::Verb;
use crate::protocol::session::{
    Answer, Command, HandshakeState, Inspected, SessionEvent, Ticket, Wakes,
};
use std::time::Duration;

/// How many bytes of one connection are read before the others are: a long value is read as fast as
/// it arrives.
const MOST_READ: usize = 256 * 1024;
/// A read counts as so many bytes at least.
const LEAST_READ: usize = 16;

impl Nodes {
    /// Reads what is there, and hands it out. False when the connection has ended, and there may be
    /// another one.
    pub(super) fn read(&mut self, node: NodeId, now: Timestamp) -> bool {
        self.read_while(
            |received| received.is_full || received.has_unread,
            node,
            now,
        )
    }

    /// Reads until nothing is left: only then does the end of a connection show. False as by
    /// [`read`](Nodes::read).
    pub(super) fn read_to_end(&mut self, node: NodeId, now: Timestamp) -> bool {
        self.read_while(|received| received.bytes > 0, node, now)
    }

    fn read_while(&mut self, goes_on: fn(Received) -> bool, node: NodeId, now: Timestamp) -> bool {
        let mut is_answered = false;
        let mut read = 0;
        loop {
            let (received, more) = match self.read_once(node, now) {
                Ok(read) => read,
                Err(fault) => {
                    self.lose(node, fault, now);
                    return false;
                }
            };
            is_answered |= more;
            if received.bytes > 0 {
                self.releases.heard_at = now;
            }
            read += received.bytes.max(LEAST_READ);
            // What poll does not show is read in any case.
            let is_enough = read >= MOST_READ && !received.has_unread;
            if is_enough || !goes_on(received) {
                break;
            }
        }
        // Not before all was read: what is still unanswered then is late, and the node with it.
        if is_answered {
            self.incarnations
                .on_usable(node, &mut self.connections, now);
        }
        if self.releases.pending.contains(node) {
            self.releases
                .flush(node, &mut self.connections, &mut self.rounds, now);
        }
        if !self.connections.counting.contains(node) {
            let counts = self.connections.follow_or_leave(node) && self.counts_as_it_is(node);
            self.connections.counting.set(node, counts);
        }
        if self.connections[node].has_unsent(&self.connections.log) {
            // A release goes out again: in another form, or because it was pending. Or the
            // handshake of TLS is over, or has another flight. An error shows at the next read.
            let _ = self.connections.flush(node, now);
        }
        true
    }

    /// Reads once, and hands out what the bytes mean. True as by [`dispatch`](Nodes::dispatch).
    fn read_once(&mut self, node: NodeId, now: Timestamp) -> Result<(Received, bool), Fault> {
        let received = self.connections[node].read(now)?;
        Ok((received, self.dispatch(node, now)?))
    }

    /// Whether nothing is known of a node that follows which would change its votes, or which a
    /// vote would change.
    fn counts_as_it_is(&self, node: NodeId) -> bool {
        let connection = &self.connections[node];
        self.connections.states.is_up(node)
            && !self.incarnations.is_doubtful(node)
            && !connection.quarantine.is_on()
            && !connection.health.is_suspect()
    }

    /// Hands out what the bytes of a connection mean. True when the node has answered whether a
    /// lock may be acquired or kept.
    fn dispatch(&mut self, node: NodeId, now: Timestamp) -> Result<bool, Fault> {
        if self.connections.counting.contains(node) {
            let counted = self.count_plain_votes(node);
            counted.map_err(|error| Fault::protocol(self.connections[node].phase(), error))?;
            // The other replies contain more: perhaps the node is not what it was.
            let is_plain = !self.connections[node].session.has_event();
            self.connections.counting.set(node, is_plain);
            if is_plain {
                return Ok(false);
            }
        }
        self.hand_out(node, now)
    }

    /// Hands out what is left, one event after the other. Apart from what runs for each reply.
    #[inline(never)]
    fn hand_out(&mut self, node: NodeId, now: Timestamp) -> Result<bool, Fault> {
        let mut is_answered = false;
        while self.connections[node].session.has_event() {
            // By reference: an event is wide, and this runs for each reply.
            match &mut self.connections.each[node.index()]
                .session
                .next_event(&self.connections.log)
            {
                // Another server of the shard is asked in its place.
                &mut Ok(Some(SessionEvent::Rejected(fault)))
                    if self.connections[node].named_master().is_some() =>
                {
                    return Err(fault);
                }
                Ok(Some(event)) => is_answered |= self.handle(event, node, now),
                Ok(None) => break,
                Err(error) => return Err(Fault::protocol(self.connections[node].phase(), *error)),
            }
        }
        Ok(is_answered)
    }

    /// Counts replies that are plain votes, of a node whose votes count as they are. All other
    /// replies stay.
    pub(super) fn count_plain_votes(&mut self, node: NodeId) -> Result<(), ProtocolError> {
        let session = &mut self.connections.each[node.index()].session;
        while !session.incoming.is_empty()
            && let Some(cast) = session.next_plain_vote(&self.connections.log)?
        {
            if let Some(fence) = cast.fence {
                self.rounds.record_fence(cast.ticket, node, fence);
            }
            let vote = if cast.is_granted {
                &Vote::Granted
            } else {
                &Vote::Refused
            };
            self.rounds.count(cast.ticket, node, vote);
        }
        Ok(())
    }

    /// Hands out one event. True when it shows whether a lock may be acquired or kept.
    fn handle(&mut self, event: &mut SessionEvent, node: NodeId, now: Timestamp) -> bool {
        match event {
            SessionEvent::Answered(ticket, answer) => {
                return self.on_answer(*ticket, node, answer, now);
            }
            SessionEvent::Inspected(ticket, inspected) => {
                self.record_inspected(*ticket, node, inspected, now);
                let mut cast = NodeVote {
                    ticket: *ticket,
                    node,
                    vote: inspected.vote,
                    fence: None,
                };
                return self.count_vote(&mut cast, now);
            }
            SessionEvent::NotRun(ticket, fault) => {
                self.take_wakes(node, *ticket, now);
                self.on_leave_refused(node, *ticket, now);
                self.releases.on_not_run(
                    node,
                    *ticket,
                    *fault,
                    &mut self.connections,
                    &mut self.rounds,
                    now,
                );
            }
            SessionEvent::Accepted => {
                self.connections.on_logged_in(node);
                self.connections.filter(node).on_handshake();
                self.connections.reject_duplicate(node, now);
                self.incarnations.on_look(node, &mut self.connections, now);
                self.judge(now);
            }
            SessionEvent::Rechecked => {
                self.connections.filter(node).on_recheck();
                self.incarnations.on_look(node, &mut self.connections, now);
                self.judge(now);
            }
            SessionEvent::MemoryKnown => self.connections.filter(node).on_memory_known(),
            SessionEvent::Noted => {
                self.incarnations.on_noted(node, &mut self.connections, now);
                self.judge(now);
            }
            SessionEvent::LoggedInAnew => self.on_logged_in_anew(node),
            SessionEvent::LogInRefused(fault) => {
                self.connections.on_login_refused(node, *fault);
            }
            SessionEvent::Rejected(fault) => {
                self.connections.filter(node).on_rejected(*fault, now);
                self.on_silence(node, *fault, false, now);
            }
        }
        false
    }

    /// Takes which holder the node has answered. Apart from what runs for each reply.
    #[inline(never)]
    fn record_inspected(
        &mut self,
        ticket: Ticket,
        node: NodeId,
        inspected: &mut Inspected,
        now: Timestamp,
    ) {
        if let Some(inspection) = self.rounds.inquiry(ticket) {
            inspection.record_waiting(inspected.waiting);
            inspected
                .occupant
                .take()
                .into_iter()
                .for_each(|occupant| inspection.record(node, occupant, now));
        }
    }

    /// Counts the vote in an answer, and records whatever else the answer contains.
    fn on_answer(&mut self, ticket: Ticket, node: NodeId, answer: &Answer, now: Timestamp) -> bool {
        self.take_wakes(node, ticket, now);
        let mut cast = NodeVote {
            ticket,
            node,
            vote: Vote::Refused,
            fence: None,
        };
        let mut refusal = None;
        match answer {
            Answer::Vote(vote) => cast.vote = *vote,
            Answer::Fence(fence) => (cast.vote, cast.fence) = (Vote::Granted, Some(*fence)),
            Answer::Held(left) => refusal = Some(Refusal::Until(now.after(*left))),
            Answer::RefusedFor(vote, keys) => {
                (cast.vote, refusal) = (*vote, Some(Refusal::Keys(*keys)))
            }
            Answer::Queued(reply) => {
                self.rounds.record_queue_reply(ticket, node, reply);
                refusal = match reply.held {
                    Some(Duration::ZERO) => None,
                    Some(left) => Some(Refusal::Until(now.after(left))),
                    None => Some(Refusal::Endless),
                };
            }
            Answer::WrongForm => {
                self.resend(node, ticket, now);
                return false;
            }
        }
        if let Vote::Fault(_) = cast.vote {
            self.on_leave_refused(node, ticket, now);
        }
        let is_usable = self.count_vote(&mut cast, now);
        if let Some(refusal) = refusal {
            self.rounds.record_refusal(ticket, node, refusal);
        }
        is_usable
    }

    /// A node has not run an operation. If that removes the entry of a call that has ended, the
    /// node may tell that call as one that waits.
    fn on_leave_refused(&mut self, node: NodeId, ticket: Ticket, now: Timestamp) {
        let leaves = |command: Command<'_>| {
            matches!(
                command.operation.verb,
                Verb::Leave(Some(_)) | Verb::Release(Some(_))
            )
        };
        if self.rounds.command(ticket).is_some_and(leaves) {
            self.subscribers
                .on_left(NodeSet::only(node), &mut self.connections.poll, now);
        }
    }

    /// Queues an operation once more, in another form. An acquire is not repeated when its attempt
    /// is over: its release has been queued, or will be, and must be the last command.
    fn resend(&mut self, node: NodeId, ticket: Ticket, now: Timestamp) {
        self.connections.apart(node);
        match self.rounds.command(ticket) {
            Some(command) if !command.operation.acquires() || !self.rounds.is_decided(ticket) => {
                self.connections[node].session.ask_again(&command, now);
            }
            _ => self.rounds.unrefer(ticket),
        }
    }

    /// Takes what a release or a leave has found in the queues, as its reply reports.
    fn take_wakes(&mut self, node: NodeId, ticket: Ticket, now: Timestamp) {
        let wakes = self.connections[node].session.take_wakes();
        if wakes != Wakes::default() {
            self.on_wakes(node, ticket, wakes, now);
        }
    }

    /// Apart from what runs for each reply.
    #[inline(never)]
    pub(super) fn on_wakes(&mut self, node: NodeId, ticket: Ticket, wakes: Wakes, now: Timestamp) {
        if wakes.is_denied {
            let fault =
                Fault::new(Phase::Reply, Cause::NoPermission).with(Detail::Command("PUBLISH"));
            self.subscribers.on_publish_denied(node, fault);
        }
        let Some(command) = self.rounds.command(ticket) else {
            return;
        };
        let keys = command.key.clone();
        let kind = command.operation.kind;
        for (key, part) in keys.each().iter().zip(0..) {
            if wakes.told & 1 << part != 0 {
                self.subscribers.registry.record_woken(key, now);
            }
            if wakes.more & 1 << part != 0 && self.subscribers.may_repeat(now) {
                self.update_queue(key, kind, Verb::Leave(None), NodeSet::only(node), now);
            }
        }
    }

    /// Counts a vote, as far as it counts. True when the node has answered whether a lock may be
    /// acquired or kept.
    fn count_vote(&mut self, cast: &mut NodeVote, now: Timestamp) -> bool {
        let Nodes {
            rounds,
            connections,
            incarnations,
            ..
        } = self;
        let NodeVote {
            ticket,
            node,
            fence,
            ..
        } = *cast;
        let purpose = rounds.purpose(ticket);
        if incarnations.is_doubtful(node) {
            let refusal = connections[node].session.identity().look.refusal;
            if incarnations.holds(cast, rounds.round(ticket), refusal) {
                return !matches!(purpose, Some(Purpose::Inspect(_)));
            }
        }
        let voter = connections[node]
            .session
            .standing()
            .voter()
            .filter(|_| cast.vote == Vote::Granted);
        let duplicate = |voter: NodeId| {
            Vote::Fault(Fault::new(
                Phase::Handshake,
                Cause::Duplicate(voter.index()),
            ))
        };
        // A grant for the voter waits with it, and counts as little. A key that was deleted is
        // deleted.
        let is_release = matches!(
            purpose,
            Some(Purpose::Entry | Purpose::Release { .. }) | None
        );
        if let (Some(voter), false) = (voter, is_release) {
            if incarnations.is_doubtful(voter) && incarnations.judging.is_some() {
                incarnations.held.push(*cast);
                return false;
            }
            let left = connections[voter]
                .quarantine
                .remaining(connections.clock.now());
            if incarnations.is_doubtful(voter) || !left.is_zero() {
                cast.vote = duplicate(voter);
            }
        }
        let mut filter = connections.filter(node);
        filter.filter_vote(purpose, &mut cast.vote, now);
        // One run id has one vote, however many URLs report it, and a grant by any of them counts
        // as the voter's: of two URLs of one server, either may be the first to set or to delete
        // the key. A server that repeats the run id of another one, and finishes its handshake
        // first, cannot take the vote of that one away. Two quorums have more nodes in common than
        // there are such servers, so that one server that lies about its run id makes no second
        // holder.
        if let (Some(voter), Vote::Granted) = (voter, cast.vote) {
            rounds.granted_at(ticket, voter);
            cast.vote = duplicate(voter);
        }
        if let (Vote::Granted, Some(fence)) = (cast.vote, fence) {
            rounds.record_fence(ticket, node, fence);
        }
        if matches!(rounds.purpose(ticket), Some(Purpose::Release { .. })) {
            filter.on_released(ticket, &mut cast.vote, rounds);
        }
        rounds.vote(ticket, node, &cast.vote);
        let purpose = rounds.purpose(ticket);
        // A user without the right to ask for the holder of a lock may still use locks.
        let is_about_locks = !matches!(purpose, Some(Purpose::Inspect(_)));
        let votes = is_about_locks && filter.on_vote(purpose, &cast.vote, now);
        let is_usable = match purpose {
            Some(Purpose::Entry | Purpose::Inspect(_) | Purpose::Release { .. }) => false,
            // It answers. That does not show that it also grants locks.
            Some(Purpose::Check) => true,
            _ => {
                // A rejected node is connected to again after its back-off, whatever it answers
                // meanwhile.
                filter.connection.on_answer();
                votes
            }
        };
        rounds.unrefer(ticket);
        is_usable
    }

    /// The connection is lost, or the node may not vote on it.
    pub(super) fn on_silence(&mut self, node: NodeId, fault: Fault, is_idle: bool, now: Timestamp) {
        let is_idle = is_idle && self.connections[node].is_closed();
        for held in self.incarnations.on_silence(node, is_idle) {
            let vote = Vote::Fault(fault);
            self.count_held(NodeVote { vote, ..held }, now);
        }
        self.judge(now);
    }

    /// Judges the nodes without those that are late, if it is time to. While no call was made, no
    /// thread has read what they have replied: that counts.
    pub(super) fn judge_late(&mut self, now: Timestamp) {
        if now < self.incarnations.due() {
            return;
        }
        for node in self.connections.nodes() {
            if self.connections[node].is_open() {
                self.read(node, now);
            }
        }
        self.incarnations
            .on_late(self.connections.node_timeout, now);
        self.judge(now);
    }

    /// Judges the nodes, as far as that is possible now, and counts the votes that have waited for
    /// it.
    fn judge(&mut self, now: Timestamp) {
        let held = self
            .incarnations
            .judge(&mut self.connections, &mut self.rounds, now);
        for mut held in held {
            let standing = self.connections[held.node].session.standing();
            if let (HandshakeState::Rejected(fault), false) = (standing, standing.is_duplicate()) {
                held.vote = Vote::Fault(fault);
            }
            self.count_held(held, now);
        }
    }

    fn count_held(&mut self, mut held: NodeVote, now: Timestamp) {
        if self.count_vote(&mut held, now) {
            self.incarnations
                .on_usable(held.node, &mut self.connections, now);
        }
    }
}
