//! A connection that blocks, with a limit for each step: for the command line, which asks each node
//! on a thread of its own what no lock client asks.

use crate::os::stream::{Stream, would_block};
use crate::os::transport::{Transport, TransportConfig};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often is asked whether a handshake is hopeless.
const LOOK: Duration = Duration::from_millis(5);

/// A connection that is made, and protected as the node's URL requires.
pub(crate) struct BlockingStream {
    transport: Transport,
    timeout: Duration,
}

impl BlockingStream {
    /// Waits until the connection is made and the handshake of TLS is over, for `timeout` at most.
    /// While the other side is silent in the handshake, `is_hopeless` is asked again and again,
    /// with the time since the beginning. None if it is.
    ///
    /// # Errors
    /// The connection is refused, TLS fails, or the time is up.
    pub(crate) fn open(
        stream: Stream,
        config: &TransportConfig,
        timeout: Duration,
        mut is_hopeless: impl FnMut(Duration) -> bool,
    ) -> io::Result<Option<BlockingStream>> {
        let begun = Instant::now();
        while !stream.is_settled() {
            let left = timeout
                .checked_sub(begun.elapsed())
                .ok_or(ErrorKind::TimedOut)?;
            wait(&stream, PollFlags::OUT, left)?;
        }
        stream.finish_connecting()?;
        let mut transport = config.begin(Arc::new(stream))?;
        loop {
            transport.flush()?;
            // TLS takes bytes when its handshake is over, and a plain connection at any time.
            if transport.wants_write(true) && !transport.has_unsent() {
                return Ok(Some(BlockingStream { transport, timeout }));
            }
            let silent = begun.elapsed();
            if transport.awaits_first_byte() && is_hopeless(silent) {
                return Ok(None);
            }
            let left = timeout.checked_sub(silent).ok_or(ErrorKind::TimedOut)?;
            wait(
                transport.stream(),
                PollFlags::IN | unsent(&transport),
                left.min(LOOK),
            )?;
            match transport.read(&mut [0]) {
                Err(error) if would_block(&error) => {}
                Err(error) => return Err(error),
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                // A server that speaks before it is asked is no node.
                Ok(_) => return Err(ErrorKind::InvalidData.into()),
            }
        }
    }

    /// Reads what comes next; 0 bytes mean that the other side has closed.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.retry(PollFlags::IN, |transport| transport.read(buffer))
    }

    /// Writes all of it.
    pub(crate) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.retry(PollFlags::OUT, |transport| transport.write(bytes))?;
            bytes = &bytes[written..];
        }
        self.retry(PollFlags::OUT, |transport| {
            transport.flush()?;
            if transport.has_unsent() {
                Err(ErrorKind::WouldBlock.into())
            } else {
                Ok(())
            }
        })
    }

    /// Tries until it need not wait, for as long as the limit allows.
    fn retry<T>(
        &mut self,
        flags: PollFlags,
        mut step: impl FnMut(&mut Transport) -> io::Result<T>,
    ) -> io::Result<T> {
        let begun = Instant::now();
        loop {
            match step(&mut self.transport) {
                Err(error) if would_block(&error) => {}
                done => return done,
            }
            let left = self
                .timeout
                .checked_sub(begun.elapsed())
                .ok_or(ErrorKind::TimedOut)?;
            wait(
                self.transport.stream(),
                flags | unsent(&self.transport),
                left,
            )?;
        }
    }
}

/// What to poll for while TLS holds bytes back.
fn unsent(transport: &Transport) -> PollFlags {
    if transport.has_unsent() {
        PollFlags::OUT
    } else {
        PollFlags::empty()
    }
}

/// Waits until the stream is ready, or the time is up. It may come back early.
fn wait(stream: &Stream, flags: PollFlags, time: Duration) -> io::Result<()> {
    let mut descriptors = [PollFd::new(stream.source(), flags)];
    match poll(&mut descriptors, Timespec::try_from(time).ok().as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
