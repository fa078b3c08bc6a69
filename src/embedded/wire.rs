//! The bytes of one connection: as they are, or through TLS.

#[cfg(feature = "embedded-tls")]
use rustls::ServerConnection;
use std::io::{self, Read, Write};
use std::net::TcpStream;

#[cfg(feature = "embedded-tls")]
pub(super) use super::certificate::Identity;

/// What a node with TLS would have: here is none.
#[cfg(not(feature = "embedded-tls"))]
pub(super) enum Identity {}

/// A non-blocking stream, and TLS on it.
pub(super) struct Wire {
    stream: TcpStream,
    #[cfg(feature = "embedded-tls")]
    tls: Option<Box<ServerConnection>>,
}

impl Wire {
    /// Takes over a stream that was just accepted.
    pub(super) fn new(stream: TcpStream, identity: Option<&Identity>) -> io::Result<Wire> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        #[cfg(feature = "embedded-tls")]
        let tls = identity.map(Identity::begin).transpose()?;
        #[cfg(not(feature = "embedded-tls"))]
        let _ = identity;
        Ok(Wire {
            stream,
            #[cfg(feature = "embedded-tls")]
            tls: tls.map(Box::new),
        })
    }

    /// What to poll.
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether TLS has bytes that the socket did not take.
    pub(super) fn has_unsent(&self) -> bool {
        #[cfg(feature = "embedded-tls")]
        if let Some(tls) = &self.tls {
            return tls.wants_write();
        }
        false
    }

    /// Appends all that can be read at once to `input`: TLS keeps nothing back, because poll would
    /// not show it. False at the end of the stream.
    pub(super) fn read(&mut self, chunk: &mut [u8], input: &mut Vec<u8>) -> io::Result<bool> {
        #[cfg(feature = "embedded-tls")]
        if let Some(tls) = &mut self.tls {
            let count = tls.read_tls(&mut self.stream)?;
            let outcome = tls.process_new_packets();
            // A flight of the handshake, or the alert that belongs to a failure.
            flush(tls, &mut self.stream)?;
            let ends = outcome.map_err(io::Error::other)?.peer_has_closed();
            while let Ok(length @ 1..) = tls.reader().read(chunk) {
                input.extend_from_slice(&chunk[..length]);
            }
            return Ok(count > 0 && !ends);
        }
        let length = self.stream.read(chunk)?;
        input.extend_from_slice(&chunk[..length]);
        Ok(length > 0)
    }

    /// Sends what is taken.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(feature = "embedded-tls")]
        if let Some(tls) = &mut self.tls {
            flush(tls, &mut self.stream)?;
            if tls.wants_write() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let taken = tls.writer().write(bytes);
            flush(tls, &mut self.stream)?;
            return taken;
        }
        self.stream.write(bytes)
    }

    /// Sends what TLS has kept back, as far as the socket takes it.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        #[cfg(feature = "embedded-tls")]
        if let Some(tls) = &mut self.tls {
            flush(tls, &mut self.stream)?;
        }
        Ok(())
    }
}

#[cfg(feature = "embedded-tls")]
fn flush(tls: &mut ServerConnection, stream: &mut TcpStream) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(stream) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            sent => sent?,
        };
    }
    Ok(())
}
