//! All links of one client and its rounds in flight: the world that waiting threads drive.
//!
//! Commands of all threads go to a node on its one link, in order; each reply is handed to the round it belongs to. A node
//! that cannot be asked votes with its fault at once, so that nobody waits for it. Nothing here waits: sockets are
//! written and read as far as they go, and [`relay`](super::relay) does the rest.

use super::link::{Interest, Link};
use super::relay::World;
use super::rounds::{Purpose, Rounds};
use crate::proto::command;
use crate::proto::fault::{Cause, Fault, Phase};
use crate::proto::lease::OwnerToken;
use crate::proto::node::{MAX_NODES, NodeId, NodeSet};
use crate::proto::session::{Abandoned, Event, Standing, Ticket};
use crate::proto::time::{Clock, Timestamp};
use crate::proto::vote::Vote;
use crate::waker::Waker;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;
use std::time::Duration;

/// Most releases owed to a node that is away; beyond that the oldest are left to expire.
const DEBT_LIMIT: usize = 65_536;

/// Where a release goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// To every node that can answer: the verdict is wanted.
    Everywhere,
    /// To the nodes that the `SET` may have reached, and no other: the undo of a lost attempt.
    Reached,
}

/// What a release needs to know of the attempt that it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// The attempt's token.
    pub(crate) token: OwnerToken,
    /// When the attempt began, read before its first byte was written.
    pub(crate) t0: Timestamp,
    /// The nodes where the key may have been set.
    pub(crate) reached: NodeSet,
}

/// The links and rounds of one client.
pub(super) struct Fleet {
    links: Vec<Link>,
    rounds: Rounds,
    clock: Arc<dyn Clock>,
    waker: Arc<Waker>,
    /// The command of the round that is being sent, kept for its memory.
    request: Vec<u8>,
    /// The nodes for which a command was queued and not written yet.
    unsent: NodeSet,
    /// A connection was opened, or bytes were left unsent, since the driver last asked what to wait for.
    changed: bool,
}

/// What the driver polls, and what it found.
#[derive(Default)]
pub(super) struct Watch {
    waker: Option<Arc<Waker>>,
    streams: Vec<(NodeId, Interest)>,
    ready: Vec<(usize, Ready)>,
    woken: bool,
}

struct Ready {
    readable: bool,
    writable: bool,
}

impl Fleet {
    pub(super) fn new(links: Vec<Link>, clock: Arc<dyn Clock>, waker: Arc<Waker>) -> Fleet {
        let rounds = Rounds::new(links.len());
        Fleet { links, rounds, clock, waker, request: Vec::new(), unsent: NodeSet::EMPTY, changed: false }
    }

    /// The rounds in flight.
    pub(super) fn rounds(&mut self) -> &mut Rounds {
        &mut self.rounds
    }

    /// Queues a `SET NX PX` for every node that may be asked. The time given back was read before the first byte is written.
    pub(super) fn acquire(
        &mut self,
        key: &[u8],
        token: &OwnerToken,
        ttl_millis: u64,
        decided: &mut Vec<Ticket>,
    ) -> (Ticket, Timestamp) {
        let t0 = self.clock.now();
        let ticket = self.rounds.open(Purpose::Acquire, key, token);
        let mut asked = NodeSet::EMPTY;
        for node in self.nodes() {
            match self.prepare_to_ask(node, t0, decided) {
                Ok(()) => {
                    asked.insert(node);
                }
                Err(fault) => {
                    self.rounds.vote(ticket, node, Vote::Fault(fault));
                }
            }
        }
        // When no quorum is left to ask, the others are spared a SET that would only have to be undone.
        if !self.rounds.is_decided(ticket) {
            self.request.clear();
            command::acquire(&mut self.request, key, token, ttl_millis);
            for node in asked.iter() {
                self.rounds.refer(ticket, node);
                self.links[node.index()].session.acquire(ticket, &self.request, t0);
            }
            self.unsent = self.unsent.union(asked);
        }
        (ticket, t0)
    }

    /// Queues a compare-and-delete for what an attempt may have set. To a node whose connection is lost it is owed, if
    /// anything can have reached it at all.
    pub(super) fn release(&mut self, key: &[u8], claim: &Claim, extent: Extent, decided: &mut Vec<Ticket>) -> Ticket {
        let Claim { token, t0, reached } = claim;
        let now = self.clock.now();
        let ticket = self.rounds.open(Purpose::Release, key, token);
        for node in self.nodes() {
            if reached.contains(node) {
                self.prepare_to_release(node, now, decided);
            }
            let link = &mut self.links[node.index()];
            let wanted = reached.contains(node) || (extent == Extent::Everywhere && link.is_responsive(now));
            if wanted && !link.is_closed() {
                self.rounds.refer(ticket, node);
                link.session.release(ticket, key, token, now);
                self.unsent.insert(node);
                continue;
            }
            let fault = link.fault();
            if wanted && link.wrote_since(*t0) {
                self.rounds.refer(ticket, node);
                self.owe(node, ticket);
            }
            self.rounds.vote(ticket, node, Vote::Fault(fault));
        }
        ticket
    }

    fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.links.len()).map(NodeId::new)
    }

    /// Sees to it that a `SET` can be queued for the node, or says why not.
    fn prepare_to_ask(&mut self, node: NodeId, now: Timestamp, decided: &mut Vec<Ticket>) -> Result<(), Fault> {
        self.look(node, now, decided);
        if let Some(fault) = self.links[node.index()].deserves_another_chance(now) {
            self.lose(node, fault, now, decided);
        }
        if self.links[node.index()].is_closed() {
            self.links[node.index()].may_open(now)?;
            self.open(node, now, decided)?;
        }
        self.links[node.index()].admit(now)
    }

    /// Sees to it that a release can be queued for the node, if that is possible at present.
    fn prepare_to_release(&mut self, node: NodeId, now: Timestamp, decided: &mut Vec<Ticket>) {
        self.look(node, now, decided);
        let link = &self.links[node.index()];
        if link.is_closed() && link.may_open(now).is_ok() {
            // What went wrong is the link's fault from now on, and the caller asks for that.
            let _ = self.open(node, now, decided);
        }
    }

    /// Takes in what happened to a connection while nobody looked, and gives up a hopeless one.
    fn look(&mut self, node: NodeId, now: Timestamp, decided: &mut Vec<Ticket>) {
        let was_open = self.links[node.index()].is_open();
        if let Err(fault) = self.links[node.index()].advance(now) {
            self.lose(node, fault, now, decided);
        }
        if self.links[node.index()].is_open() && !was_open {
            self.unsent.insert(node);
        }
        if self.links[node.index()].needs_look(now) {
            self.read(node, now, decided);
        }
        if let Some(fault) = self.links[node.index()].hopeless(now) {
            self.lose(node, fault, now, decided);
        }
    }

    /// Begins to connect, and queues what is owed.
    fn open(&mut self, node: NodeId, now: Timestamp, decided: &mut Vec<Ticket>) -> Result<(), Fault> {
        if let Err(fault) = self.links[node.index()].open(now) {
            self.lose(node, fault, now, decided);
            return Err(fault);
        }
        self.changed = true;
        let link = &mut self.links[node.index()];
        for ticket in std::mem::take(link.debts()) {
            if let Some(round) = self.rounds.round(ticket) {
                link.session.release(ticket, round.key(), round.token(), now);
            }
        }
        Ok(())
    }

    /// Gives a connection up: whoever waits for its replies gets the fault, and unanswered releases are owed.
    fn lose(&mut self, node: NodeId, fault: Fault, now: Timestamp, decided: &mut Vec<Ticket>) {
        // A server that refuses us may close next; the refusal says more.
        let fault = match self.links[node.index()].session.standing() {
            Standing::Rejected(refusal) => refusal,
            Standing::Greeting | Standing::Member => fault,
        };
        let abandoned: Vec<_> = self.links[node.index()].session.abandon().collect();
        self.links[node.index()].close(fault, now);
        for (ticket, request) in abandoned {
            if self.rounds.vote(ticket, node, Vote::Fault(fault)) {
                decided.push(ticket);
            }
            match request {
                Abandoned::Acquire => self.rounds.unrefer(ticket),
                Abandoned::Release => self.owe(node, ticket),
            }
        }
    }

    /// Keeps a release for the node's next connection. The round must be referred to for it.
    fn owe(&mut self, node: NodeId, ticket: Ticket) {
        let debts = self.links[node.index()].debts();
        debts.push_back(ticket);
        if debts.len() > DEBT_LIMIT
            && let Some(oldest) = debts.pop_front()
        {
            self.rounds.unrefer(oldest);
        }
    }

    /// Writes what a link's socket takes.
    fn write(&mut self, node: NodeId, now: Timestamp, decided: &mut Vec<Ticket>) {
        match self.links[node.index()].flush(now) {
            Ok(unsent) => self.changed |= unsent,
            Err(fault) => {
                // The server may have said why before it closed.
                self.read(node, now, decided);
                if self.links[node.index()].is_open() {
                    self.lose(node, fault, now, decided);
                }
            }
        }
    }

    /// Reads a link to the end, and hands out what came.
    fn read(&mut self, node: NodeId, now: Timestamp, decided: &mut Vec<Ticket>) {
        loop {
            let more = self.links[node.index()].read(now);
            if let Err(fault) = more.and_then(|more| self.hand_out(node, now, decided).map(|()| more)) {
                return self.lose(node, fault, now, decided);
            }
            if more != Ok(true) {
                break;
            }
        }
        if !self.links[node.index()].session.unsent().is_empty() {
            // A release is on its way again in another dialect. An error shows at the next read.
            self.changed |= self.links[node.index()].flush(now).unwrap_or(false);
        }
    }

    fn hand_out(&mut self, node: NodeId, now: Timestamp, decided: &mut Vec<Ticket>) -> Result<(), Fault> {
        while let Some(event) = self.links[node.index()].next_event(now)? {
            match event {
                Event::Answered(ticket, vote) => {
                    if self.rounds.vote(ticket, node, vote) {
                        decided.push(ticket);
                    }
                    self.rounds.unrefer(ticket);
                }
                Event::Greeted => self.refuse_second_vote(node, now),
                Event::Rejected(_) => {}
                Event::WrongDialect(unreleased) => {
                    if let Some(round) = self.rounds.round(unreleased.ticket()) {
                        self.links[node.index()].session.release_again(unreleased, round.key(), round.token(), now);
                    }
                }
            }
        }
        Ok(())
    }

    /// One server has one vote, however many URLs lead to it: the one it has answered on first (SPEC §7.3). Whoever comes
    /// second is refused, whatever its place in the list, because the first may have voted already.
    fn refuse_second_vote(&mut self, node: NodeId, now: Timestamp) {
        let Some(run_id) = self.links[node.index()].run_id(now) else { return };
        let is_twin = |&other: &NodeId| other != node && self.links[other.index()].run_id(now) == Some(run_id);
        if let Some(first) = self.nodes().find(is_twin) {
            self.links[node.index()].reject(Fault::new(Phase::Handshake, Cause::Duplicate(first)), now);
        }
    }
}

impl World for Fleet {
    type Ticket = Ticket;
    type Watch = Watch;

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn is_decided(&self, ticket: Ticket) -> bool {
        self.rounds.is_decided(ticket)
    }

    fn expire(&mut self, ticket: Ticket, decided: &mut Vec<Ticket>) {
        let now = self.clock.now();
        let undecided =
            |fleet: &Fleet| fleet.rounds.round(ticket).map_or(NodeSet::EMPTY, |round| round.tally().undecided());
        // A thread that comes late to its deadline does not blame the nodes: what they had answered by now counts.
        for node in undecided(self).iter() {
            if !self.rounds.is_decided(ticket) && self.links[node.index()].is_open() {
                self.read(node, now, decided);
            }
        }
        for node in undecided(self).iter() {
            if !self.rounds.is_decided(ticket) {
                let fault = Fault::new(self.links[node.index()].phase(), Cause::TimedOut);
                self.rounds.vote(ticket, node, Vote::Fault(fault));
            }
        }
    }

    fn flush(&mut self, decided: &mut Vec<Ticket>) {
        if self.unsent.is_empty() {
            return;
        }
        let now = self.clock.now();
        for node in std::mem::take(&mut self.unsent).iter() {
            self.write(node, now, decided);
        }
    }

    fn watch(&mut self, watch: &mut Watch) {
        self.changed = false;
        watch.waker.get_or_insert_with(|| Arc::clone(&self.waker));
        watch.streams.clear();
        for node in self.nodes() {
            if let Some(interest) = self.links[node.index()].interest() {
                watch.streams.push((node, interest));
            }
        }
    }

    fn poll(watch: &mut Watch, patience: Duration) {
        watch.ready.clear();
        watch.woken = false;
        let Some(waker) = &watch.waker else { return };
        // One for the waker, one for each node, on the stack.
        let woken = PollFd::new(waker.source(), PollFlags::IN);
        let mut descriptors: [PollFd<'_>; MAX_NODES + 1] = std::array::from_fn(|_| woken.clone());
        for (descriptor, (_, interest)) in descriptors[1..].iter_mut().zip(&watch.streams) {
            let flags = if interest.writable { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            *descriptor = PollFd::new(interest.stream.source(), flags);
        }
        let descriptors = &mut descriptors[..=watch.streams.len()];
        // Errors: a signal, or too little memory. Either way nothing is ready, and the caller looks at its deadline.
        if poll(descriptors, Timespec::try_from(patience).ok().as_ref()).is_err() {
            return;
        }
        watch.woken = !descriptors[0].revents().is_empty();
        for (index, descriptor) in descriptors[1..].iter().enumerate() {
            let found = descriptor.revents();
            let broken = found.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
            let (readable, writable) =
                (broken || found.contains(PollFlags::IN), broken || found.contains(PollFlags::OUT));
            if readable || writable {
                watch.ready.push((index, Ready { readable, writable }));
            }
        }
    }

    fn absorb(&mut self, watch: &mut Watch, decided: &mut Vec<Ticket>) {
        let now = self.clock.now();
        if watch.woken {
            self.waker.drain();
            for node in self.nodes() {
                if let Err(fault) = self.links[node.index()].resolved() {
                    self.lose(node, fault, now, decided);
                }
            }
        }
        for (index, ready) in watch.ready.drain(..) {
            let (node, interest) = &watch.streams[index];
            if !self.links[node.index()].is_on(&interest.stream) {
                continue;
            }
            if ready.writable {
                match self.links[node.index()].writable(now) {
                    Ok(()) => self.write(*node, now, decided),
                    Err(fault) => self.lose(*node, fault, now, decided),
                }
            }
            if ready.readable {
                self.read(*node, now, decided);
            }
        }
        // A stream that was closed meanwhile is kept open by this list alone.
        watch.streams.clear();
    }

    fn interrupt(&mut self) {
        if std::mem::take(&mut self.changed) {
            self.waker.wake();
        }
    }
}
