//! The limit: what one thread reaches that has many pairs in flight on one connection per node.
//!
//! No library that returns results to waiting threads can reach it: no thread is woken here. All
//! nodes get the same requests in the same order, so that a request is decided when a quorum of
//! nodes has answered so many: the decided ones are a count. What is decided is followed at once, a
//! lock by its release, a release by the next lock, with one write per node.

use crate::floor::{Answers, connect, requests};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// One thread's connections, and the bytes of its locks.
pub(crate) struct Limit {
    nodes: Vec<Node>,
    /// To take and to release each lock.
    requests: Vec<[Vec<u8>; 2]>,
    /// Requests decided so far, of all that were ever sent.
    decided: u64,
}

struct Node {
    stream: TcpStream,
    answers: Answers,
    unsent: Vec<u8>,
}

impl Limit {
    /// Connects, with so many locks to have in flight.
    pub(crate) fn connect(addresses: &[SocketAddr], locks: usize) -> Limit {
        let node = |stream| Node {
            stream,
            answers: Answers::default(),
            unsent: Vec::new(),
        };
        let both = |lock| {
            let (take, release) = requests(&format!("limit/{lock}"), 0xee);
            [take, release]
        };
        let nodes = connect(addresses).into_iter().map(node).collect();
        Limit {
            nodes,
            requests: (0..locks).map(both).collect(),
            decided: 0,
        }
    }

    /// Runs for so long, and then until nothing is in flight. Returns the number of pairs.
    pub(crate) fn run(&mut self, time: Duration) -> u64 {
        let deadline = Instant::now() + time;
        let mut in_flight = VecDeque::new();
        let mut pairs = 0;
        for lock in 0..self.requests.len() {
            self.post(lock, 0);
            in_flight.push_back((lock, 0));
        }
        while !in_flight.is_empty() {
            self.exchange();
            let is_over = Instant::now() >= deadline;
            let answered = self.answered_by_quorum();
            while self.decided < answered {
                self.decided += 1;
                match in_flight.pop_front() {
                    Some((lock, 0)) => {
                        self.post(lock, 1);
                        in_flight.push_back((lock, 1));
                    }
                    Some((lock, _)) => {
                        pairs += 1;
                        if !is_over {
                            self.post(lock, 0);
                            in_flight.push_back((lock, 0));
                        }
                    }
                    None => break,
                }
            }
        }
        pairs
    }

    fn post(&mut self, lock: usize, step: usize) {
        for node in &mut self.nodes {
            node.unsent.extend_from_slice(&self.requests[lock][step]);
        }
    }

    fn answered_by_quorum(&self) -> u64 {
        let mut counts: Vec<u64> = self.nodes.iter().map(|node| node.answers.count).collect();
        counts.sort_unstable();
        // The least that the foremost N/2 + 1 of N have.
        counts[(counts.len() - 1) / 2]
    }

    fn exchange(&mut self) {
        self.nodes.iter_mut().for_each(Node::flush);
        let mut descriptors: Vec<PollFd<'_>> = self.nodes.iter().map(Node::interest).collect();
        poll(&mut descriptors, None).expect("a poll");
        let ready: Vec<bool> = descriptors
            .iter()
            .map(|found| found.revents().contains(PollFlags::IN))
            .collect();
        for (node, _) in self.nodes.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
            node.receive();
        }
    }
}

impl Node {
    fn interest(&self) -> PollFd<'_> {
        let flags = if self.unsent.is_empty() {
            PollFlags::IN
        } else {
            PollFlags::IN | PollFlags::OUT
        };
        PollFd::new(&self.stream, flags)
    }

    fn flush(&mut self) {
        if self.unsent.is_empty() {
            return;
        }
        match self.stream.write(&self.unsent) {
            Ok(size) => drop(self.unsent.drain(..size)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }

    fn receive(&mut self) {
        let mut buffer = [0; 16 * 1024];
        let size = self.stream.read(&mut buffer).expect("a healthy server");
        self.answers.feed(&buffer[..size]);
    }
}
