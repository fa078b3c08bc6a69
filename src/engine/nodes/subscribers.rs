//! WaitRegistry for releases: somebody waits, and there is an [`Subscriber`] for each node that has a connection.
//!
//! Who waits sleeps on a round that asks for nothing, as others sleep on theirs, and drives the relay like them. WakeReason that his
//! key was released ends that wait, and so does his [`Interrupt`], or his time ([`listening`](crate::engine::wait_registry)).
//!
//! Nothing is subscribed to that nobody waits for. Connections without a subscription are kept for a moment after the last
//! wait was won, because whoever has waited for a lock will often wait for it again; then the next call closes them.

use super::Nodes;
use crate::algorithm::fault::Fault;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::time::Timestamp;
use crate::engine::driver::WaitSlots;
use crate::engine::interrupt::Interrupt;
use crate::engine::rounds::{Purpose, Rounds};
use crate::engine::subscriber::Subscriber;
use crate::engine::wait_registry::{KeyWaiters, Waiter, WakeReason};
use crate::events::event_queue::{PendingEvent, Side};
use crate::os::poll::Watch;
use crate::protocol::session::Ticket;
use crate::protocol::subscription::{Event, Key};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long connections are kept that nobody listens on.
const LINGER: Duration = Duration::from_millis(100);
/// How long nobody looks after a connection at least that is to be made now.
const SHORTEST_LOOK: Duration = Duration::from_millis(10);

impl Nodes {
    /// Somebody is about to wait for a key.
    pub(in crate::engine) fn listen(&mut self, key: &Key, now: Timestamp) {
        if !self.listening.enter(key) || !self.listening.is_on {
            return;
        }
        if self.ears.is_empty() {
            self.ears.extend(self.links.iter().enumerate().map(|(index, _)| Subscriber::new(NodeId::new(index))));
        }
        for ear in &mut self.ears {
            ear.subscribe(key, now);
        }
        self.tend_ears(now);
        self.changed = true;
    }

    /// He waits no more. `has_won`: what he waited for is his now.
    pub(in crate::engine) fn unlisten(&mut self, key: &Key, has_won: bool, now: Timestamp) {
        if self.listening.leave(key) {
            for ear in &mut self.ears {
                ear.unsubscribe(key, now);
            }
            self.idle_since = if has_won { now } else { Timestamp::ORIGIN };
            self.rest(now);
        }
    }

    /// Begins a wait. It ends at once when there is word, or the alarm was rung, before.
    pub(in crate::engine) fn sleep(
        &mut self,
        key: &Key,
        alarm: &Arc<Interrupt>,
        now: Timestamp,
        bells: &mut WaitSlots,
    ) -> Ticket {
        // The token of nobody.
        let ticket = self.rounds.open(Purpose::Wait, key, &OwnerToken::from_entropy([0; OwnerToken::ENTROPY]));
        self.rounds.bear_with(ticket, true);
        self.tend_ears(now);
        // Whoever drives has perhaps not watched them so far.
        self.changed |= !self.listening.has_sleepers();
        if !self.listening.sleep(key, Waiter::new(ticket, alarm)) {
            self.rounds.ring(ticket, bells);
        }
        ticket
    }

    /// Ends a wait, and gives what has ended it before its time.
    pub(in crate::engine) fn wake(&mut self, ticket: Ticket, key: &Key) -> Option<WakeReason> {
        self.rounds.unrefer(ticket);
        self.listening.wake(key, ticket)
    }

    /// Somebody who waits for the key begins an attempt.
    pub(in crate::engine) fn look_into(&mut self, key: &Key) {
        self.listening.look_into(key);
    }

    /// Whether no release of the key by a quorum can escape us.
    pub(in crate::engine) fn is_attentive(&self, key: &Key) -> bool {
        self.listening.is_attentive(key)
    }

    /// Whether somebody who wants the key should let others go first.
    pub(in crate::engine) fn must_defer(&mut self, key: &[u8], is_handed_on: bool, now: Timestamp) -> bool {
        self.listening.must_defer(key, is_handed_on, now)
    }

    /// Whether that is worth asking at all.
    pub(in crate::engine) fn is_crowded(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.listening.is_crowded)
    }

    /// Closes connections on which nobody has listened for a moment.
    pub(super) fn rest(&mut self, now: Timestamp) {
        let is_recent = self.idle_since > Timestamp::ORIGIN && now.since(self.idle_since) < LINGER;
        if !self.listening.topics.is_empty() || is_recent || self.ears.iter().all(Subscriber::is_closed) {
            return;
        }
        self.ears.iter_mut().for_each(Subscriber::close);
        match &mut self.watch {
            Some(watch) => watch.ears = Vec::new(),
            // The driver has a hold on them, and lets go when it looks.
            None => self.changed = true,
        }
    }

    /// Says what to wait for. What is said while nobody sleeps is heard when somebody does: an attempt that a hint has led to
    /// is not held up by the same hint from other nodes.
    pub(super) fn watch_ears(&self, watch: &mut Watch) {
        let ears = if self.listening.has_sleepers() { &self.ears[..] } else { &[] };
        let now = self.clock.now();
        let due = ears.iter().zip(&self.links).map(|(ear, link)| ear.due(link)).min();
        watch.limit = match due {
            None | Some(Timestamp::NEVER) => Duration::MAX,
            Some(due) => due.since(now).max(SHORTEST_LOOK),
        };
        let due = self.links.iter().map(|link| link.due(now)).min();
        if let Some(due) = due.filter(|&due| due < Timestamp::NEVER) {
            watch.limit = watch.limit.min(due.since(now));
        }
        watch.ears.resize_with(ears.len(), || None);
        for (ear, interest) in ears.iter().zip(&mut watch.ears) {
            if !ear.is_interested_in(interest.as_ref()) {
                *interest = ear.interest();
            }
        }
    }

    /// Takes in what there is to hear, and who was rung.
    pub(super) fn absorb_ears(&mut self, watch: &mut Watch, now: Timestamp, bells: &mut WaitSlots) {
        if watch.woken {
            for sleeper in self.listening.topics.values().flat_map(|topic| &topic.sleepers) {
                if sleeper.alarm.is_set() {
                    self.rounds.ring(sleeper.ticket, bells);
                }
            }
        }
        if self.ears.is_empty() {
            watch.ears.clear();
            return;
        }
        for node in watch.attentive.iter() {
            let interest = watch.ears.get(node.index()).and_then(Option::as_ref);
            let ear = &mut self.ears[node.index()];
            if !interest.is_some_and(|interest| ear.is_on(&interest.stream)) {
                continue;
            }
            let (rounds, listening) = (&mut self.rounds, &mut self.listening);
            let mut refusal = None;
            let is_there = ear.ready(now, |event| match event {
                Event::Confirmed(key) => ring(rounds, listening.confirmed(&key, node), bells),
                Event::Heard(key, hint) => ring(rounds, listening.heard(&key, node, hint, now), bells),
                Event::Refused(fault) => refusal = Some(fault),
            });
            if !is_there {
                self.listening.lost(node);
            }
            if let Some(fault) = refusal
                && self.deaf.insert(node)
            {
                self.note_refusal(Side::Listening, node, fault);
            }
        }
        if !self.listening.topics.is_empty() {
            self.tend_ears(now);
        }
        for (ear, interest) in self.ears.iter().zip(&mut watch.ears) {
            if interest.as_ref().is_some_and(|interest| !ear.is_on(&interest.stream)) {
                *interest = None;
            }
        }
    }

    /// Notes how many heard of the release of a round, as its answer said.
    pub(super) fn take_audience(&mut self, node: NodeId, ticket: Ticket, now: Timestamp) {
        let audience = self.links[node.index()].session.publisher.take_subscriber_count();
        if audience > 0 {
            self.note_audience(ticket, audience, now);
        }
    }

    /// So many heard of the release of a round.
    pub(super) fn note_audience(&mut self, ticket: Ticket, audience: u8, now: Timestamp) {
        if let Some(round) = self.rounds.round(ticket) {
            self.listening.note_crowd(round.key(), audience, now);
        }
    }

    /// Why those who wait cannot be told of releases by a node any more.
    pub(super) fn note_mute(&mut self, node: NodeId, fault: Fault) {
        if self.mute.insert(node) {
            self.note_refusal(Side::Publishing, node, fault);
        }
    }

    /// Makes the connections that are missing, as far as that is possible now.
    fn tend_ears(&mut self, now: Timestamp) {
        let mut lost = NodeSet::EMPTY;
        for (index, (ear, link)) in self.ears.iter_mut().zip(&self.links).enumerate() {
            let was_closed = ear.is_closed();
            if ear.tend(link, self.listening.topics.keys(), now) {
                lost.insert(NodeId::new(index));
            }
            self.changed |= was_closed && !ear.is_closed();
        }
        lost.iter().for_each(|node| self.listening.lost(node));
    }

    fn note_refusal(&mut self, side: Side, node: NodeId, fault: Fault) {
        self.presence.push(PendingEvent::ReleaseNotificationsRefused(side, node, fault));
    }
}

/// Wakes those who sleep, if there is word for them.
fn ring(rounds: &mut Rounds, topic: Option<&KeyWaiters>, bells: &mut WaitSlots) {
    for sleeper in topic.into_iter().flat_map(|topic| &topic.sleepers) {
        rounds.ring(sleeper.ticket, bells);
    }
}
