//! The floor of a hand-off: two bare programs that alternate on one lock, and know that they are two.
//!
//! Each has a [`Floor`], and listens on all nodes all the time. One releases and tells, in one script, and waits for a
//! quorum; the first node that tells the other one sends him off to take the lock. Nothing is asked, counted or checked, and
//! nobody begins or ends to listen.

use crate::floor::{self, Floor};
use quorumlock::protocol::dialect::Dialect;
use quorumlock::protocol::publish;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Read;
use std::net::{SocketAddr, TcpStream};

/// How the releases of these two are asked for. All servers of today know it.
const DIALECT: Dialect = Dialect::Evalsha;
/// For how long one of them waits for the other's word before he looks whether it is over.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// One of the two.
pub(crate) struct Bare {
    floor: Floor,
    ears: Vec<Subscriber>,
    /// How the other one's word ends on the wire.
    word: [u8; 3],
    /// How many of his releases were heard of.
    heard: u32,
}

struct Subscriber {
    stream: TcpStream,
    told: u32,
}

impl Bare {
    /// `index`: which of the two, 0 or 1.
    pub(crate) fn connect(addresses: &[SocketAddr], resource: &str, index: u8) -> Bare {
        let streams = floor::connect(addresses);
        let mut request = Vec::new();
        publish::subscribe(&mut request, resource.as_bytes());
        let ears = streams.into_iter().map(|mut stream| {
            std::io::Write::write_all(&mut stream, &request).expect("a server that lets us listen");
            Subscriber { stream, told: 0 }
        });
        let other = b'1' - index;
        Bare {
            floor: Floor::telling(addresses, DIALECT, resource, index),
            ears: ears.collect(),
            word: [b'\n', other, b'\r'],
            heard: 0,
        }
    }

    /// Waits for the other one's next release. False when there was none for a moment.
    pub(crate) fn listen(&mut self) -> bool {
        while self.ears.iter().all(|ear| ear.told <= self.heard) {
            let mut descriptors: Vec<PollFd<'_>> =
                self.ears.iter().map(|ear| PollFd::new(&ear.stream, PollFlags::IN)).collect();
            if poll(&mut descriptors, Some(&GLANCE)).unwrap_or(0) == 0 {
                return false;
            }
            let ready: Vec<bool> = descriptors.iter().map(|descriptor| !descriptor.revents().is_empty()).collect();
            for (ear, _) in self.ears.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
                let mut buffer = [0; 4096];
                let size = ear.stream.read(&mut buffer).unwrap_or(0);
                ear.told += buffer[..size].windows(3).filter(|bytes| **bytes == self.word).count() as u32;
            }
        }
        self.heard += 1;
        true
    }

    /// Takes the lock. What was told by one node may not have reached the others yet.
    pub(crate) fn take(&mut self) -> u32 {
        let mut attempts = 1;
        while !self.floor.take() {
            self.floor.undo();
            attempts += 1;
        }
        attempts
    }

    pub(crate) fn release(&mut self) {
        assert!(self.floor.release(), "nobody else has this token");
    }
}
