//! The library's resolver: simulated nodes have addresses in numbers, so there is nothing to look
//! up.

use crate::os::waker::Waker;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Resolution;

impl Resolution {
    pub(crate) fn begin(_host: &str, _port: u16, _waker: Arc<Waker>) -> io::Result<Resolution> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn answer(&self) -> Option<Vec<SocketAddr>> {
        None
    }
}

pub(crate) fn literal(host: &str, port: u16) -> Option<SocketAddr> {
    host.parse::<IpAddr>()
        .ok()
        .map(|address| SocketAddr::new(address, port))
}
