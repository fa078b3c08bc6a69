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

use super::connections::Connections;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::pending_release::Settled;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::engine::rounds::Rounds;
use crate::fault::Fault;
use crate::protocol::session::Ticket;
use std::collections::VecDeque;

/// Unanswered requests, and unsent bytes, up to which more pending releases are queued: half of
/// what a node may have to answer, so that it can be asked other things, and far from where its
/// connection is closed.
const FLUSH_LIMIT: usize = 512;
const FLUSH_BYTES: usize = 1024 * 1024;

/// The nodes that have releases to send, the releases that no thread waits for, and the threads
/// that wait until none is left.
#[derive(Default)]
pub(in crate::engine) struct UnsettledReleases {
    /// The nodes that have pending releases.
    pub(super) pending: NodeSet,
    /// The background releases that have no verdict yet, in the order of their deadlines.
    pub(super) background: VecDeque<(Ticket, Timestamp)>,
    /// The waits for releases, and what each of them waits for.
    pub(super) waits: Vec<(Ticket, Settled)>,
    /// When a node last sent anything: releases may be behind other requests.
    pub(in crate::engine) heard_at: Timestamp,
}

impl UnsettledReleases {
    /// Keeps a release for later. `refusal`: why the node has not run it now. The round must be
    /// referred to for it.
    pub(super) fn defer(
        &mut self,
        node: NodeId,
        ticket: Ticket,
        refusal: Option<Fault>,
        connections: &mut Connections,
        rounds: &mut Rounds,
        now: Timestamp,
    ) {
        let end = rounds
            .conditions(ticket)
            .map_or(Timestamp::ORIGIN, |conditions| conditions.key_ends);
        let refusal = refusal.map(|fault| (fault, now));
        if let Some(dropped) = connections.apart(node).pending.insert(ticket, end, refusal) {
            rounds.unrefer(dropped);
        }
        self.pending.insert(node);
        // The driver has to bound its poll by what is due for it.
        connections.poll.record_change(true);
    }

    /// The node could not run a release: keeps it for later.
    pub(super) fn on_not_run(
        &mut self,
        node: NodeId,
        ticket: Ticket,
        fault: Fault,
        connections: &mut Connections,
        rounds: &mut Rounds,
        now: Timestamp,
    ) {
        let mut vote = Vote::Fault(fault);
        let mut filter = connections.filter(node);
        filter.filter_vote(None, &mut vote, now);
        rounds.vote(ticket, node, &vote);
        filter.on_vote(None, &vote, now);
        self.defer(node, ticket, Some(fault), connections, rounds, now);
    }

    /// Queues pending releases of a node, as many as it can take at once.
    pub(super) fn flush(
        &mut self,
        node: NodeId,
        connections: &mut Connections,
        rounds: &mut Rounds,
        now: Timestamp,
    ) {
        let connection = &mut connections[node];
        while let Some(ticket) = connection.pending.take_ended(now) {
            rounds.unrefer(ticket);
        }
        while connection.runs_releases()
            && let backlog = connection.session.pipeline.backlog()
            && backlog.requests < FLUSH_LIMIT
            && backlog.unsent < FLUSH_BYTES
            && let Some(ticket) = connection.pending.take(now)
        {
            if let (Some(conditions), Some(command)) =
                (rounds.conditions(ticket), rounds.command(ticket))
            {
                connection.pending.carry(conditions.key_ends);
                connection.queue(&command, now);
            }
        }
        if connection.pending.is_empty() {
            self.pending.set(node, false);
        }
    }

    /// The nodes for which something may be due.
    pub(super) fn to_serve(&self, connections: &Connections) -> NodeSet {
        let nodes = self.pending.union(connections.blocked);
        if self.waits.is_empty() {
            return nodes;
        }
        // It also finds out which nodes are silent.
        let log = &connections.log;
        let silent = connections
            .nodes()
            .filter(|&node| connections[node].awaits_release(log));
        nodes.union(silent.collect())
    }

    /// Removes a background release that has no verdict, and whose deadline is not after `last`,
    /// and those before it that have one.
    pub(super) fn take_late(&mut self, last: Timestamp, rounds: &Rounds) -> Option<Ticket> {
        while let Some(&(ticket, deadline)) = self.background.front() {
            let is_decided = rounds.is_decided(ticket);
            if !is_decided && deadline > last {
                break;
            }
            self.background.pop_front();
            if !is_decided {
                return Some(ticket);
            }
        }
        None
    }

    /// Ends the waits for what has been reached. `is_judging`: the nodes have to be polled at once
    /// all the same.
    pub(super) fn end_waits(
        &self,
        is_judging: bool,
        connections: &Connections,
        rounds: &mut Rounds,
        now: Timestamp,
    ) {
        if self.waits.is_empty() {
            return;
        }
        // Nothing is left to do at once.
        let is_sent = !is_judging && self.next_due(connections, now) > now;
        let is_answered = !connections.await_release();
        for &(ticket, target) in &self.waits {
            let is_reached = match target {
                Settled::Answered => is_answered,
                Settled::Run => self.pending.is_empty() && is_answered,
                Settled::Sent => is_sent,
            };
            if is_reached {
                rounds.end_wait(ticket);
            }
        }
    }

    /// When there is something to do for pending releases next.
    pub(super) fn pending_due(&self, connections: &Connections) -> Timestamp {
        let log = &connections.log;
        let blocked = connections
            .blocked
            .iter()
            .filter(|&node| connections[node].has_unsent_release(log));
        self.pending
            .iter()
            .chain(blocked)
            .map(|node| connections[node].pending_due())
            .min()
            .unwrap_or(Timestamp::NEVER)
    }

    /// When there is something to do for releases next, if any is left: now, while one is on its
    /// way; when the answers were not looked for, after a while.
    pub(super) fn next_due(&self, connections: &Connections, now: Timestamp) -> Timestamp {
        connections
            .each
            .iter()
            .map(|connection| connection.release_due(&connections.log, now))
            .fold(self.pending_due(connections), Timestamp::min)
    }

    /// Ends a wait for releases.
    pub(in crate::engine) fn leave(&mut self, ticket: Ticket, rounds: &mut Rounds) {
        self.waits.retain(|&(other, _)| other != ticket);
        rounds.unrefer(ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::rounds::Purpose;
    use std::time::Duration;

    #[test]
    fn a_wait_that_is_left_ends_no_other() {
        let mut rounds = Rounds::new(3, None);
        let mut releases = UnsettledReleases::default();
        let waits = [(); 2].map(|()| (rounds.open(Purpose::Wait), Settled::Sent));
        releases.waits.extend(waits);
        releases.leave(waits[0].0, &mut rounds);
        assert_eq!(releases.waits, waits[1..]);
        assert!(rounds.round(waits[0].0).is_none() && rounds.round(waits[1].0).is_some());
    }

    #[test]
    fn a_background_release_is_late_when_its_deadline_has_come() {
        let deadline = Timestamp::ORIGIN.after(Duration::from_secs(1));
        let mut rounds = Rounds::new(3, None);
        let mut releases = UnsettledReleases::default();
        let ticket = rounds.open(Purpose::Wait);
        releases.background.push_back((ticket, deadline));
        assert_eq!(releases.take_late(Timestamp::ORIGIN, &rounds), None);
        assert_eq!(releases.take_late(deadline, &rounds), Some(ticket));
        assert_eq!(releases.take_late(deadline, &rounds), None);
    }
}
