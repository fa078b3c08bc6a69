//! Nodes that answer the library's driver, and the wire to them, on locks that a scheduler
//! controls.

use crate::algorithm::node::{NodeId, NodeSet};
use crate::algorithm::queue::Message;
use crate::algorithm::time::Timestamp;
use crate::algorithm::vote::Vote;
use crate::engine::driver::{Reactor, WaitSlot};
use crate::engine::rounds::{Attempt, Purpose, RoundResult, Rounds};
use crate::engine::wait_registry::{Note, Reaction, WaitRegistry};
use crate::os::sync::{Condvar, Mutex, MutexGuard, lock, passed};
use crate::protocol::session::Ticket;
#[cfg(miri)]
use crate::shuttle;
use shuttle::thread::JoinHandle;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) const NODES: usize = 3;
/// Most threads, and most rounds of each.
pub(crate) const THREADS: usize = 4;
pub(crate) const ROUNDS: u8 = 4;
/// How often a poll with a time limit looks before the time is up.
const LOOKS: usize = 4;
/// A key whose requests the wire does not take at once: it does when a thread drives.
pub(crate) const STUCK_KEY: u8 = 252;
/// A key that the nodes answer only when all other threads are done: the thread that waits for it
/// drives for all of them.
pub(crate) const PATIENT_KEY: u8 = 254;

/// The wire: requests on their way to the nodes, replies on their way back, and the driver's
/// wake-up.
#[derive(Default)]
pub(crate) struct Wire {
    pub(crate) state: Mutex<WireState>,
    pub(crate) to_nodes: Condvar,
    pub(crate) to_driver: Condvar,
}

#[derive(Default)]
pub(crate) struct WireState {
    requests: VecDeque<(Line, Request)>,
    held_back: VecDeque<(Line, Request)>,
    others_are_done: bool,
    replies: VecDeque<(Line, Reply)>,
    pub(crate) woken: bool,
    pub(crate) closed: bool,
    /// Requests for the stuck key that were sent.
    pub(crate) stuck_sent: usize,
    /// The next poll that waits does not come back before it is let go, when it begins or when it
    /// has found something.
    pub(crate) stalls: Option<Stall>,
    pub(crate) is_let_go: bool,
    is_subscribed: [bool; NODES],
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Stall {
    Before,
    Behind,
}

/// One of the connections that were made to a node, one after the other.
#[derive(Clone, Copy, Default)]
struct Line {
    node: usize,
    number: usize,
}

#[derive(Clone, Copy)]
enum Request {
    /// A round that the node grants, or refuses.
    Round(Ticket, bool),
    Subscription,
}

#[derive(Clone, Copy)]
enum Reply {
    Confirmed,
    /// A message for this call.
    Turn(u64),
    Vote(Ticket, Vote),
}

impl WireState {
    /// Whether the poll that asks stalls here.
    fn takes_stall(&mut self, stall: Stall) -> bool {
        let takes = self.stalls == Some(stall);
        self.stalls = self.stalls.filter(|_| !takes);
        takes
    }

    /// The nodes answer what they have held back until now.
    pub(crate) fn answer_patient(&mut self) {
        self.others_are_done = true;
        let mut held_back = std::mem::take(&mut self.held_back);
        self.requests.append(&mut held_back);
    }
}

impl Wire {
    /// A node tells a call that it has its turn, if the program has subscribed there.
    pub(crate) fn tell(&self, node: usize, call: u64) {
        let mut state = lock(&self.state);
        if state.is_subscribed[node] {
            let line = Line { node, number: 0 };
            state.replies.push_back((line, Reply::Turn(call)));
            self.to_driver.notify_all();
        }
    }

    /// Stays in a poll until it is let go.
    fn stall<'a>(&'a self, mut state: MutexGuard<'a, WireState>) -> MutexGuard<'a, WireState> {
        while !state.is_let_go {
            state = self.to_driver.wait(state).unwrap();
        }
        state
    }

    /// Answers requests one by one until the wire is closed; two such threads let replies of
    /// different nodes overtake.
    fn serve(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some((line, request)) = state.requests.pop_front() {
                let reply = match request {
                    Request::Round(ticket, true) => Reply::Vote(ticket, Vote::Granted),
                    Request::Round(ticket, false) => Reply::Vote(ticket, Vote::Refused),
                    Request::Subscription => Reply::Confirmed,
                };
                state.is_subscribed[line.node] |= matches!(request, Request::Subscription);
                state.replies.push_back((line, reply));
                self.to_driver.notify_all();
                drop(state);
                shuttle::thread::yield_now();
                state = lock(&self.state);
            } else if state.closed {
                return;
            } else {
                state = self.to_nodes.wait(state).unwrap();
            }
        }
    }
}

pub(crate) fn begin_to_serve(wire: &Arc<Wire>) -> JoinHandle<()> {
    let wire = Arc::clone(wire);
    shuttle::thread::spawn(move || wire.serve())
}

/// Closes the wire, and waits for the threads that answer.
pub(crate) fn end_serving(wire: &Wire, servers: impl IntoIterator<Item = JoinHandle<()>>) {
    lock(&wire.state).closed = true;
    wire.to_nodes.notify_all();
    join(servers);
}

pub(crate) fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// How many orders of steps each scene is tried in, unless the environment names a number.
pub(crate) fn schedules(default: usize) -> usize {
    std::env::var("QUORUMLOCK_TEST_SCHEDULES").map_or(default, |number| number.parse().unwrap())
}

/// A world of nodes that grant keys whose first byte is even and refuse the others.
pub(crate) struct Nodes {
    pub(crate) wire: Arc<Wire>,
    pub(crate) rounds: Rounds,
    pub(crate) registry: WaitRegistry,
    /// Each node's present connection. A poll that began before it was made does not see what comes
    /// on it.
    lines: [usize; NODES],
    /// Requests that were begun and not sent.
    unsent: Vec<(u8, Line, Ticket)>,
    /// Requests that the wire did not take.
    stuck: Vec<(Line, Request)>,
    /// Waits for those.
    settling: Vec<Ticket>,
    changed: bool,
    /// How many threads poll.
    polling: usize,
    /// In microseconds. Whenever a thread looks, some time has passed.
    time: Arc<AtomicUsize>,
    /// The latest key of each thread. Keys of one thread are begun in their order.
    latest: [Option<u8>; THREADS],
    /// Whether the last poll was told that one thread is alone with the client.
    pub(crate) is_alone: bool,
    /// How often something was sent.
    pub(crate) flushes: usize,
}

pub(crate) struct Watch {
    wire: Arc<Wire>,
    lines: [usize; NODES],
    is_writable: bool,
    is_woken: bool,
    /// The nodes' deadline: a wait in vain takes it on.
    time: Arc<AtomicUsize>,
}

impl Watch {
    fn sees(&self, line: Line) -> bool {
        line.number <= self.lines[line.node]
    }
}

impl Reactor for Nodes {
    type Ticket = Ticket;
    /// A key.
    type Submission = u8;
    type Verdict = RoundResult;
    type Posting = u8;
    type Watch = Watch;

    fn now(&self) -> Timestamp {
        let micros = self.time.fetch_add(5, Ordering::SeqCst);
        Timestamp::ORIGIN.after(Duration::from_micros(micros as u64) + passed())
    }

    fn begin(&mut self, key: &u8, _now: Timestamp) -> (Ticket, bool) {
        (self.send(*key), false)
    }

    fn begin_posted(&mut self, key: u8, _now: Timestamp) {
        let ticket = self.send(key);
        self.rounds.unrefer(ticket);
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

    fn expire(&mut self, _ticket: Ticket, _now: Timestamp) {}

    fn flush(&mut self) {
        let mut state = lock(&self.wire.state);
        self.flushes += usize::from(!self.unsent.is_empty());
        for (key, line, ticket) in self.unsent.drain(..) {
            let request = (line, Request::Round(ticket, key.is_multiple_of(2)));
            if key == STUCK_KEY {
                self.stuck.push(request);
                self.changed = true;
            } else if key == PATIENT_KEY && !state.others_are_done {
                state.held_back.push_back(request);
            } else {
                state.requests.push_back(request);
            }
        }
        self.wire.to_nodes.notify_all();
    }

    fn watch(&mut self, alone: bool, _now: Timestamp) -> Watch {
        self.is_alone = alone;
        self.changed = self.polling > 0;
        self.polling += 1;
        let is_writable = !self.stuck.is_empty();
        let wire = Arc::clone(&self.wire);
        let time = Arc::clone(&self.time);
        Watch {
            wire,
            lines: self.lines,
            is_writable,
            is_woken: false,
            time,
        }
    }

    fn poll(watch: &mut Watch, timeout: Duration) {
        let wire = Arc::clone(&watch.wire);
        let mut state = lock(&wire.state);
        // A thread that only looks does not stall.
        let waits = !timeout.is_zero();
        if waits && state.takes_stall(Stall::Before) {
            state = wire.stall(state);
        }
        let mut looks = 0;
        while !watch.is_writable
            && !state.woken
            && !state.replies.iter().any(|&(line, ..)| watch.sees(line))
        {
            // A hold comes to its end at any time; a deadline never does.
            if timeout >= Duration::from_secs(1) {
                state = wire.to_driver.wait(state).unwrap();
            } else if looks == LOOKS {
                watch
                    .time
                    .fetch_add(timeout.as_micros() as usize, Ordering::SeqCst);
                return;
            } else {
                looks += 1;
                drop(state);
                shuttle::thread::yield_now();
                state = lock(&wire.state);
            }
        }
        watch.is_woken = std::mem::take(&mut state.woken);
        if waits && state.takes_stall(Stall::Behind) {
            drop(wire.stall(state));
        }
    }

    fn absorb(&mut self, watch: Watch, _now: Timestamp) {
        self.polling -= 1;
        // What it was woken for may be for another poll.
        self.changed |= watch.is_woken;
        if watch.is_writable {
            let mut state = lock(&self.wire.state);
            state.stuck_sent += self.stuck.len();
            state.requests.extend(self.stuck.drain(..));
            drop(state);
            self.wire.to_nodes.notify_all();
            self.wire.to_driver.notify_all();
            for ticket in self.settling.drain(..) {
                self.rounds.end_wait(ticket);
            }
        }
        if watch.is_woken {
            self.registry
                .interrupted()
                .for_each(|ticket| self.rounds.end_wait(ticket));
        }
        let mut replies = std::mem::take(&mut lock(&self.wire.state).replies);
        replies.retain(|&(line, reply)| {
            if !watch.sees(line) {
                return true;
            }
            self.receive(NodeId::new(line.node), reply);
            false
        });
        lock(&self.wire.state).replies.extend(replies);
    }

    fn interrupt(&mut self) {
        if std::mem::take(&mut self.changed) {
            lock(&self.wire.state).woken = true;
            self.wire.to_driver.notify_all();
        }
    }

    fn end_polls(&mut self) {
        self.changed = true;
        self.interrupt();
    }

    fn record_solitary_wait(&mut self, _time: Duration) {}

    fn has_work_left(&self) -> bool {
        !self.stuck.is_empty()
    }

    fn work_due(&self, now: Timestamp) -> Option<Timestamp> {
        self.has_work_left().then_some(now)
    }

    fn await_work(&mut self, _now: Timestamp) -> Ticket {
        let ticket = self.rounds.open(Purpose::Wait);
        self.settling.push(ticket);
        if self.stuck.is_empty() {
            self.rounds.end_wait(ticket);
        }
        ticket
    }

    fn leave_work(&mut self, ticket: Ticket) {
        self.settling.retain(|&other| other != ticket);
        self.rounds.unrefer(ticket);
    }

    fn interrupt_work(&mut self) {
        for &ticket in &self.settling {
            self.rounds.end_wait(ticket);
        }
        self.changed = true;
    }
}

impl Nodes {
    /// Nodes on a wire, and nothing begun.
    pub(crate) fn on(wire: &Arc<Wire>) -> Nodes {
        Nodes {
            wire: Arc::clone(wire),
            rounds: Rounds::new(NODES, None),
            registry: WaitRegistry::new(NODES, true),
            lines: [0; NODES],
            unsent: Vec::new(),
            stuck: Vec::new(),
            settling: Vec::new(),
            changed: false,
            polling: 0,
            time: Arc::default(),
            latest: [None; THREADS],
            is_alone: false,
            flushes: 0,
        }
    }

    /// Whether all that was begun was sent.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.unsent.is_empty() && self.stuck.is_empty() && self.settling.is_empty()
    }

    /// Asks each node to tell the program's calls.
    pub(crate) fn subscribe(&mut self) {
        let lines = (0..NODES).map(|node| Line { node, number: 0 });
        let requests = lines.map(|line| (line, Request::Subscription));
        lock(&self.wire.state).requests.extend(requests);
        self.wire.to_nodes.notify_all();
        self.changed = true;
    }

    fn receive(&mut self, node: NodeId, reply: Reply) {
        let at = Timestamp::ORIGIN;
        match reply {
            Reply::Confirmed => {
                for ticket in self.registry.on_confirmed(node, at) {
                    self.rounds.end_wait(ticket);
                }
            }
            Reply::Turn(call) => {
                let message = Message::Turn(None);
                let note = Note { node, message, at };
                if let Reaction::Wake(ticket) = self.registry.on_message(call, note) {
                    self.rounds.end_wait(ticket);
                }
            }
            Reply::Vote(ticket, vote) => self.rounds.count(ticket, node, &vote),
        }
    }

    pub(crate) fn send(&mut self, key: u8) -> Ticket {
        if let Some(latest) = self.latest.get_mut(usize::from(key / ROUNDS)) {
            assert!(
                latest.is_none_or(|latest| latest < key),
                "key {key} was overtaken by {latest:?}"
            );
            *latest = Some(key);
        }
        let ticket = self.rounds.open(Purpose::Acquire(Attempt::default()));
        if key.is_multiple_of(3) {
            // This round finds every connection lost, and makes it anew.
            for number in &mut self.lines {
                *number += 1;
            }
            self.changed = true;
        }
        self.rounds.refer(ticket, NodeSet::first(NODES));
        for (node, &number) in self.lines.iter().enumerate() {
            self.unsent.push((key, Line { node, number }, ticket));
        }
        ticket
    }
}
