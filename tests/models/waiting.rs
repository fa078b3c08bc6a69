//! Waiting for a message, model-checked: the library's own driver, rounds and wait registry, on
//! locks that a scheduler controls.
//!
//! The files are compiled here a second time, as in `relay.rs`. Threads wait for a lock that
//! another client holds, without any time limit: a message that is lost leaves them asleep, which
//! the scheduler reports as a deadlock. The lock is released node by node, between any two steps of
//! theirs, and each node tells the call that has an entry there; other threads drive meanwhile, or
//! none does; a wait is cancelled at any point. Which calls the nodes tell is what `queue` is
//! about.
//!
//! Faults that were planted in the library to see this test fail, and belong to it: no message kept
//! while no thread sleeps, no check of it before the sleep, a message that is discarded after the
//! attempt and not before.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    dead_code,
    unused_imports,
    reason = "a test, and it uses a part of what it includes"
)]

use quorumlock::{algorithm, fault, protocol};

#[path = "../../src/engine/mod.rs"]
mod engine;
#[path = "../../src/events/mod.rs"]
mod events;
#[path = "os/mod.rs"]
mod os;
#[cfg(miri)]
mod shuttle;

use algorithm::node::NodeId;
use algorithm::queue::Message;
use algorithm::time::Timestamp;
use engine::driver::{Driver, Reactor, WaitSlot};
use engine::interrupt::Interrupt;
use engine::rounds::{Purpose, Rounds};
use engine::wait_registry::{Note, Reaction, WaitRegistry};
use os::sync::{Condvar, Mutex, lock};
use os::waker::Waker;
use protocol::session::Ticket;
use shuttle::rand::Rng;
use shuttle::sync::atomic::{AtomicBool, Ordering};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

const NODES: usize = 3;
const LOCKS: usize = 3;
const QUORUM: usize = 2;

/// The nodes, what they have been asked, what they have replied, and the driver's wake-up.
#[derive(Default)]
pub(crate) struct Wire {
    pub(crate) state: Mutex<WireState>,
    to_nodes: Condvar,
    pub(crate) to_driver: Condvar,
}

#[derive(Default)]
pub(crate) struct WireState {
    /// By lock and node.
    is_free: [[bool; NODES]; LOCKS],
    /// The call that has an entry there.
    entries: [[Option<u64>; NODES]; LOCKS],
    is_subscribed: [bool; NODES],
    asked: VecDeque<usize>,
    said: VecDeque<Said>,
    pub(crate) woken: bool,
    closed: bool,
}

enum Said {
    Confirmed(usize),
    Turn(u64, usize),
}

struct Nodes {
    wire: Arc<Wire>,
    rounds: Rounds,
    registry: WaitRegistry,
    changed: bool,
}

struct Watch {
    wire: Arc<Wire>,
    woken: bool,
}

impl Reactor for Nodes {
    type Ticket = Ticket;
    // All waits here are for releases.
    type Submission = Infallible;
    type Verdict = Infallible;
    type Posting = Infallible;
    type Watch = Watch;

    fn now(&self) -> Timestamp {
        Timestamp::ORIGIN
    }

    fn begin(&mut self, submission: &Infallible, _now: Timestamp) -> (Ticket, bool) {
        match *submission {}
    }

    fn begin_posted(&mut self, posting: Infallible, _now: Timestamp) {
        match posting {}
    }

    fn conclude(&mut self, _ticket: Ticket) -> Infallible {
        unreachable!("nothing is submitted")
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

    fn flush(&mut self) {}

    fn watch(&mut self, _alone: bool, _now: Timestamp) -> Watch {
        self.changed = false;
        Watch {
            wire: Arc::clone(&self.wire),
            woken: false,
        }
    }

    fn poll(watch: &mut Watch, patience: Duration) {
        let wire = Arc::clone(&watch.wire);
        let mut state = lock(&wire.state);
        while !patience.is_zero() && !state.woken && state.said.is_empty() {
            state = wire.to_driver.wait(state).unwrap();
        }
        watch.woken = std::mem::take(&mut state.woken);
    }

    fn absorb(&mut self, watch: Watch, _now: Timestamp) {
        if watch.woken {
            self.registry
                .interrupted()
                .for_each(|ticket| self.rounds.end_wait(ticket));
        }
        let said = std::mem::take(&mut lock(&self.wire.state).said);
        for said in said {
            match said {
                Said::Confirmed(node) => {
                    let sleeping = self
                        .registry
                        .on_confirmed(NodeId::new(node), Timestamp::ORIGIN);
                    sleeping
                        .into_iter()
                        .for_each(|ticket| self.rounds.end_wait(ticket));
                }
                Said::Turn(call, node) => {
                    let note = Note {
                        node: NodeId::new(node),
                        message: Message::Turn(None),
                        at: Timestamp::ORIGIN,
                    };
                    match self.registry.on_message(call, note) {
                        Reaction::Wake(ticket) => self.rounds.end_wait(ticket),
                        Reaction::None | Reaction::Leave => {}
                    }
                }
            }
        }
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

    // Nothing is left unsent here: `relay.rs` is about that.
    fn has_work_left(&self) -> bool {
        false
    }

    fn work_due(&self, _now: Timestamp) -> Option<Timestamp> {
        None
    }

    fn await_work(&mut self, _now: Timestamp) -> Ticket {
        unreachable!("no release is left")
    }

    fn leave_work(&mut self, _ticket: Ticket) {}

    fn interrupt_work(&mut self) {}
}

/// Takes the lock if a quorum of nodes has it to give. The others store the call's entry.
fn attempt(relay: &Driver<Nodes>, number: usize, call: u64) -> bool {
    relay.enter(|nodes, _| nodes.registry.look_into(call));
    // The nodes are asked one after the other.
    let mut granted = 0;
    for node in 0..NODES {
        shuttle::thread::yield_now();
        let wire = relay.enter(|nodes, _| Arc::clone(&nodes.wire));
        let mut state = lock(&wire.state);
        state.entries[number][node] = Some(call);
        granted += usize::from(state.is_free[number][node]);
    }
    granted >= QUORUM
}

/// Subscribes, attempts and waits; true when it has the lock.
fn wait(
    relay: &Driver<Nodes>,
    wire: &Arc<Wire>,
    number: usize,
    interrupt: &Arc<Interrupt>,
    is_cancelled: &AtomicBool,
) -> bool {
    let call = relay.enter(|nodes, _| {
        if !nodes.registry.has_waiters() {
            lock(&nodes.wire.state).asked.extend(0..NODES);
            nodes.changed = true;
        }
        nodes.registry.enter(interrupt, 7).1
    });
    wire.to_nodes.notify_all();
    let won = loop {
        if attempt(relay, number, call) {
            break true;
        }
        if is_cancelled.load(Ordering::SeqCst) {
            break false;
        }
        let wakening = relay.run(
            |nodes, _| {
                let ticket = nodes.rounds.open(Purpose::Wait);
                if !nodes.registry.sleep(call, ticket) {
                    nodes.rounds.end_wait(ticket);
                }
                (ticket, Timestamp::NEVER)
            },
            |nodes, ticket| {
                nodes.rounds.unrefer(ticket);
                nodes.registry.wake(call)
            },
        );
        assert!(wakening.is_any(), "nothing ended the wait");
    };
    relay.enter(|nodes, _| nodes.registry.leave(call));
    won
}

/// Answers subscriptions until the wire is closed.
fn serve(wire: &Wire) {
    let mut state = lock(&wire.state);
    loop {
        if let Some(node) = state.asked.pop_front() {
            state.is_subscribed[node] = true;
            state.said.push_back(Said::Confirmed(node));
            wire.to_driver.notify_all();
            drop(state);
            shuttle::thread::yield_now();
            state = lock(&wire.state);
        } else if state.closed {
            return;
        } else {
            state = wire.to_nodes.wait(state).unwrap();
        }
    }
}

/// Frees a lock node by node.
fn release(wire: &Wire, number: usize) {
    for node in 0..NODES {
        {
            let mut state = lock(&wire.state);
            state.is_free[number][node] = true;
            if let Some(call) = state.entries[number][node].filter(|_| state.is_subscribed[node]) {
                state.said.push_back(Said::Turn(call, node));
                wire.to_driver.notify_all();
            }
        }
        dawdle();
    }
}

/// Lets others go on for a while.
fn dawdle() {
    for _ in 0..shuttle::rand::thread_rng().gen_range(0..60) {
        shuttle::thread::yield_now();
    }
}

/// A program some of whose threads wait for a lock each that others hold; with `cancels`, the first
/// of them waits in vain.
fn scene(locks: usize, cancels: bool) {
    let wire = Arc::new(Wire::default());
    let world = Nodes {
        wire: Arc::clone(&wire),
        rounds: Rounds::new(NODES, None),
        registry: WaitRegistry::new(NODES, true),
        changed: false,
    };
    let relay = Driver::new(world);
    let server = {
        let wire = Arc::clone(&wire);
        shuttle::thread::spawn(move || serve(&wire))
    };
    let is_cancelled: Vec<_> = (0..locks)
        .map(|_| Arc::new(AtomicBool::new(false)))
        .collect();
    let alarms: Vec<_> = (0..locks)
        .map(|_| Arc::new(Interrupt::new(&Arc::new(Waker::of(&wire)))))
        .collect();
    let waiting: Vec<_> = alarms
        .iter()
        .enumerate()
        .map(|(number, interrupt)| {
            let relay = Arc::clone(&relay);
            let wire = Arc::clone(&wire);
            let interrupt = Arc::clone(interrupt);
            let is_cancelled = Arc::clone(&is_cancelled[number]);
            shuttle::thread::spawn(move || wait(&relay, &wire, number, &interrupt, &is_cancelled))
        })
        .collect();
    let mut waiting = waiting.into_iter().enumerate();
    if cancels && let Some((_, first)) = waiting.next() {
        dawdle();
        is_cancelled[0].store(true, Ordering::SeqCst);
        alarms[0].set();
        assert!(!first.join().unwrap());
    }
    for (number, thread) in waiting {
        dawdle();
        release(&wire, number);
        assert!(thread.join().unwrap());
    }
    relay
        .enter(|nodes, _| assert!(!nodes.registry.has_waiters() && !nodes.registry.has_sleepers()));
    lock(&wire.state).closed = true;
    wire.to_nodes.notify_all();
    server.join().unwrap();
}

#[test]
fn no_release_is_slept_through() {
    shuttle::check_random(|| scene(1, false), schedules());
    shuttle::check_pct(|| scene(1, false), schedules(), 4);
}

#[test]
fn no_release_is_slept_through_by_several() {
    shuttle::check_random(|| scene(LOCKS, false), schedules());
    shuttle::check_pct(|| scene(LOCKS, false), schedules(), 3);
}

#[test]
fn no_cancellation_is_slept_through() {
    shuttle::check_random(|| scene(1, true), schedules());
    shuttle::check_random(|| scene(LOCKS, true), schedules());
    shuttle::check_pct(|| scene(LOCKS, true), schedules(), 3);
}

/// How many orders of steps each scene is tried in.
fn schedules() -> usize {
    std::env::var("QUORUMLOCK_TEST_SCHEDULES").map_or(SCHEDULES, |number| number.parse().unwrap())
}

const SCHEDULES: usize = if cfg!(debug_assertions) { 1000 } else { 10_000 };
