//! One client of the embedded node: bytes in, requests to the store, bytes out.
//!
//! Nothing here blocks, and every buffer is bounded: an unfinished request by the limits of the
//! decoder, unsent replies by [`MAX_UNSENT`], beyond which neither the socket is read nor another
//! request answered until the client has taken some.

use std::io;
use std::net::TcpStream;

use super::reply;
use super::store::{ClientState, Message, Millis, Store};
use super::wire::{Protection, Wire};
use crate::protocol::resp::{Decoder, MAX_ARRAY, Reply};

/// Unsent replies at which a client that does not read is no longer read. One reply may go over it.
const MAX_UNSENT: usize = 256 * 1024;

/// One accepted connection.
pub(super) struct Connection {
    wire: Wire,
    session: ClientState,
    decoder: Decoder,
    /// Bytes received and not yet understood.
    input: Vec<u8>,
    output: Vec<u8>,
    /// How much of `output` has been sent.
    sent: usize,
    /// `input` may hold requests that were left unanswered because `output` was full.
    backlogged: bool,
    /// After a protocol error: send what there is to send, then close.
    closing: bool,
}

impl Connection {
    /// Takes over a stream that was just accepted.
    pub(super) fn new(stream: TcpStream, protection: &Protection) -> io::Result<Connection> {
        Ok(Connection {
            wire: Wire::new(stream, protection)?,
            session: ClientState::default(),
            decoder: Decoder::default(),
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
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
        self.unsent() > 0 || self.wire.has_unsent()
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
        self.unsent() <= 4 * MAX_UNSENT && self.send()
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
            if self.unsent() >= MAX_UNSENT {
                self.backlogged = true;
                break;
            }
            let mut words = [b"".as_slice(); MAX_ARRAY];
            let count = match self.decoder.decode(&self.input[position..]) {
                Ok(None) => break,
                Ok(Some((request, length))) => {
                    position += length;
                    split(request, &mut words)
                }
                Err(_) => None,
            };
            if let Some(count) = count {
                let words = &words[..count];
                store.execute(&mut self.session, words, now, &mut self.output);
            } else {
                reply::error(&mut self.output, NOT_A_REQUEST);
                self.closing = true;
            }
        }
        self.input.drain(..position);
    }

    /// Sends what the socket takes; false when the client is gone.
    fn send(&mut self) -> bool {
        while self.sent < self.output.len() {
            match self.wire.write(&self.output[self.sent..]) {
                Ok(0) => return false,
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_transient(&error) => break,
                Err(_) => return false,
            }
        }
        self.output.drain(..self.sent);
        self.sent = 0;
        self.wire.flush().is_ok()
    }

    fn unsent(&self) -> usize {
        self.output.len() - self.sent
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// The words of a request: an array of bulk strings, and nothing else.
fn split<'b>(request: Reply<'b>, words: &mut [&'b [u8]; MAX_ARRAY]) -> Option<usize> {
    let elements = match request {
        // Servers pass over the null array without a word.
        Reply::Array(None) => return Some(0),
        Reply::Array(Some(elements)) => elements,
        _ => return None,
    };
    let mut count = 0;
    for (element, word) in elements.zip(words) {
        let Reply::Bulk(Some(bytes)) = element else {
            return None;
        };
        *word = bytes;
        count += 1;
    }
    Some(count)
}

const NOT_A_REQUEST: &str = "ERR Protocol error: expected an array of bulk strings";
