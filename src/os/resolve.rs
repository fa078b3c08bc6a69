//! Host names, looked up off the path of every attempt.
//!
//! The system's resolver blocks, for seconds if it pleases. So each look-up runs in a thread of its
//! own that ends with it, takes no signals, and wakes the driver. An address in numbers needs none
//! of this.

use crate::os::sync;
use crate::os::waker::Waker;
use crossbeam_channel::{Receiver, bounded};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// A look-up under way or done.
pub(crate) struct Resolution {
    answer: Receiver<Vec<SocketAddr>>,
}

impl Resolution {
    /// Begins to look up a host name; `waker` is woken when the answer is there.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn begin(host: &str, port: u16, waker: Arc<Waker>) -> io::Result<Resolution> {
        let (sender, answer) = bounded(1);
        let host = host.to_owned();
        sync::spawn("quorumlock-dns", move || {
            let addresses = (host.as_str(), port)
                .to_socket_addrs()
                .map(Iterator::collect)
                .unwrap_or_default();
            let _ = sender.send(addresses);
            waker.wake();
        })?;
        Ok(Resolution { answer })
    }

    /// The addresses, none of which is an answer too, or `None` while the look-up runs.
    pub(crate) fn answer(&self) -> Option<Vec<SocketAddr>> {
        self.answer.try_recv().ok()
    }
}

/// The address that a host is, if it is one and not a name.
pub(crate) fn literal(host: &str, port: u16) -> Option<SocketAddr> {
    host.parse::<IpAddr>()
        .ok()
        .map(|address| SocketAddr::new(address, port))
}
