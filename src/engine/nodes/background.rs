//! What somebody wants to be told of: releases that nobody waits for, and nodes that go and come.
//!
//! A post that is followed is decided like any other round, by its votes. But nobody sleeps on it, so nobody's deadline
//! ends it either: whoever asks something of the nodes later finds that its time is up, and counts those that have not
//! answered as timed out.
//!
//! A node is up when it votes, and down when it fails, and neither in quarantine. To greet is not enough: a node that can do no more would go up and
//! down with every try. The end of a connection on which nothing was asked is not a failure: servers end idle ones. If it
//! cannot be made again, that is one.

use super::Nodes;
use crate::algorithm::fault::{Cause, Fault};
use crate::algorithm::node::NodeId;
use crate::algorithm::time::Timestamp;
use crate::engine::driver::{Reactor, WaitSlots};
use crate::events::event_queue::ReleaseContext;
use crate::protocol::session::{HandshakeState, Ticket};

impl Nodes {
    /// Sees to it that the outcome of a release is told, that which it has come to by then at the latest. The caller gives
    /// its reference to the round away.
    pub(in crate::engine) fn follow(&mut self, ticket: Ticket, farewell: ReleaseContext, deadline: Timestamp) {
        if !self.rounds.follow(ticket, farewell) {
            self.posts.push_back((ticket, deadline));
        }
    }

    /// Ends the posts whose time is up.
    pub(super) fn settle_posts(&mut self, now: Timestamp, bells: &mut WaitSlots) {
        while let Some(&(ticket, deadline)) = self.posts.front() {
            if !self.rounds.is_decided(ticket) {
                if now < deadline {
                    return;
                }
                self.expire(ticket, bells);
            }
            self.posts.pop_front();
        }
    }

    /// The node has answered whether a lock may be had or kept. One that was hung works off what it was asked meanwhile, and
    /// is not there before it answers in time.
    pub(super) fn note_answer(&mut self, node: NodeId, now: Timestamp) {
        let link = &self.links[node.index()];
        let is_quarantined = link.quarantine.is_on();
        let is_known = self.presence.is_up(node) && !is_quarantined;
        if is_known || self.presence.is_refusing(node) || !link.is_responsive(now) {
            return;
        }
        if is_quarantined {
            // The quarantine began by a later reading of the clock than `now`.
            self.presence.mark_quarantined(node, link.quarantine.remaining(self.clock.now()), now);
        } else {
            self.presence.mark_up(node, now);
        }
    }

    /// The node has failed.
    pub(super) fn note_failure(&mut self, node: NodeId, fault: Fault, now: Timestamp) {
        // A node with many answers to give is slow, and gives them.
        if fault.cause != Cause::Backlog {
            self.presence.mark_down(node, fault, now);
        }
    }

    /// Whether this fault would end a connection that works and has nothing to answer.
    pub(super) fn is_idle_end(&self, node: NodeId, fault: Fault) -> bool {
        let link = &self.links[node.index()];
        fault.cause == Cause::Closed
            && link.is_open()
            && link.session.standing() == HandshakeState::Accepted
            && link.session.backlog() == 0
    }
}
