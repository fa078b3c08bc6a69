//! The floor of a hand-off: two bare programs that alternate on one lock, and rely on being exactly
//! two.
//!
//! Each has a [`Floor`] and stays subscribed on all nodes. One releases and publishes, in one
//! script, and waits for a quorum; on the first message from any node the other one takes the lock.
//! Nothing is asked, counted or checked, and no subscription begins or ends.

use crate::floor::{self, Floor};
use quorumlock::protocol::resp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Read;
use std::net::{SocketAddr, TcpStream};

/// How long one program waits for a message of the other before it checks whether the run is over.
const POLL_TIMEOUT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// One of the two programs.
pub(crate) struct Bare {
    floor: Floor,
    subscribers: Vec<Subscriber>,
    /// How a message of the other program ends on the wire.
    message: [u8; 3],
    /// Releases of the other program that have been taken into account.
    seen: u32,
}

struct Subscriber {
    stream: TcpStream,
    received: u32,
}

impl Bare {
    /// `index`: which of the two, 0 or 1.
    pub(crate) fn connect(addresses: &[SocketAddr], resource: &str, index: u8) -> Bare {
        let streams = floor::connect(addresses);
        let mut request = Vec::new();
        resp::encode(&mut request, &[b"SUBSCRIBE", resource.as_bytes()]);
        let subscribers = streams.into_iter().map(|mut stream| {
            std::io::Write::write_all(&mut stream, &request)
                .expect("a server that permits SUBSCRIBE");
            Subscriber {
                stream,
                received: 0,
            }
        });
        let other = b'1' - index;
        Bare {
            floor: Floor::publishing(addresses, resource, index),
            subscribers: subscribers.collect(),
            message: [b'\n', other, b'\r'],
            seen: 0,
        }
    }

    /// Waits for the next release of the other program. False when none came within the time limit.
    pub(crate) fn listen(&mut self) -> bool {
        while self
            .subscribers
            .iter()
            .all(|subscriber| subscriber.received <= self.seen)
        {
            let mut descriptors: Vec<PollFd<'_>> = self
                .subscribers
                .iter()
                .map(|subscriber| PollFd::new(&subscriber.stream, PollFlags::IN))
                .collect();
            if poll(&mut descriptors, Some(&POLL_TIMEOUT)).unwrap_or(0) == 0 {
                return false;
            }
            let ready: Vec<bool> = descriptors
                .iter()
                .map(|descriptor| !descriptor.revents().is_empty())
                .collect();
            for (subscriber, _) in self
                .subscribers
                .iter_mut()
                .zip(ready)
                .filter(|(_, ready)| *ready)
            {
                let mut buffer = [0; 4096];
                let size = subscriber.stream.read(&mut buffer).unwrap_or(0);
                subscriber.received += buffer[..size]
                    .windows(3)
                    .filter(|bytes| **bytes == self.message)
                    .count() as u32;
            }
        }
        self.seen += 1;
        true
    }

    /// Takes the lock. A release that one node has published may not have reached the others yet.
    pub(crate) fn take(&mut self) -> u32 {
        let mut attempts = 1;
        while !self.floor.take() {
            self.floor.undo();
            attempts += 1;
        }
        attempts
    }

    pub(crate) fn release(&mut self) {
        assert!(self.floor.release(), "no other client has this token");
    }
}
