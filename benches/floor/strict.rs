//! Strict rounds: the least that shares one connection set among threads and returns each result to
//! its own thread.
//!
//! Threads submit bytes under a lock that no system call happens under. One of them leads: it takes
//! all that was submitted as a batch, writes once to each node, and reads until a quorum has
//! decided every request of the batch. Then it stores each verdict in its thread's atomic and wakes
//! that thread, which takes no lock on its way out. The next leader is the first of those whose
//! requests wait for the next batch. A batch never overlaps another one.
//!
//! As for the [floor](crate::floor), bytes are prebuilt, and there is no clock, no deadline and no
//! retry.

use crate::comparison::{Pair, timed};
use crate::floor::{self, Node};
use std::mem;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};

/// Unanswered requests with which a node is left out: a dozen batches of many threads.
const FAR_BEHIND: u64 = 1024;

// What a slot tells the thread that waits on it.
const PENDING: u8 = 0;
const LEAD: u8 = 1;
const REFUSED: u8 = 2;
const GRANTED: u8 = 3;

/// One thread's lock on the shared connections.
pub(crate) struct Strict {
    rounds: Arc<Rounds>,
    slot: Arc<AtomicU8>,
    take: Vec<u8>,
    release: Vec<u8>,
}

/// What the threads share.
struct Rounds {
    submitted: Mutex<Submitted>,
    /// Only the leader takes this lock.
    exchange: Mutex<Exchange>,
}

/// What waits for the next batch.
#[derive(Default)]
struct Submitted {
    batch: Batch,
    has_leader: bool,
}

/// Requests, and the threads that wait for their verdicts, in the same order.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    waiting: Vec<Waiting>,
}

struct Waiting {
    slot: Arc<AtomicU8>,
    thread: Thread,
}

struct Exchange {
    nodes: Vec<Node>,
    batch: Batch,
    /// Of each request of the batch, the nodes that consented.
    consents: Vec<usize>,
}

impl Strict {
    /// Connects once, for so many threads with a resource each.
    pub(crate) fn connect(addresses: &[SocketAddr], threads: usize) -> Vec<Strict> {
        let exchange = Exchange {
            nodes: Node::connect(addresses),
            batch: Batch::default(),
            consents: Vec::new(),
        };
        let rounds = Arc::new(Rounds {
            submitted: Mutex::default(),
            exchange: Mutex::new(exchange),
        });
        let one = |thread| {
            let (take, release) = floor::requests(&format!("strict/{thread}"), 0xdd);
            Strict {
                rounds: Arc::clone(&rounds),
                slot: Arc::default(),
                take,
                release,
            }
        };
        (0..threads).map(one).collect()
    }

    /// Takes and releases the lock.
    pub(crate) fn pair(&mut self) -> Pair {
        timed(
            || {
                assert!(
                    self.rounds.ask(&self.take, &self.slot),
                    "no other client has this resource"
                )
            },
            |()| {
                assert!(
                    self.rounds.ask(&self.release, &self.slot),
                    "no other client has this token"
                )
            },
        )
    }
}

impl Rounds {
    /// Submits a request, and waits for its verdict or leads. True when a quorum consents.
    fn ask(&self, request: &[u8], slot: &Arc<AtomicU8>) -> bool {
        slot.store(PENDING, Ordering::Relaxed);
        let waiting = Waiting {
            slot: Arc::clone(slot),
            thread: thread::current(),
        };
        let mut submitted = self.submitted.lock().unwrap();
        submitted.batch.bytes.extend_from_slice(request);
        submitted.batch.waiting.push(waiting);
        let leads = !mem::replace(&mut submitted.has_leader, true);
        drop(submitted);
        if leads {
            self.lead();
        }
        loop {
            match slot.load(Ordering::Acquire) {
                PENDING => thread::park(),
                LEAD => {
                    slot.store(PENDING, Ordering::Relaxed);
                    self.lead();
                }
                verdict => return verdict == GRANTED,
            }
        }
    }

    /// Does one round, in which the leader's own request is, and appoints the next leader.
    fn lead(&self) {
        let mut exchange = self.exchange.lock().unwrap();
        mem::swap(
            &mut exchange.batch,
            &mut self.submitted.lock().unwrap().batch,
        );
        exchange.run();
        exchange.answer();
        drop(exchange);
        // After the others were woken: those that go on at once are part of the next batch.
        let mut submitted = self.submitted.lock().unwrap();
        let next = submitted
            .batch
            .waiting
            .first()
            .map(|next| (Arc::clone(&next.slot), next.thread.clone()));
        submitted.has_leader = next.is_some();
        drop(submitted);
        if let Some((slot, thread)) = next {
            slot.store(LEAD, Ordering::Release);
            thread.unpark();
        }
    }
}

impl Exchange {
    fn run(&mut self) {
        let requests = self.batch.waiting.len();
        self.consents.clear();
        self.consents.resize(requests, 0);
        for node in &mut self.nodes {
            node.send(&self.batch.bytes, requests as u64, FAR_BEHIND);
        }
        let quorum = self.nodes.len() / 2 + 1;
        let is_waiting = |node: &Node| node.asked && node.is_waiting();
        while self.consents.iter().any(|&consents| consents < quorum)
            && self.nodes.iter().any(is_waiting)
        {
            if !self.receive() {
                return;
            }
        }
    }

    /// Waits until one of the nodes that have not answered everything is ready, and receives. False
    /// when nothing came for a long time.
    fn receive(&mut self) -> bool {
        let Some(ready) = floor::ready(&self.nodes, |node| {
            node.is_waiting().then_some(&node.stream)
        }) else {
            return false;
        };
        for (node, _) in self.nodes.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
            let sent_before = node.sent_before;
            let asked = node.asked;
            let consents = &mut self.consents;
            // Consents count among the answers to the requests of this batch.
            node.receive(|answers, bytes| {
                for part in bytes.split_inclusive(|&byte| byte == b'\n') {
                    let before = answers.count;
                    answers.feed(part);
                    if answers.count > before && before >= sent_before && asked && answers.consent {
                        consents[(before - sent_before) as usize] += 1;
                    }
                }
            });
        }
        true
    }

    /// Stores the verdicts, and wakes the threads. Unparking the leader itself would take a system
    /// call later.
    fn answer(&mut self) {
        let quorum = self.nodes.len() / 2 + 1;
        let leader = thread::current().id();
        for (waiting, &consents) in self.batch.waiting.iter().zip(&self.consents) {
            waiting.slot.store(
                if consents >= quorum { GRANTED } else { REFUSED },
                Ordering::Release,
            );
            if waiting.thread.id() != leader {
                waiting.thread.unpark();
            }
        }
        self.batch.bytes.clear();
        self.batch.waiting.clear();
    }
}
