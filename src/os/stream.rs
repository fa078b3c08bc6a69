//! One non-blocking byte stream to a node, over TCP or a Unix domain socket.
//!
//! Nothing here waits. Descriptors are closed on exec, and no write raises SIGPIPE, whatever the
//! host program does with signals: `send` with `MSG_NOSIGNAL`, or `SO_NOSIGPIPE` where that flag
//! does not exist. A call that a signal interrupted is made again.
//!
//! In a child made by `fork` a stream belongs to the parent: no byte of it is written or read
//! there, and no option set.

use crate::fault::Cause;
use crate::os::fork::ForkEpoch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};
use std::io::{self, ErrorKind, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// How long bytes may stay unacknowledged by the other machine's kernel before the connection
/// counts as dead. A server that is merely stopped still has a kernel that acknowledges.
#[cfg(any(target_os = "android", target_os = "linux"))]
const UNACKNOWLEDGED_LIMIT: Duration = Duration::from_secs(10);
/// Longest time between two retransmissions of a request. It doubles with each, and without a limit
/// a connection through a network that was away for some seconds stays silent for as long again. A
/// second is the least that the kernel takes for the option (`TCP_RTO_MAX_MS`, since Linux 6.15),
/// so a request arrives up to a second after the network is back. A reply that was lost is repeated
/// by the server's kernel, whose limit is its own: it may come some seconds later.
#[cfg(any(target_os = "android", target_os = "linux"))]
const RETRANSMISSION_DELAY_LIMIT: Duration = Duration::from_secs(1);
/// Silence after which the kernel asks the other one whether the connection is still there.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);
/// Time between such questions; after three without an answer the connection is dead.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// No write raises SIGPIPE.
#[cfg(not(any(windows, target_vendor = "apple")))]
const SEND_FLAGS: i32 = libc::MSG_NOSIGNAL;
/// There is no such flag: an option of the socket does it.
#[cfg(any(windows, target_vendor = "apple"))]
const SEND_FLAGS: i32 = 0;

/// A connection, perhaps still being made.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Socket,
    created_in: ForkEpoch,
}

impl Stream {
    /// Begins to connect over TCP.
    pub(crate) fn connect_tcp(address: SocketAddr) -> io::Result<Stream> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_keepalive(true)?;
        let keepalive = TcpKeepalive::new()
            .with_time(KEEPALIVE_AFTER)
            .with_interval(KEEPALIVE_INTERVAL);
        #[cfg(not(windows))]
        let keepalive = keepalive.with_retries(3);
        socket.set_tcp_keepalive(&keepalive)?;
        #[cfg(any(target_os = "android", target_os = "linux"))]
        {
            socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_LIMIT))?;
            // Older kernels do not have the option. The connection works without it.
            let _ =
                crate::os::fork::limit_retransmission_delay(&socket, RETRANSMISSION_DELAY_LIMIT);
        }
        Stream::connect(socket, &address.into())
    }

    /// Begins to connect to a Unix domain socket.
    pub(crate) fn connect_unix(path: &Path) -> io::Result<Stream> {
        Stream::connect(
            Socket::new(Domain::UNIX, Type::STREAM, None)?,
            &SockAddr::unix(path)?,
        )
    }

    fn connect(socket: Socket, address: &SockAddr) -> io::Result<Stream> {
        socket.set_nonblocking(true)?;
        #[cfg(target_vendor = "apple")]
        socket.set_nosigpipe(true)?;
        let created_in = ForkEpoch::current()?;
        match socket.connect(address) {
            Ok(()) => {}
            Err(error) if is_in_progress(&error, address) => {}
            Err(error) => return Err(error),
        }
        Ok(Stream { socket, created_in })
    }

    /// Whether a connection that was being made is made or refused by now.
    pub(crate) fn is_settled(&self) -> bool {
        let mut descriptors = [PollFd::new(&self.socket, PollFlags::OUT)];
        poll(&mut descriptors, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// The connection is made, or was refused: which?
    pub(crate) fn finish_connecting(&self) -> io::Result<()> {
        self.socket.take_error()?.map_or(Ok(()), Err)
    }

    /// Reads what is there; 0 bytes mean that the other side has closed.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.check_process()?;
        uninterrupted(|| (&self.socket).read(buffer))
    }

    /// Writes what the kernel takes.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.check_process()?;
        uninterrupted(|| self.socket.send_with_flags(bytes, SEND_FLAGS))
    }

    /// Writes what the kernel takes of several pieces.
    #[cfg(feature = "tls")]
    pub(crate) fn write_vectored(&self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.check_process()?;
        uninterrupted(|| self.socket.send_vectored_with_flags(pieces, SEND_FLAGS))
    }

    /// What to poll.
    pub(crate) fn source(&self) -> &impl rustix::fd::AsFd {
        &self.socket
    }

    /// Makes the close that follows a reset, so that the server does not keep a half-closed
    /// connection.
    pub(crate) fn reset_on_close(&self) {
        if self.check_process().is_ok() {
            // Fails only on a socket that is dead already.
            let _ = self.socket.set_linger(Some(Duration::ZERO));
        }
    }

    fn check_process(&self) -> io::Result<()> {
        if self.created_in.is_forked() {
            Err(ErrorKind::NotConnected.into())
        } else {
            Ok(())
        }
    }
}

/// What an error of a stream means for a node.
pub(crate) fn cause_of(error: &io::Error) -> Cause {
    if let Some(cause) = error.get_ref().and_then(|error| error.downcast_ref()) {
        return *cause;
    }
    match error.kind() {
        // A Unix domain socket that is not there is a server that is not there.
        ErrorKind::ConnectionRefused | ErrorKind::NotFound => Cause::Refused,
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::NotConnected
        | ErrorKind::UnexpectedEof => Cause::Closed,
        ErrorKind::TimedOut => Cause::TimedOut,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => {
            Cause::Unreachable
        }
        _ => Cause::System(error.raw_os_error().unwrap_or(0)),
    }
}

/// Whether an error means that nothing can be read or written right now.
pub(crate) fn would_block(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

/// A TCP connection is in progress; Windows reports "would block" instead. A Unix domain socket
/// reports "would block" when the server's backlog is full, and then nothing is in progress.
fn is_in_progress(error: &io::Error, address: &SockAddr) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::INPROGRESS)
        || (would_block(error) && address.as_socket().is_some())
}

fn uninterrupted(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_stream_of_the_parent_is_left_alone() {
        let (socket, mut other) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        other.set_nonblocking(true).unwrap();
        other.write_all(b"for the parent").unwrap();
        let stream = Stream {
            socket,
            created_in: ForkEpoch::of_a_parent(),
        };
        assert_eq!(cause_of(&stream.write(b"x").unwrap_err()), Cause::Closed);
        assert_eq!(cause_of(&stream.read(&mut [0]).unwrap_err()), Cause::Closed);
        stream.reset_on_close();
        assert_eq!(stream.socket.linger().unwrap(), None);
        assert!(
            would_block(&other.read(&mut [0]).unwrap_err()),
            "something was written"
        );
        assert_eq!(
            (&stream.socket).read(&mut [0; 20]).unwrap(),
            14,
            "something was read"
        );
    }
    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_not_acknowledged_is_sent_again_every_second_where_the_kernel_can() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = Stream::connect_tcp(listener.local_addr().unwrap()).unwrap();
        match crate::os::fork::retransmission_delay_limit(&stream.socket) {
            Ok(limit) => assert_eq!(limit, RETRANSMISSION_DELAY_LIMIT),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOPROTOOPT), "{error}"),
        }
    }
}
