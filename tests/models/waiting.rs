//! Waiting for a message, model-checked: the library's own driver, rounds and wait registry, on
//! locks that a scheduler controls.
//!
//! Threads wait for a lock that another client holds, without any time limit: a message that is
//! lost leaves them asleep, which the scheduler reports as a deadlock. The lock is released node by
//! node, between any two steps of theirs, and each node tells the call that has an entry there;
//! other threads drive meanwhile, or none does; a wait is cancelled at any point. Which calls the
//! nodes tell is what `queue` is about.
//!
//! Faults that were planted in the library to see this test fail, and belong to it: no message kept
//! while no thread sleeps, no check of it before the sleep, a message that is discarded after the
//! attempt and not before.

use crate::algorithm::time::Timestamp;
use crate::engine::driver::Driver;
use crate::engine::interrupt::Interrupt;
use crate::engine::rounds::Purpose;
use crate::os::sync::{Mutex, lock};
use crate::os::waker::Waker;
#[cfg(miri)]
use crate::shuttle;
use crate::wire::{self, NODES, Nodes, Wire, begin_to_serve, end_serving};
use shuttle::rand::Rng;
use shuttle::sync::atomic::{AtomicBool, Ordering};
use std::collections::VecDeque;
use std::sync::Arc;

const LOCKS: usize = 3;
const QUORUM: usize = 2;

/// A lock that another client holds, and the call that waits for it.
struct Lock {
    keys: Mutex<Keys>,
    interrupt: Arc<Interrupt>,
    is_cancelled: AtomicBool,
}

/// What the nodes have under the key of a lock.
#[derive(Default)]
struct Keys {
    is_free: [bool; NODES],
    /// The call that has an entry there.
    entries: [Option<u64>; NODES],
}

impl Lock {
    fn new(wire: &Arc<Wire>) -> Arc<Lock> {
        Arc::new(Lock {
            keys: Mutex::new(Keys::default()),
            interrupt: Arc::new(Interrupt::new(&Arc::new(Waker::of(wire)))),
            is_cancelled: AtomicBool::new(false),
        })
    }

    /// Takes the lock if a quorum of nodes has it to give. The others store the call's entry.
    fn attempt(&self, relay: &Driver<Nodes>, call: u64) -> bool {
        relay.enter(|nodes, _| nodes.registry.look_into(call));
        // The nodes are asked one after the other.
        let mut granted = 0;
        for node in 0..NODES {
            shuttle::thread::yield_now();
            let mut keys = lock(&self.keys);
            keys.entries[node] = Some(call);
            granted += usize::from(keys.is_free[node]);
        }
        granted >= QUORUM
    }

    /// Subscribes, attempts and waits; true when it has the lock.
    fn wait(&self, relay: &Driver<Nodes>) -> bool {
        let call = relay.enter(|nodes, _| {
            if !nodes.registry.has_waiters() {
                nodes.subscribe();
            }
            nodes.registry.enter(&self.interrupt, 7).1
        });
        let won = loop {
            if self.attempt(relay, call) {
                break true;
            }
            if self.is_cancelled.load(Ordering::SeqCst) {
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

    /// Frees the lock node by node.
    fn release(&self, wire: &Wire) {
        for node in 0..NODES {
            let mut keys = lock(&self.keys);
            keys.is_free[node] = true;
            if let Some(call) = keys.entries[node] {
                wire.tell(node, call);
            }
            drop(keys);
            dawdle();
        }
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
    let relay = Driver::new(Nodes::on(&wire));
    let server = begin_to_serve(&wire);
    let begin_to_wait = |_| {
        let (held, relay) = (Lock::new(&wire), Arc::clone(&relay));
        let waited = Arc::clone(&held);
        let thread = shuttle::thread::spawn(move || waited.wait(&relay));
        (held, thread)
    };
    let mut waiting: VecDeque<_> = (0..locks).map(begin_to_wait).collect();
    if cancels && let Some((first, thread)) = waiting.pop_front() {
        dawdle();
        first.is_cancelled.store(true, Ordering::SeqCst);
        first.interrupt.set();
        assert!(!thread.join().unwrap());
    }
    for (held, thread) in waiting {
        dawdle();
        held.release(&wire);
        assert!(thread.join().unwrap());
    }
    relay
        .enter(|nodes, _| assert!(!nodes.registry.has_waiters() && !nodes.registry.has_sleepers()));
    end_serving(&wire, [server]);
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

fn schedules() -> usize {
    wire::schedules(if cfg!(debug_assertions) { 1000 } else { 10_000 })
}
