//! All links of one client and its rounds in flight: the world that waiting threads drive.
//!
//! Commands of all threads go to a node on its one link, in order; each reply is handed to the round it belongs to. A node
//! that cannot be asked votes with its fault at once, so that nobody waits for it. Nothing here waits: sockets are
//! written and read as far as they go, and [`relay`](super::relay) does the rest.

mod background;
mod fencing;
mod owed;
pub(crate) mod requests;
pub(crate) mod status;
mod subscribers;
mod vote_filter;

use super::busy_poll::Spin;
use super::driver::{Reactor, WaitSlot, WaitSlots};
use super::node_connection::{NodeConnection, Received};
use super::rounds::Rounds;
use super::subscriber::Subscriber;
use super::wait_registry::WaitRegistry;
use crate::algorithm::fault::{Cause, Fault};
use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::pending_release::Settled;
use crate::algorithm::time::{Clock, Timestamp};
use crate::algorithm::vote::Vote;
use crate::events::event_queue::EventQueue;
use crate::events::node_states::NodeStates;
use crate::os::poll::Watch;
use crate::os::waker::Waker;
use crate::protocol::session::{Abandoned, Event, HandshakeState, Ticket};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The links and rounds of one client.
pub(super) struct Nodes {
    links: Vec<NodeConnection>,
    rounds: Rounds,
    /// How long nodes keep the key of a fenced lock.
    retention_millis: u64,
    clock: Arc<dyn Clock>,
    waker: Arc<Waker>,
    /// The nodes for which a command was queued and not written yet.
    unsent: NodeSet,
    /// When the latest of those commands was queued.
    queued_at: Timestamp,
    /// What the last poll waited for, kept for the next one. Out while somebody polls.
    watch: Option<Watch>,
    spin: Spin,
    /// A connection was lost while the list was out.
    lost: bool,
    /// A connection was opened, or bytes were left unsent, since the driver last asked what to wait for.
    changed: bool,
    /// Releases that nobody waits for and somebody wants to be told of, and when their time is up, in that order.
    posts: VecDeque<(Ticket, Timestamp)>,
    /// The nodes that have releases pending.
    owing: NodeSet,
    /// The nodes that did not take all when they were last written to.
    clogged: NodeSet,
    /// The waits for releases: until what.
    settling: Vec<(Ticket, Settled)>,
    /// How the nodes are seen.
    presence: NodeStates,
    /// Those who wait for locks of others, and what they listen with, by node: none while nobody waits.
    listening: WaitRegistry,
    ears: Vec<Subscriber>,
    /// When the last of them has won what he waited for.
    idle_since: Timestamp,
    /// The nodes of which was told that they refuse to let us listen, or tell.
    deaf: NodeSet,
    mute: NodeSet,
}

impl Nodes {
    pub(super) fn new(
        links: Vec<NodeConnection>,
        clock: Arc<dyn Clock>,
        waker: Arc<Waker>,
        spin: Duration,
        news: Option<Arc<EventQueue>>,
        release_notifications: bool,
        retention: Duration,
    ) -> Nodes {
        let presence = NodeStates::new(news.clone(), links.len(), clock.now());
        let rounds = Rounds::new(links.len(), news);
        let watch = Watch::new(&waker, links.len());
        let listening = WaitRegistry::new(links.len(), release_notifications);
        Nodes {
            links,
            rounds,
            retention_millis: u64::try_from(retention.as_millis()).unwrap_or(u64::MAX),
            clock,
            waker,
            unsent: NodeSet::EMPTY,
            queued_at: Timestamp::ORIGIN,
            watch: Some(watch),
            spin: Spin::new(spin),
            lost: false,
            changed: false,
            posts: VecDeque::new(),
            owing: NodeSet::EMPTY,
            clogged: NodeSet::EMPTY,
            settling: Vec::new(),
            presence,
            listening,
            ears: Vec::new(),
            idle_since: Timestamp::ORIGIN,
            deaf: NodeSet::EMPTY,
            mute: NodeSet::EMPTY,
        }
    }

    /// The rounds in flight.
    pub(super) fn rounds(&mut self) -> &mut Rounds {
        &mut self.rounds
    }

    /// Closes all connections without a word, as one of several processes that have them. None is used here any more.
    pub(super) fn let_go(&mut self) {
        self.watch = None;
        self.links.iter_mut().for_each(NodeConnection::let_go);
        self.ears = Vec::new();
    }

    fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.links.len()).map(NodeId::new)
    }

    /// Takes in what happened to a connection while nobody looked, and gives up a hopeless one.
    fn look(&mut self, node: NodeId, now: Timestamp, bells: &mut WaitSlots) {
        let was_open = self.links[node.index()].is_open();
        let is_due = self.links[node.index()].due(now) <= now;
        if let Err(fault) = self.links[node.index()].advance(now) {
            self.lose(node, fault, now, bells);
        }
        // Another address is tried, which no one polls for yet.
        self.changed |= is_due;
        if self.links[node.index()].is_open() && !was_open {
            self.unsent.insert(node);
        }
        if self.links[node.index()].needs_look(now) {
            // The end of a connection shows only when nothing is left before it.
            self.read_while(|received| received != Received::Nothing, node, now, bells);
        }
        if let Some(fault) = self.links[node.index()].hopeless(now) {
            self.lose(node, fault, now, bells);
        }
    }

    /// Begins to connect, and queues what is owed.
    fn open(&mut self, node: NodeId, now: Timestamp, bells: &mut WaitSlots) -> Result<(), Fault> {
        // A server that is near is connected to at once. A guard that is dropped waits for none, and is the last to look.
        let opened = self.links[node.index()].open(now).and_then(|()| self.links[node.index()].advance(now));
        if let Err(fault) = opened {
            self.lose(node, fault, now, bells);
            return Err(fault);
        }
        self.changed = true;
        self.pay(node, now);
        if self.links[node.index()].is_open() {
            self.unsent.insert(node);
        }
        Ok(())
    }

    /// Gives a connection up: whoever waits for its replies gets the fault, and unanswered releases are owed.
    fn lose(&mut self, node: NodeId, fault: Fault, now: Timestamp, bells: &mut WaitSlots) {
        // A server that refuses us may close next; the refusal says more.
        let fault = match self.links[node.index()].session.standing() {
            HandshakeState::Rejected(refusal) => refusal,
            HandshakeState::Pending | HandshakeState::Accepted => self.links[node.index()].most_telling(fault),
        };
        if !self.is_idle_end(node, fault) {
            self.note_failure(node, fault, now);
        }
        let link = &self.links[node.index()];
        let is_in_use = link.is_open() && link.session.standing() == HandshakeState::Accepted;
        let is_closed_in_use = is_in_use && fault.cause == Cause::Closed;
        let abandoned: Vec<_> = self.links[node.index()].session.abandon().collect();
        self.links[node.index()].close(fault, now);
        self.forget_closed(node);
        for (ticket, request) in abandoned {
            match request {
                Abandoned::Acquire | Abandoned::Check | Abandoned::Extend => {
                    self.rounds.vote(ticket, node, Vote::Fault(fault), bells);
                    self.rounds.unrefer(ticket);
                }
                Abandoned::Release => self.owe_abandoned(node, ticket, (fault, is_closed_in_use), bells),
            }
        }
    }

    /// Lets go of a stream that is not the link's any more: the list of the last poll alone would keep it open.
    fn forget_closed(&mut self, node: NodeId) {
        let Some(watch) = &mut self.watch else {
            self.lost = true;
            return;
        };
        let interest = &mut watch.streams[node.index()];
        if interest.as_ref().is_some_and(|interest| !self.links[node.index()].is_on(&interest.stream)) {
            *interest = None;
        }
    }

    /// Writes what a link's socket takes.
    fn write(&mut self, node: NodeId, now: Timestamp, bells: &mut WaitSlots) {
        let flushed = self.links[node.index()].flush(now);
        self.note_clogged(node);
        match flushed {
            Ok(unsent) => self.changed |= unsent,
            Err(fault) => {
                // The server may have said why before it closed.
                self.read(node, now, bells);
                if self.links[node.index()].is_open() {
                    self.lose(node, fault, now, bells);
                }
            }
        }
    }

    /// Reads all that is there, and hands it out.
    fn read(&mut self, node: NodeId, now: Timestamp, bells: &mut WaitSlots) {
        self.read_while(|received| received == Received::Much, node, now, bells);
    }

    fn read_while(&mut self, goes_on: fn(Received) -> bool, node: NodeId, now: Timestamp, bells: &mut WaitSlots) {
        let mut answered = false;
        loop {
            let received = self.links[node.index()].read(now);
            match received.and_then(|_| self.hand_out(node, now, bells)) {
                Ok(more) => answered |= more,
                Err(fault) => return self.lose(node, fault, now, bells),
            }
            if !received.is_ok_and(goes_on) {
                break;
            }
        }
        // Not before all was read: what is still unanswered then is late, and the node with it.
        if answered {
            self.note_answer(node, now);
        }
        if self.owing.contains(node) {
            self.pay(node, now);
        }
        if !self.links[node.index()].session.unsent().is_empty() {
            // A release is on its way again in another dialect, or one that was owed. An error shows at the next read.
            self.changed |= self.links[node.index()].flush(now).unwrap_or(false);
            self.note_clogged(node);
        }
    }

    /// True when the node has answered whether a lock may be had or kept.
    fn hand_out(&mut self, node: NodeId, now: Timestamp, bells: &mut WaitSlots) -> Result<bool, Fault> {
        let mut answered = false;
        while self.links[node.index()].session.has_input()
            && let Some(event) = self.links[node.index()].next_event(now)?
        {
            match event {
                Event::Answered(ticket, vote) => {
                    self.take_audience(node, ticket, now);
                    answered |= self.count(ticket, node, (vote, None), now, bells);
                }
                Event::Endless(ticket) => self.rounds.note_endless(ticket, node),
                Event::EndsWithin(ticket, left) => self.rounds.note_end(ticket, node, now.after(left)),
                Event::Held(ticket, left) => {
                    answered |= self.count(ticket, node, (Vote::Refused, None), now, bells);
                    self.rounds.note_end(ticket, node, now.after(left));
                }
                Event::Fenced(ticket, fence) => {
                    answered |= self.count(ticket, node, (Vote::Granted, Some(fence)), now, bells);
                }
                Event::NotRun(ticket, fault) => {
                    self.take_audience(node, ticket, now);
                    self.not_run(node, ticket, fault, now, bells);
                }
                Event::Published(ticket, audience) => self.note_audience(ticket, audience, now),
                Event::Greeted => {
                    self.meet(node);
                    self.refuse_second_vote(node, now);
                }
                Event::Rechecked => self.recheck(node),
                Event::Rejected(fault) => self.meet_rejected(node, fault, now),
                Event::WrongDialect(again) => self.ask_again(node, again, now),
            }
        }
        if let Some(fault) = self.links[node.index()].session.publisher.take_refusal() {
            self.note_mute(node, fault);
        }
        Ok(answered)
    }
}

impl Reactor for Nodes {
    type Ticket = Ticket;
    type Watch = Watch;

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn is_decided(&self, ticket: Ticket) -> bool {
        self.rounds.is_decided(ticket)
    }

    fn assign(&mut self, ticket: Ticket, bell: WaitSlot) {
        self.rounds.assign(ticket, bell);
    }

    fn expire(&mut self, ticket: Ticket, bells: &mut WaitSlots) {
        if self.rounds.is_patient(ticket) {
            return;
        }
        let now = self.clock.now();
        let undecided =
            |fleet: &Nodes| fleet.rounds.round(ticket).map_or(NodeSet::EMPTY, |round| round.tally().undecided());
        // A thread that comes late to its deadline does not blame the nodes: what they had answered by now counts.
        for node in undecided(self).iter() {
            if !self.rounds.is_decided(ticket) && self.links[node.index()].is_open() {
                self.read(node, now, bells);
            }
        }
        for node in undecided(self).iter() {
            if !self.rounds.is_decided(ticket) {
                let link = &self.links[node.index()];
                let is_known = link.is_closed() || link.is_duplicate();
                let fault = if is_known { link.fault() } else { link.timed_out(now) };
                self.rounds.vote(ticket, node, Vote::Fault(fault), bells);
            }
        }
    }

    fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    fn flush(&mut self, bells: &mut WaitSlots) {
        for node in std::mem::take(&mut self.unsent).iter() {
            self.write(node, self.queued_at, bells);
        }
    }

    fn watch(&mut self, alone: bool) -> Watch {
        self.changed = false;
        let mut watch = self.watch.take().unwrap_or_else(|| Watch::new(&self.waker, self.links.len()));
        for (link, interest) in self.links.iter().zip(&mut watch.streams) {
            if !link.is_interested_in(interest.as_ref()) {
                *interest = link.interest();
            }
        }
        self.watch_ears(&mut watch);
        if !(self.owing.is_empty() && self.settling.is_empty()) {
            watch.limit = watch.limit.min(self.pending_due().since(self.clock.now()));
        }
        // A wait for another client's lock is long, and a wait for releases is not urgent.
        watch.spin = self.spin.allowance(alone && !self.listening.has_sleepers() && self.settling.is_empty());
        watch
    }

    fn poll(watch: &mut Watch, patience: Duration) {
        watch.poll(patience.min(watch.limit));
    }

    fn absorb(&mut self, mut watch: Watch, bells: &mut WaitSlots) {
        let now = self.clock.now();
        if !watch.spin.is_zero() {
            self.spin.learn(watch.spun);
        }
        if watch.woken {
            self.waker.drain();
            for node in self.nodes() {
                if let Err(fault) = self.links[node.index()].resolved(now) {
                    self.lose(node, fault, now, bells);
                }
            }
        }
        let (readable, writable) = (watch.readable, watch.writable);
        for node in readable.union(writable).iter() {
            let interest = watch.streams[node.index()].as_ref();
            if !interest.is_some_and(|interest| self.links[node.index()].is_on(&interest.stream)) {
                continue;
            }
            if writable.contains(node) {
                match self.links[node.index()].advance(now) {
                    Ok(()) => self.write(node, now, bells),
                    Err(fault) => self.lose(node, fault, now, bells),
                }
            }
            if readable.contains(node) && self.links[node.index()].is_open() {
                self.read(node, now, bells);
            }
        }
        for node in self.nodes() {
            if self.links[node.index()].due(now) < Timestamp::NEVER {
                self.look(node, now, bells);
            }
        }
        self.absorb_ears(&mut watch, now, bells);
        self.watch = Some(watch);
        self.tend_pending(now, bells);
        self.ring_settled(now, bells);
        if std::mem::take(&mut self.lost) {
            for node in self.nodes() {
                self.forget_closed(node);
            }
        }
        self.settle_posts(now, bells);
    }

    fn interrupt(&mut self) {
        if std::mem::take(&mut self.changed) {
            self.waker.wake();
        }
    }

    fn has_releases_left(&self) -> bool {
        !self.owing.is_empty() || self.clogged.iter().any(|node| self.links[node.index()].has_unsent_release())
    }

    fn releases_due(&self, now: Timestamp) -> Option<Timestamp> {
        self.next_release(now)
    }

    fn await_releases(&mut self, now: Timestamp, bells: &mut WaitSlots) -> Ticket {
        self.await_settled(Settled::Sent, now, bells)
    }

    fn leave_releases(&mut self, ticket: Ticket) {
        self.leave_settling(ticket);
    }

    fn interrupt_releases(&mut self, bells: &mut WaitSlots) {
        for &(ticket, _) in &self.settling {
            self.rounds.ring(ticket, bells);
        }
        self.changed = true;
    }
}
