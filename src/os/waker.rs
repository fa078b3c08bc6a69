//! Wakes a thread that polls, from another thread.
//!
//! A thread in poll sees what happens to the descriptors it was given and nothing else. One of them
//! belongs to a waker, which any thread can make readable. A pair of sockets does it on every
//! system, without unsafe code; neither end blocks. A child made by `fork` has the same pair, and
//! wakes no thread with it.

use crate::os::fork::ForkEpoch;
use std::io;

#[cfg(not(unix))]
use std::net::UdpSocket as Datagram;
#[cfg(unix)]
use std::os::unix::net::UnixDatagram as Datagram;

/// The two ends of a wake-up.
#[derive(Debug)]
pub(crate) struct Waker {
    sender: Datagram,
    receiver: Datagram,
    created_in: ForkEpoch,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Waker> {
        let (sender, receiver) = pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        Ok(Waker {
            sender,
            receiver,
            created_in: ForkEpoch::current()?,
        })
    }

    /// Whether this process is a child of the one that made it, where no thread is to be woken.
    pub(crate) fn is_inherited(&self) -> bool {
        self.created_in.is_forked()
    }

    /// Makes the next poll, or the present one, end at once.
    pub(crate) fn wake(&self) {
        if !self.is_inherited() {
            // A full buffer holds a wake-up already.
            let _ = self.sender.send(&[0]);
        }
    }

    /// Forgets the wake-ups so far.
    pub(crate) fn drain(&self) {
        while !self.is_inherited() && self.receiver.recv(&mut [0]).is_ok() {}
    }

    /// What to poll for reading.
    pub(crate) fn source(&self) -> &impl rustix::fd::AsFd {
        &self.receiver
    }
}

#[cfg(unix)]
fn pair() -> io::Result<(Datagram, Datagram)> {
    Datagram::pair()
}

#[cfg(not(unix))]
fn pair() -> io::Result<(Datagram, Datagram)> {
    let local = (std::net::Ipv4Addr::LOCALHOST, 0);
    let sender = Datagram::bind(local)?;
    let receiver = Datagram::bind(local)?;
    sender.connect(receiver.local_addr()?)?;
    receiver.connect(sender.local_addr()?)?;
    Ok((sender, receiver))
}
