//! Whether a port speaks TLS, where the URL and the server disagree about it: asked on a second
//! connection.
//!
//! A Redis server without TLS takes the first bytes of TLS for the beginning of a line, and waits
//! for the end of it. So when half of the node timeout has passed without a byte, a second
//! connection asks without TLS, by `PING`. A server that answers in RESP has no TLS on that port.
//! One by TLS answers with an alert or not at all, and goes on with the first connection.
//!
//! A server with TLS takes the first bytes without it for a damaged record, and closes the
//! connection, most often without a byte. So when a connection without TLS has ended like that, a
//! second one asks by a `ClientHello`, once until the node answers. Only TLS answers with a record
//! of TLS. The first connection ends when that is known, or half of the node timeout later: so the
//! attempt that it was made for can report it.

use crate::os::stream::{self, Stream};
use std::time::Duration;

/// How often the second connection is looked at. It is not polled.
pub(super) const LOOK: Duration = Duration::from_millis(5);

/// What is asked, and what the answer begins with that decides it.
#[derive(Clone, Copy)]
pub(crate) struct Question {
    bytes: &'static [u8],
    decisive: &'static [u8],
}

/// Nothing that changes a server, nor that needs a log-in to be answered. A reply in RESP2.
const PING: Question = Question {
    bytes: b"*1\r\n$4\r\nPING\r\n",
    decisive: b"+-:$*",
};
/// A `ClientHello` of TLS 1.2 with one cipher suite. Its random bytes are words for the reader of a
/// dump. An alert or a `ServerHello`.
const CLIENT_HELLO: Question = Question {
    bytes: b"\x16\x03\x01\x00\x2d\x01\x00\x00\x29\x03\x03does this port speak TLS or not?\x00\x00\x02\xc0\x2f\x01\x00",
    decisive: &[ALERT, 0x16],
};
/// The type of a record of TLS.
pub(super) const ALERT: u8 = 0x15;

/// The second connection.
#[derive(Default)]
pub(crate) enum Probe {
    #[default]
    NotBegun,
    /// The question was sent if so.
    Asking(Stream, Question, bool),
    /// There is no more to find out.
    Ended,
    /// The port speaks TLS, and the URL is not `rediss://`.
    SpeaksTls,
}

impl Probe {
    /// Asks a server that should speak TLS, on this connection.
    pub(crate) fn by_ping(connection: Option<Stream>) -> Probe {
        Probe::begin(connection, PING)
    }

    /// Asks a server that should not.
    pub(super) fn by_client_hello(connection: Option<Stream>) -> Probe {
        Probe::begin(connection, CLIENT_HELLO)
    }

    fn begin(connection: Option<Stream>, question: Question) -> Probe {
        connection.map_or(Probe::Ended, |stream| {
            Probe::Asking(stream, question, false)
        })
    }

    /// Whether the answer may still come.
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self, Probe::Asking(..))
    }

    /// Goes on as far as that is possible without waiting. True when the server has given the
    /// decisive answer.
    pub(crate) fn advance(&mut self) -> bool {
        let Probe::Asking(stream, question, is_sent) = self else {
            return false;
        };
        if !*is_sent {
            if !stream.is_settled() {
                return false;
            }
            let sent = stream.finish_connecting();
            if sent.and_then(|()| stream.write(question.bytes)).is_err() {
                *self = Probe::Ended;
                return false;
            }
            *is_sent = true;
        }
        let mut first = [0];
        match stream.read(&mut first) {
            Err(error) if stream::would_block(&error) => false,
            read => {
                // No server decides it by a zero, which is there if nothing was read.
                let is_decisive = read.is_ok() && question.decisive.contains(&first[0]);
                *self = Probe::Ended;
                is_decisive
            }
        }
    }
}
