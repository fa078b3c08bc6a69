//! Background releases: releases that no thread waits for, and whose outcome is reported as an event.
//!
//! The votes decide such a round like any other. No thread waits for it, so no thread's deadline ends it either. The
//! next operation on the nodes, or the helper, finds that its deadline has passed, and counts the nodes that have not
//! answered as timed out.

use crate::algorithm::time::Timestamp;
use crate::engine::rounds::Rounds;
use crate::events::event_queue::ReleaseContext;
use crate::protocol::session::Ticket;
use std::collections::VecDeque;

/// The background releases that have no verdict yet, in the order of their deadlines.
#[derive(Default)]
pub(super) struct BackgroundReleases(VecDeque<(Ticket, Timestamp)>);

impl BackgroundReleases {
    /// Reports the outcome of a release, at its deadline at the latest. The caller gives its reference to the round
    /// away.
    pub(super) fn follow(&mut self, rounds: &mut Rounds, ticket: Ticket, context: ReleaseContext, deadline: Timestamp) {
        if !rounds.report_verdict(ticket, context) {
            self.0.push_back((ticket, deadline));
        }
    }

    /// Takes a release whose deadline has passed without a verdict, if there is one.
    pub(super) fn pop_expired(&mut self, rounds: &Rounds, now: Timestamp) -> Option<Ticket> {
        while let Some(&(ticket, deadline)) = self.0.front() {
            let is_decided = rounds.is_decided(ticket);
            if !is_decided && now < deadline {
                return None;
            }
            self.0.pop_front();
            if !is_decided {
                return Some(ticket);
            }
        }
        None
    }
}
