//! One client of the embedded node: bytes in, requests to the store, bytes out.
//!
//! Nothing here blocks, and every buffer is bounded: an unfinished request by the limits of the
//! decoder, unsent replies by [`MAX_UNSENT`], beyond which neither the socket is read nor another
//! request answered until the client has taken some.

use std::io;
use std::net::TcpStream;

use super::reply;
use super::store::{ClientState, Message, Millis, Store};
use super::wire::{Identity, Wire};
use crate::protocol::resp::{self, Reply};

/// Unsent replies at which a client that does not read is no longer read. One reply may go over it.
const MAX_UNSENT: usize = 256 * 1024;

/// One accepted connection.
pub(super) struct Connection {
    wire: Wire,
    session: ClientState,
    /// Bytes received and not yet understood.
    input: Vec<u8>,
    /// Replies that were not sent.
    output: Vec<u8>,
    /// `input` may hold requests that were left unanswered because `output` was full.
    backlogged: bool,
    /// After a protocol error: send what there is to send, then close.
    closing: bool,
}

impl Connection {
    /// Takes over a stream that was just accepted.
    pub(super) fn new(stream: TcpStream, identity: Option<&Identity>) -> io::Result<Connection> {
        Ok(Connection {
            wire: Wire::new(stream, identity)?,
            session: ClientState::default(),
            input: Vec::new(),
            output: Vec::new(),
            backlogged: false,
            closing: false,
        })
    }

    /// What to poll.
    pub(super) fn stream(&self) -> &TcpStream {
        self.wire.stream()
    }

    /// Whether it has room for more requests.
    pub(super) fn wants_to_read(&self) -> bool {
        !self.closing && !self.backlogged
    }

    /// Whether it has replies that the socket did not take.
    pub(super) fn wants_to_write(&self) -> bool {
        !self.output.is_empty() || self.wire.has_unsent()
    }

    /// Sends, reads once, answers, sends. False when the connection has come to its end.
    pub(super) fn advance(&mut self, store: &mut Store, now: Millis, chunk: &mut [u8]) -> bool {
        if !self.send() {
            return false;
        }
        if self.wants_to_read() {
            match self.wire.read(chunk, &mut self.input) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) if is_transient(&error) => {}
                Err(_) => return false,
            }
        }
        // Requests may be left over from when the output was full: go on for as long as the socket
        // takes all of it.
        loop {
            self.answer(store, now);
            if !self.send() {
                return false;
            }
            if !self.backlogged || self.wants_to_write() {
                return !self.closing || self.wants_to_write();
            }
        }
    }

    /// Sends what there is for it to hear; false when the connection has come to its end.
    pub(super) fn hear(&mut self, messages: &[Message]) -> bool {
        // A subscriber that does not read is disconnected, as by a server.
        messages
            .iter()
            .for_each(|message| self.session.hear(message, &mut self.output));
        self.output.len() <= 4 * MAX_UNSENT && self.send()
    }

    /// It has come to its end.
    pub(super) fn forget(&mut self, store: &mut Store) {
        store.forget(&mut self.session);
    }

    /// Answers the complete requests, as long as there is room for replies.
    fn answer(&mut self, store: &mut Store, now: Millis) {
        let mut position = 0;
        self.backlogged = false;
        while !self.closing {
            if self.output.len() >= MAX_UNSENT {
                self.backlogged = true;
                break;
            }
            let words = match resp::decode(&self.input[position..]) {
                Ok(None) => break,
                Ok(Some((request, length))) => {
                    position += length;
                    split(request)
                }
                Err(_) => None,
            };
            if let Some(words) = words {
                store.execute(&mut self.session, &words, now, &mut self.output);
            } else {
                let error = "ERR Protocol error: expected an array of bulk strings";
                reply::Reply::Error(error.into()).write(&mut self.output);
                self.closing = true;
            }
        }
        self.input.drain(..position);
    }

    /// Sends what the socket takes; false when the client is gone.
    fn send(&mut self) -> bool {
        while !self.output.is_empty() {
            match self.wire.write(&self.output) {
                Ok(0) => return false,
                Ok(length) => drop(self.output.drain(..length)),
                Err(error) if is_transient(&error) => break,
                Err(_) => return false,
            }
        }
        self.wire.flush().is_ok()
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// The words of a request: an array of bulk strings, and nothing else.
fn split(request: Reply<'_>) -> Option<Vec<&[u8]>> {
    let word = |element| match element {
        Reply::Bulk(bytes) => bytes,
        _ => None,
    };
    match request {
        // Servers pass over the null array without a word.
        Reply::Array(None) => Some(Vec::new()),
        Reply::Array(Some(elements)) => elements.map(word).collect(),
        _ => None,
    }
}
