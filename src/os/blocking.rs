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
    /// The limit of each step.
    pub(crate) timeout: Duration,
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
        let transport = config.begin(Arc::new(stream))?;
        let mut stream = BlockingStream { transport, timeout };
        let begun = Instant::now();
        let is_open = stream.retry(PollFlags::IN | PollFlags::OUT, LOOK, |transport| {
            if !transport.stream().is_settled() {
                return Err(ErrorKind::WouldBlock.into());
            }
            transport.stream().finish_connecting()?;
            transport.flush()?;
            // TLS takes bytes when its handshake is over, and a plain connection at any time.
            if transport.wants_write(true) && !transport.has_unsent() {
                return Ok(true);
            }
            if transport.awaits_first_byte() && is_hopeless(begun.elapsed()) {
                return Ok(false);
            }
            match transport.read(&mut [0])? {
                0 => Err(ErrorKind::UnexpectedEof.into()),
                // A server that speaks before it is asked is no node.
                _ => Err(ErrorKind::InvalidData.into()),
            }
        })?;
        Ok(is_open.then_some(stream))
    }

    /// Reads what comes next; 0 bytes mean that the other side has closed.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = |transport: &mut Transport| transport.read(buffer);
        self.retry(PollFlags::IN, self.timeout, read)
    }

    /// Writes all of it.
    pub(crate) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.retry(PollFlags::OUT, self.timeout, |transport| {
            while !bytes.is_empty() {
                let written = transport.write(bytes)?;
                bytes = &bytes[written..];
            }
            transport.flush()?;
            if transport.has_unsent() {
                return Err(ErrorKind::WouldBlock.into());
            }
            Ok(())
        })
    }

    /// Tries until it need not wait, for as long as the limit allows. Polls for these, and waits no
    /// longer than `pause` before it tries again.
    fn retry<T>(
        &mut self,
        flags: PollFlags,
        pause: Duration,
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
            // Before the end of its handshake TLS takes nothing, and the socket would be ready.
            let has_more = flags.contains(PollFlags::OUT);
            let mut wanted = flags;
            wanted.set(PollFlags::OUT, self.transport.wants_write(has_more));
            let mut descriptors = [PollFd::new(self.transport.stream().source(), wanted)];
            let time = Timespec::try_from(left.min(pause)).ok();
            match poll(&mut descriptors, time.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
