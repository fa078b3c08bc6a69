//! The library's byte stream: one end of a simulated connection.

use crate::fault::Cause;
use crate::holds;
use crate::kernel;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

#[derive(Debug)]
pub(crate) struct Stream {
    connection: usize,
}

impl Stream {
    /// The last number of the address is the node's index.
    pub(crate) fn connect_tcp(address: SocketAddr) -> io::Result<Stream> {
        let IpAddr::V4(address) = address.ip() else {
            return Err(ErrorKind::Unsupported.into());
        };
        let node = usize::from(address.octets()[3]);
        kernel::may_be_interrupted();
        Ok(Stream {
            connection: kernel::with(|world| world.connect(world.current_client(), node)),
        })
    }

    pub(crate) fn connect_unix(_path: &Path) -> io::Result<Stream> {
        Err(ErrorKind::Unsupported.into())
    }

    pub(crate) fn is_settled(&self) -> bool {
        kernel::with(|world| world.is_settled(self.connection))
    }

    pub(crate) fn finish_connecting(&self) -> io::Result<()> {
        kernel::with(|world| world.finish_connecting(self.connection))
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        kernel::may_be_interrupted();
        kernel::with(|world| world.read(self.connection, buffer))
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        kernel::may_be_interrupted();
        holds::about_to_write();
        kernel::with(|world| world.write(self.connection, bytes))
    }

    pub(crate) fn reset_on_close(&self) {
        kernel::with(|world| world.reset_on_close(self.connection));
    }

    /// What to poll.
    pub(crate) fn connection(&self) -> usize {
        self.connection
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        kernel::with(|world| world.close(self.connection));
    }
}

/// As in the library's own stream.
pub(crate) fn cause_of(error: &io::Error) -> Cause {
    match error.kind() {
        ErrorKind::ConnectionRefused => Cause::Refused,
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Cause::Closed,
        ErrorKind::TimedOut => Cause::TimedOut,
        ErrorKind::NetworkUnreachable => Cause::Unreachable,
        _ => Cause::System(0),
    }
}

pub(crate) fn would_block(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}
