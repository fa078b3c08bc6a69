//! The bytes of a connection that is made: as they are, or through TLS.
//!
//! TLS takes bytes that the socket does not take yet, and reads bytes that were not asked for yet.
//! So a connection is polled for what its [`Transport`] wants, and read until the transport has
//! nothing left. Through a plain connection every byte goes as it is, and nothing is held back.

use crate::os::stream::Stream;
#[cfg(feature = "tls")]
use crate::os::tls::{TlsSession, TlsTarget};
use std::io;
use std::sync::Arc;

/// How to protect the connections to one node.
#[derive(Clone, Default)]
pub(crate) enum TransportConfig {
    #[default]
    Plain,
    /// All connections to the node share it, so that sessions resume.
    #[cfg(feature = "tls")]
    Tls(Arc<TlsTarget>),
}

/// A connection that is made.
pub(crate) struct Transport {
    stream: Arc<Stream>,
    #[cfg(feature = "tls")]
    tls: Option<Box<TlsSession>>,
}

impl TransportConfig {
    /// The same for a server whose certificate must be for this name or address.
    pub(crate) fn named(&self, _name: &str) -> TransportConfig {
        match self {
            TransportConfig::Plain => TransportConfig::Plain,
            #[cfg(feature = "tls")]
            TransportConfig::Tls(target) => TransportConfig::Tls(Arc::new(target.named(_name))),
        }
    }

    /// Begins on a connection that is made. Sends nothing yet.
    ///
    /// # Errors
    /// TLS cannot begin: there are no random bytes.
    pub(crate) fn begin(&self, stream: Arc<Stream>) -> io::Result<Transport> {
        #[cfg(feature = "tls")]
        let tls = match self {
            TransportConfig::Plain => None,
            TransportConfig::Tls(target) => Some(Box::new(target.begin()?)),
        };
        Ok(Transport {
            stream,
            #[cfg(feature = "tls")]
            tls,
        })
    }
}

impl Transport {
    /// What is polled.
    pub(crate) fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// Reads what is there; 0 bytes mean that the other side has closed.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &mut self.tls {
            return tls.read(&self.stream, buffer);
        }
        self.stream.read(buffer)
    }

    /// Writes what is taken. What TLS has taken may be sent at any time, and counts as written.
    /// Before its handshake is over it takes nothing.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &mut self.tls {
            return tls.write(&self.stream, bytes);
        }
        self.stream.write(bytes)
    }

    /// Sends what is held back, as far as the socket takes it.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &mut self.tls {
            return tls.flush(&self.stream);
        }
        Ok(())
    }

    /// Whether bytes are held back that the socket has not taken.
    pub(crate) fn has_unsent(&self) -> bool {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return tls.has_unsent();
        }
        false
    }

    /// Whether there is something to be read that the socket does not show.
    pub(crate) fn has_unread(&self) -> bool {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return tls.has_unread();
        }
        false
    }

    /// Whether the other side has sent nothing yet, and TLS waits for it.
    pub(crate) fn awaits_first_byte(&self) -> bool {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return tls.awaits_first_byte();
        }
        false
    }

    /// Whether to poll until the stream can be written to. `has_more`: there is something to be
    /// written.
    pub(crate) fn wants_write(&self, has_more: bool) -> bool {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return tls.has_unsent() || has_more && tls.takes_bytes();
        }
        has_more
    }
}
