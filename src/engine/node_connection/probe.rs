//! Whether a server that is silent in the handshake of TLS speaks TLS at all.
//!
//! A Redis server without TLS takes the first bytes of TLS for the beginning of a line, and waits for the end of it. So
//! when half of the node timeout has passed without a byte, a second connection asks without TLS, by `PING`. A server
//! that answers in RESP has no TLS on that port. One by TLS answers with an alert or not at all, and goes on with the
//! first connection.

use crate::os::stream::{self, Stream};
use std::time::Duration;

/// How often the second connection is looked at. It is not polled.
pub(super) const LOOK: Duration = Duration::from_millis(5);
/// What is asked: nothing that changes a server, nor that needs a log-in to be answered.
const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
/// What an answer in RESP2 begins with.
const FIRST_BYTES: &[u8] = b"+-:$*";

/// The second connection, of one attempt to connect.
#[derive(Default)]
pub(crate) enum Probe {
    #[default]
    NotBegun,
    Connecting(Stream),
    Asked(Stream),
    /// There is no more to find out.
    Ended,
}

impl Probe {
    /// Goes on as far as that is possible without waiting. True when the server has answered without TLS.
    pub(crate) fn advance(&mut self) -> bool {
        if let Probe::Connecting(stream) = self
            && stream.is_settled()
        {
            let is_asked = stream.finish_connecting().is_ok() && stream.write(PING).is_ok();
            *self = match std::mem::replace(self, Probe::Ended) {
                Probe::Connecting(stream) if is_asked => Probe::Asked(stream),
                _ => Probe::Ended,
            };
        }
        let Probe::Asked(stream) = self else { return false };
        let mut first = [0];
        match stream.read(&mut first) {
            Err(error) if stream::would_block(&error) => false,
            read => {
                *self = Probe::Ended;
                read.is_ok_and(|count| count > 0) && FIRST_BYTES.contains(&first[0])
            }
        }
    }
}
