//! What the fuzz targets do with an input. The ordinary tests compile these files too and run them
//! on inputs of their own (`tests/it/fuzz_bodies.rs`), so that they cannot rot between two fuzzing
//! runs.
//!
//! Each body is a function `run` from bytes to nothing that panics when a rule is broken. It reads
//! its choices from an [`Input`], front to back: a byte inserted or changed shifts or changes one
//! choice, which is what a fuzzer's mutations need, and every sequence of bytes means something.

// Each target uses one of the bodies.
#![allow(dead_code)]

pub(crate) mod decoder;
pub(crate) mod endpoint;
pub(crate) mod lease;
pub(crate) mod renewal;
pub(crate) mod round_trip;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod stored;
pub(crate) mod subscription;

use quorumlock::protocol::resp::Reply;

/// Choices, read from bytes. When the bytes are used up, every further choice is the first one.
pub(crate) struct Input<'i> {
    rest: &'i [u8],
}

impl<'i> Input<'i> {
    pub(crate) fn new(bytes: &'i [u8]) -> Input<'i> {
        Input { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// The next so many bytes, or as many as are left.
    pub(crate) fn take(&mut self, count: usize) -> &'i [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// A number of eight bytes.
    pub(crate) fn number(&mut self) -> u64 {
        self.take(8)
            .iter()
            .rev()
            .fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    pub(crate) fn rest(self) -> &'i [u8] {
        self.rest
    }
}

/// How a stream of bytes is cut: a few lengths, used over and over, so that cuts fall everywhere
/// however long it is.
pub(crate) struct Cuts {
    lengths: Vec<u8>,
    next: usize,
}

impl Cuts {
    pub(crate) fn read(input: &mut Input<'_>) -> Cuts {
        let count = usize::from(input.byte() % 8);
        Cuts {
            lengths: input.take(count).to_vec(),
            next: 0,
        }
    }

    /// The length of the next piece when so much is left: at least one, unless nothing is left.
    pub(crate) fn piece(&mut self, left: usize) -> usize {
        let length = self
            .lengths
            .get(self.next % self.lengths.len().max(1))
            .copied()
            .unwrap_or(0);
        self.next += 1;
        match length {
            0 => left,
            // Beyond that, in kilobytes: a reply of a megabyte is not looked at a thousand times.
            length if length < 128 => usize::from(length).min(left),
            length => ((usize::from(length) - 127) * 1024).min(left),
        }
    }
}

/// A reply that owns its bytes, and can be written as a server would write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    Array(Option<Vec<Tree>>),
    Bulk(Option<Vec<u8>>),
    Error(Vec<u8>),
    Integer(i64),
    Simple(Vec<u8>),
}

impl Tree {
    /// Reads a reply to its leaves.
    pub(crate) fn of(reply: Reply<'_>) -> Tree {
        match reply {
            Reply::Array(elements) => {
                Tree::Array(elements.map(|elements| elements.map(Tree::of).collect()))
            }
            Reply::Bulk(bytes) => Tree::Bulk(bytes.map(<[u8]>::to_vec)),
            Reply::Error(text) => Tree::Error(text.to_vec()),
            Reply::Integer(number) => Tree::Integer(number),
            Reply::Simple(text) => Tree::Simple(text.to_vec()),
        }
    }

    /// Appends the one way in which a server may write it.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut line = |kind: u8, text: &[u8]| out.extend([&[kind], text, b"\r\n"].concat());
        match self {
            Tree::Array(None) => line(b'*', b"-1"),
            Tree::Array(Some(elements)) => {
                line(b'*', elements.len().to_string().as_bytes());
                elements.iter().for_each(|element| element.write(out));
            }
            Tree::Bulk(None) => line(b'$', b"-1"),
            Tree::Bulk(Some(bytes)) => {
                line(b'$', bytes.len().to_string().as_bytes());
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Tree::Error(text) => line(b'-', text),
            Tree::Integer(number) => line(b':', number.to_string().as_bytes()),
            Tree::Simple(text) => line(b'+', text),
        }
    }
}
