//! A program that polls, as users of other libraries do.
//!
//! redis-py, redsync and rslock ask all nodes (`SET NX PX`), take a majority for the lock, undo a
//! lost attempt by the release script, and sleep for a fixed time. Nothing is published, and
//! nothing is subscribed to. Each attempt has a token of its own, in another form than the tokens
//! of this library.

use crate::clock::now;
use crate::floor::Answers;
use crate::release;
use quorumlock::protocol::resp;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

/// How long it sleeps between two attempts.
const SLEEP: Duration = Duration::from_millis(10);
const TTL_MILLIS: &[u8] = b"60000";

pub(crate) struct Polling {
    nodes: Vec<TcpStream>,
    resource: &'static str,
    token: String,
}

impl Polling {
    pub(crate) fn connect(addresses: &[SocketAddr], resource: &'static str) -> Polling {
        let connect = |address: &SocketAddr| {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true).map(|()| stream)
        };
        let nodes = addresses
            .iter()
            .map(|address| connect(address).expect("a connection to a server"))
            .collect();
        Polling {
            nodes,
            resource,
            token: String::new(),
        }
    }

    /// Takes the lock. Returns the number of attempts; none when `end` came first.
    pub(crate) fn take(&mut self, end: u64) -> u32 {
        let mut attempts = 0;
        while now() < end {
            attempts += 1;
            self.token = format!("{:x}-{:x}", std::process::id(), now());
            let mut request = Vec::new();
            let resource = self.resource.as_bytes();
            resp::encode(
                &mut request,
                &[
                    b"SET",
                    resource,
                    self.token.as_bytes(),
                    b"NX",
                    b"PX",
                    TTL_MILLIS,
                ],
            );
            if self.ask(&request) > self.nodes.len() / 2 {
                return attempts;
            }
            self.release();
            thread::sleep(SLEEP);
        }
        0
    }

    /// Releases the lock, or undoes a lost attempt.
    pub(crate) fn release(&mut self) {
        let mut request = Vec::new();
        release::write(&mut request, self.resource, self.token.as_bytes(), None);
        self.ask(&request);
    }

    /// Asks all nodes, and waits for all of them. Returns how many consent.
    fn ask(&mut self, request: &[u8]) -> usize {
        for node in &mut self.nodes {
            node.write_all(request).expect("a server that reads");
        }
        let consents = self.nodes.iter_mut().filter_map(|node| {
            let mut answers = Answers::default();
            let mut buffer = [0; 64];
            while answers.count == 0 {
                let size = node.read(&mut buffer).expect("a server that answers");
                answers.feed(&buffer[..size]);
            }
            answers.consent.then_some(())
        });
        consents.count()
    }
}
