//! What is encoded is what is decoded.
//!
//! Input: [`Cuts`], whether there is anything long, then commands and replies until the bytes are
//! used up. A command is encoded by the library, a reply by [`Tree`]; all of them are in one
//! buffer, one behind the other. Rules:
//! 1. Decoding returns exactly these, in this order.
//! 2. Where one of them breaks a limit, it is the first error, and the error of that limit: the
//!    limits are neither stricter nor laxer than their numbers. What to expect is reckoned here
//!    from the limits alone.

use super::decoder::{self, Decoded};
use super::{Cuts, Input, Tree};
use quorumlock::fault::protocol_error::ProtocolError;
use quorumlock::protocol::resp::{self, MAX_ARRAY, MAX_BULK, MAX_LINE, MAX_REPLY};

/// Long strings and arrays per input that has any: enough to reach the limit of a whole reply. Most
/// inputs have none and are quick.
const LONG: usize = 3;
/// Items per input.
const ITEMS: usize = 100;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let mut cuts = Cuts::read(&mut input);
    let long_left = if input.byte() == 255 { LONG } else { 0 };
    let mut maker = Maker { input, long_left };
    let mut bytes = Vec::new();
    let mut expected = Decoded {
        replies: Vec::new(),
        end: Ok(()),
    };
    for _ in 0..ITEMS {
        if maker.input.is_empty() || expected.end.is_err() {
            break;
        }
        let start = bytes.len();
        let tree = if maker.input.byte().is_multiple_of(2) {
            let arguments = maker.arguments();
            let borrowed: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
            resp::encode(&mut bytes, &borrowed);
            Tree::Array(Some(
                arguments
                    .into_iter()
                    .map(|argument| Tree::Bulk(Some(argument)))
                    .collect(),
            ))
        } else {
            let tree = maker.tree(0);
            tree.write(&mut bytes);
            tree
        };
        match within_limits(&tree, false, 0) {
            Ok(length) => expected.replies.push((tree, length)),
            Err(error) => expected.end = Err(error),
        }
        assert!(
            expected.end.is_err()
                || expected
                    .replies
                    .last()
                    .is_some_and(|last| last.1 == bytes.len() - start)
        );
    }
    // Not by `assert_eq`, which would show megabytes.
    let decoded = decoder::check(&bytes, &mut cuts);
    assert_eq!(
        decoded.end,
        expected.end,
        "after {} of {} replies",
        decoded.replies.len(),
        expected.replies.len()
    );
    for (at, (decoded, expected)) in decoded.replies.iter().zip(&expected.replies).enumerate() {
        assert!(
            decoded == expected,
            "item {at} came back as something else, {} bytes for {}",
            decoded.1,
            expected.1
        );
    }
    assert_eq!(decoded.replies.len(), expected.replies.len());
}

struct Maker<'i> {
    input: Input<'i>,
    long_left: usize,
}

impl Maker<'_> {
    fn arguments(&mut self) -> Vec<Vec<u8>> {
        let count = self.count();
        (0..count).map(|_| self.string()).collect()
    }

    /// A reply of up to one level too many.
    fn tree(&mut self, depth: usize) -> Tree {
        match self.input.byte() % 8 {
            0 => Tree::Simple(self.text()),
            1 => Tree::Error(self.text()),
            2 => Tree::Integer(self.integer()),
            3 => Tree::Bulk(Some(self.string())),
            4 => Tree::Bulk(None),
            5 => Tree::Array(None),
            _ if depth > 1 => Tree::Integer(0),
            _ => {
                let count = self.count();
                Tree::Array(Some((0..count).map(|_| self.tree(depth + 1)).collect()))
            }
        }
    }

    /// How many elements: mostly few, sometimes as many as there may be, or one more.
    fn count(&mut self) -> usize {
        match self.input.byte() {
            long @ 254.. if self.long_left > 0 => {
                self.long_left -= 1;
                MAX_ARRAY + usize::from(long - 254)
            }
            // No elements of elements of elements out of nothing.
            _ if self.input.is_empty() => 0,
            few => usize::from(few % 8),
        }
    }

    fn integer(&mut self) -> i64 {
        match self.input.byte() {
            255 => i64::MIN,
            254 => i64::MAX,
            253 => self.input.number() as i64,
            small => i64::from(small as i8),
        }
    }

    /// Any bytes: mostly few, sometimes about as many as there may be.
    fn string(&mut self) -> Vec<u8> {
        let near = |limit: usize, more: u8| limit - 2 + usize::from(more % 4);
        match self.input.byte() {
            255 if self.long_left > 0 => {
                self.long_left -= 1;
                let byte = self.input.byte();
                vec![byte; near(MAX_BULK, self.input.byte())]
            }
            254 if self.long_left > 0 => {
                self.long_left -= 1;
                let byte = self.input.byte();
                vec![byte; near(MAX_LINE, self.input.byte())]
            }
            few => self.input.take(usize::from(few % 64)).to_vec(),
        }
    }

    /// The same without line ends.
    fn text(&mut self) -> Vec<u8> {
        self.string()
            .into_iter()
            .filter(|byte| !b"\r\n".contains(byte))
            .collect()
    }
}

/// The position behind a tree that begins at `position` of a reply, in an array if so, or the first
/// limit that it breaks.
fn within_limits(tree: &Tree, is_element: bool, position: usize) -> Result<usize, ProtocolError> {
    let after = |position: usize, length: usize| {
        let position = position + length;
        if position > MAX_REPLY {
            Err(ProtocolError::ReplyTooLong)
        } else {
            Ok(position)
        }
    };
    let header = |length: usize| after(position, format!("*{length}\r\n").len());
    match tree {
        Tree::Array(_) if is_element => Err(ProtocolError::TooDeep),
        Tree::Error(_) | Tree::Simple(_) if is_element => Err(ProtocolError::UnexpectedReply),
        Tree::Array(None) | Tree::Bulk(None) => after(position, "*-1\r\n".len()),
        Tree::Array(Some(elements)) if elements.len() > MAX_ARRAY => {
            Err(ProtocolError::ArrayTooLong)
        }
        Tree::Array(Some(elements)) => elements
            .iter()
            .try_fold(header(elements.len())?, |position, element| {
                within_limits(element, true, position)
            }),
        Tree::Bulk(Some(bytes)) if bytes.len() > MAX_BULK => Err(ProtocolError::BulkTooLong),
        Tree::Bulk(Some(bytes)) => after(header(bytes.len())?, bytes.len() + 2),
        Tree::Error(text) | Tree::Simple(text) if text.len() > MAX_LINE => {
            Err(ProtocolError::LineTooLong)
        }
        Tree::Error(text) | Tree::Simple(text) => after(position, 1 + text.len() + 2),
        Tree::Integer(number) => after(position, format!(":{number}\r\n").len()),
    }
}
