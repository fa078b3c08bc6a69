//! The questions to all nodes which holder has a lock, and which of several locks is free. They change nothing there.

use super::Nodes;
use crate::algorithm::fence::FencingToken;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::lock_kind::LockKind;
use crate::algorithm::node::NodeId;
use crate::algorithm::slot_survey::SlotSurvey;
use crate::algorithm::time::Timestamp;
use crate::engine::driver::WaitSlots;
use crate::engine::node_connection::NodeConnection;
use crate::engine::rounds::{Inquiry, Purpose};
use crate::protocol::command::Lifetime;
use crate::protocol::session::Ticket;
use std::sync::Arc;
use std::time::Duration;

impl Nodes {
    /// Asks every node that can be asked which holder has a lock.
    pub(in crate::engine) fn inspect(
        &mut self,
        key: &[u8],
        is_fenced: bool,
        now: Timestamp,
        notify: &mut WaitSlots,
    ) -> Ticket {
        let ask = |node: &mut NodeConnection, ticket| node.session.inspect(ticket, key, is_fenced, now);
        let kind = if is_fenced { LockKind::Fenced(FencingToken::MAX) } else { LockKind::Plain };
        self.inquire(Purpose::Inspect, (key, kind), ask, now, notify)
    }

    /// Asks every node that can be asked how long each of these keys lives. A waiter for them finds out about all that
    /// was announced so far.
    pub(in crate::engine) fn survey(&mut self, keys: &[Arc<str>], now: Timestamp, notify: &mut WaitSlots) -> Ticket {
        keys.iter().for_each(|key| self.wait_registry().look_into(key.as_bytes()));
        let ask = |node: &mut NodeConnection, ticket| {
            node.session.survey(ticket, keys.iter().map(|key| key.as_bytes()), now);
        };
        self.inquire(Purpose::Survey, (b"", LockKind::Plain), ask, now, notify)
    }

    fn inquire(
        &mut self,
        purpose: Purpose,
        (key, kind): (&[u8], LockKind),
        ask: impl Fn(&mut NodeConnection, Ticket),
        now: Timestamp,
        notify: &mut WaitSlots,
    ) -> Ticket {
        self.expire_background(now, notify);
        // No node is shown a token.
        let no_token = OwnerToken::from_entropy([0; OwnerToken::ENTROPY]);
        let ticket = self.rounds.open_command(purpose, (key, &no_token), kind);
        let ready = self.prepare_all(ticket, now, notify);
        for node in ready.iter() {
            self.node_mut(node).note_request(now);
            ask(self.node_mut(node), ticket);
        }
        self.rounds.refer(ticket, ready);
        self.commands.note_queued(ready, now);
        ticket
    }

    /// Notes what a node has answered. Apart from what runs for each reply.
    #[inline(never)]
    pub(super) fn note_inspected(&mut self, ticket: Ticket, node: NodeId, now: Timestamp) {
        let session = &mut self.connections[node.index()].session;
        let (occupant, slots) = (session.take_occupant(), session.take_slots());
        match self.rounds.inquiry(ticket) {
            Some(Inquiry::Holder(inspection)) => {
                occupant.into_iter().for_each(|occupant| inspection.record(node, occupant, now));
            }
            Some(Inquiry::Slots(survey)) => {
                let end = |lifetime| match lifetime {
                    Lifetime::Limited(Duration::ZERO) => SlotSurvey::FREE,
                    Lifetime::Limited(left) => now.after(left),
                    Lifetime::Endless | Lifetime::Unknown => Timestamp::NEVER,
                };
                if !slots.is_empty() {
                    survey.record(node, slots.into_iter().map(end).collect());
                }
            }
            None => {}
        }
    }
}
