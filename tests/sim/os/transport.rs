//! The bytes of a connection, as they are, or through a substitute for TLS: it takes bytes that the
//! socket does not take yet, and reads ahead of what it is asked for. There is no handshake.

use crate::os::stream::{Stream, would_block};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

/// Most bytes that are taken before the socket has taken the ones before.
const MOST_HELD: usize = 4096;
/// Longest piece in which bytes that were read are handed out.
const PIECE: usize = 7;

/// As in the library's own transport.
#[derive(Clone, Debug, Default)]
pub(crate) enum TransportConfig {
    #[default]
    Plain,
    Tls,
}

/// A connection that is made.
pub(crate) struct Transport {
    stream: Arc<Stream>,
    tls: Option<Tls>,
}

#[derive(Default)]
struct Tls {
    /// What was taken, and not sent yet.
    held: VecDeque<u8>,
    /// What was read, and not asked for yet.
    ahead: VecDeque<u8>,
}

impl TransportConfig {
    /// No names are checked.
    pub(crate) fn named(&self, _: &str) -> TransportConfig {
        self.clone()
    }

    pub(crate) fn begin(&self, stream: Arc<Stream>) -> io::Result<Transport> {
        let tls = match self {
            TransportConfig::Plain => None,
            TransportConfig::Tls => Some(Tls::default()),
        };
        Ok(Transport { stream, tls })
    }
}

impl Transport {
    pub(crate) fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.stream.read(buffer);
        };
        if tls.ahead.is_empty() {
            let mut record = [0; 1024];
            let length = self.stream.read(&mut record)?;
            tls.ahead.extend(&record[..length]);
        }
        let most = buffer.len().min(PIECE);
        tls.ahead.read(&mut buffer[..most])
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let Some(tls) = &mut self.tls else {
            return self.stream.write(bytes);
        };
        if !tls.held.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = bytes.len().min(MOST_HELD);
        tls.held.extend(&bytes[..taken]);
        // What was taken counts as written, whatever becomes of it.
        let _ = self.flush();
        Ok(taken)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let Some(Tls { held, .. }) = &mut self.tls else {
            return Ok(());
        };
        while !held.is_empty() {
            match self.stream.write(held.make_contiguous()) {
                Err(error) if would_block(&error) => break,
                sent => drop(held.drain(..sent?)),
            }
        }
        Ok(())
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| !tls.held.is_empty())
    }

    pub(crate) fn has_unread(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| !tls.ahead.is_empty())
    }

    pub(crate) fn awaits_first_byte(&self) -> bool {
        false
    }

    pub(crate) fn wants_write(&self, has_more: bool) -> bool {
        self.has_unsent() || has_more
    }
}
