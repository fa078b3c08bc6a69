//! What the driver asks of the nodes: begin, send, poll, take what has arrived, and give up what is
//! late.

use super::Nodes;
use super::submission::{Posting, Submission};
use crate::algorithm::kind::Kind;
use crate::algorithm::node::NodeSet;
use crate::algorithm::pending_release::Settled;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::engine::driver::{Reactor, WaitSlot};
use crate::engine::rounds::RoundResult;
use crate::os::watch::Watch;
use crate::protocol::operation::Verb;
use crate::protocol::session::Ticket;
use std::time::Duration;

impl Reactor for Nodes {
    type Ticket = Ticket;
    type Submission = Submission;
    type Verdict = RoundResult;
    type Posting = Posting;
    type Watch = Box<Watch>;

    fn now(&self) -> Timestamp {
        self.connections.clock.now()
    }

    fn begin(&mut self, submission: &Submission, now: Timestamp) -> (Ticket, bool) {
        match submission {
            // True: an attempt depends on connections that are still being made.
            Submission::Acquire(request) => (
                self.acquire(request, now),
                self.connections.have_to_be_made(now),
            ),
            Submission::Release(release) => (self.release(release, now), false),
        }
    }

    fn begin_posted(&mut self, posting: Posting, now: Timestamp) {
        let ticket = self.release(&posting.release, now);
        let Some((context, deadline)) = posting.report else {
            return self.rounds.unrefer(ticket);
        };
        if !self.rounds.report_verdict(ticket, context) {
            self.releases.background.push_back((ticket, deadline));
        }
    }

    fn conclude(&mut self, ticket: Ticket) -> RoundResult {
        self.rounds.conclude(ticket)
    }

    fn is_decided(&self, ticket: Ticket) -> bool {
        self.rounds.is_decided(ticket)
    }

    fn assign(&mut self, ticket: Ticket, slot: Option<WaitSlot>) {
        self.rounds.assign(ticket, slot);
    }

    fn next_decided(&mut self) -> Option<WaitSlot> {
        self.rounds.next_decided()
    }

    fn expire(&mut self, ticket: Ticket, now: Timestamp) {
        if self.rounds.has_soft_deadline(ticket) {
            return;
        }
        self.connections.leave_late(now);
        // A thread that comes late to its deadline does not blame the nodes: what they had answered
        // by now counts.
        for node in self.undecided(ticket).iter() {
            if !self.rounds.is_decided(ticket) && self.connections[node].is_open() {
                self.read(node, now);
            }
        }
        self.judge_late(now);
        for node in self
            .undecided(ticket)
            .without(self.incarnations.held_nodes(ticket))
            .iter()
        {
            if !self.rounds.is_decided(ticket) {
                let fault = self.connections.apart(node).fault_at_deadline(now);
                self.rounds.vote(ticket, node, &Vote::Fault(fault));
            }
        }
        self.incarnations.give_up_held(ticket, &mut self.rounds);
    }

    fn flush(&mut self) {
        let nodes = std::mem::take(&mut self.connections.unsent);
        for node in nodes.iter() {
            self.write(node, self.connections.queued_at);
        }
    }

    fn watch(&mut self, alone: bool, now: Timestamp) -> Box<Watch> {
        let (mut watch, due) = self.connections.poll.take(
            &self.connections.each,
            &self.connections.log,
            self.connections.unsent,
            now,
        );
        self.subscribers
            .list(&mut watch, &self.connections.each, now);
        // An address that does not answer is given up for the next one.
        let due = due
            .min(self.incarnations.due())
            .min(self.releases.pending_due(&self.connections));
        watch.limit = watch.limit.min(due.since(now));
        // A wait for another client's lock is long, and a wait for releases is not urgent.
        let is_urgent = !self.subscribers.registry.has_sleepers() && self.releases.waits.is_empty();
        watch.spin = self.connections.poll.spin.allowance(alone && is_urgent);
        watch
    }

    fn poll(watch: &mut Box<Watch>, timeout: Duration) {
        watch.poll(timeout.min(watch.limit));
    }

    fn absorb(&mut self, mut watch: Box<Watch>, now: Timestamp) {
        self.connections.poll.drain_waker(&watch);
        self.connections.leave_late(now);
        if watch.woken {
            for node in self.connections.nodes() {
                if self.connections[node].link.is_resolving()
                    && let Err(fault) = self.connections.changing(node).link.resolved(now)
                {
                    self.lose(node, fault, now);
                }
            }
        }
        for node in watch.readable.union(watch.writable).iter() {
            self.serve(node, &watch, now);
        }
        for node in self.connections.poll.timed().iter() {
            if self.connections[node].due(now) < Timestamp::NEVER {
                self.refresh(node, now);
            }
        }
        let connections = &mut self.connections;
        let ended = self
            .subscribers
            .absorb(&mut watch, connections, &mut self.rounds, now);
        connections.poll.put_back(watch, &connections.each, now);
        for (node, notice) in ended {
            // A call that has ended got a message: its entry is removed on that node.
            self.update_queue(
                &notice.key,
                Kind::of_entry(notice.entry.kind),
                Verb::Leave(Some(notice.entry)),
                NodeSet::only(node),
                now,
            );
        }
        self.connections.cut_log();
        self.judge_late(now);
        self.serve_pending(now);
        self.end_settled(now);
        self.expire_background(now, now);
    }

    fn interrupt(&mut self) {
        self.connections.poll.interrupt();
    }

    fn end_polls(&mut self) {
        self.connections.poll.record_change(true);
        self.connections.poll.interrupt();
    }

    fn record_solitary_wait(&mut self, time: Duration) {
        self.connections.poll.spin.learn(time);
    }

    fn has_work_left(&self) -> bool {
        self.incarnations.judging.is_some()
            || !self.releases.pending.is_empty()
            || self.connections.await_release()
    }

    fn work_due(&self, now: Timestamp) -> Option<Timestamp> {
        let is_judging = self.incarnations.judging.is_some();
        let due = if is_judging {
            now
        } else {
            self.releases.next_due(&self.connections, now)
        };
        Some(due).filter(|&due| due < Timestamp::NEVER)
    }

    fn await_work(&mut self, now: Timestamp) -> Ticket {
        self.await_settled(Settled::Sent, now)
    }

    fn leave_work(&mut self, ticket: Ticket) {
        self.releases.leave(ticket, &mut self.rounds);
    }

    fn interrupt_work(&mut self) {
        self.releases
            .waits
            .iter()
            .for_each(|&(ticket, _)| self.rounds.end_wait(ticket));
        self.connections.poll.record_change(true);
    }
}
