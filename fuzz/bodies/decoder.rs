//! Bytes from a server that may send anything, cut by a network that may cut anywhere.
//!
//! Input: [`Cuts`], then the bytes. Rules:
//! 1. Fed in pieces, the bytes mean what they mean in one piece: the same replies, then the same
//!    error or the same rest.
//! 2. A reply consumes what it is made of: no byte beyond the buffer, and no byte less or more
//!    decides what it contains.
//! 3. Every reply can be read to its leaves, and written again it is the very bytes that it was
//!    read from. Strict parsing has one spelling for everything.
//! 4. What waits for more bytes does not wait for ever: no buffer outgrows the limits.

use super::{Cuts, Input, Tree};
use quorumlock::fault::protocol_error::ProtocolError;
use quorumlock::protocol::resp::{self, MAX_BULK, MAX_REPLY};

/// More than this is never waited on: a reply one byte short of its limit, and a bulk string that
/// reaches beyond it.
const MOST_INCOMPLETE: usize = MAX_REPLY + MAX_BULK + 2;

/// What bytes amount to: the length and meaning of each reply, then why it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) replies: Vec<(Tree, usize)>,
    pub(crate) end: Result<(), ProtocolError>,
}

pub(crate) fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let mut cuts = Cuts::read(&mut input);
    check(input.rest(), &mut cuts);
}

/// Decodes all of `bytes`, checks the rules, and returns what the bytes amount to.
pub(crate) fn check(bytes: &[u8], cuts: &mut Cuts) -> Decoded {
    let whole = feed(bytes, |left| left);
    let pieces = feed(bytes, |left| cuts.piece(left));
    assert_eq!(whole, pieces, "the meaning depends on the cuts");
    let mut start = 0;
    for (tree, length) in &whole.replies {
        let reply = &bytes[start..start + length];
        start += length;
        let Ok(Some((alone, consumed))) = resp::decode(reply) else {
            panic!("a reply needs what follows it")
        };
        assert!(
            (&Tree::of(alone), consumed) == (tree, *length),
            "a reply is changed by what follows it"
        );
        assert_eq!(
            resp::decode(&reply[..length - 1]),
            Ok(None),
            "a reply needs its last byte"
        );
        let mut written = Vec::new();
        tree.write(&mut written);
        assert!(written == reply, "a reply with two spellings: {tree:?}");
    }
    assert!(
        whole.end.is_err() || bytes.len() - start < MOST_INCOMPLETE,
        "an endless reply is waited for"
    );
    whole
}

fn feed(bytes: &[u8], mut piece: impl FnMut(usize) -> usize) -> Decoded {
    let mut decoded = Decoded {
        replies: Vec::new(),
        end: Ok(()),
    };
    let mut start = 0;
    let mut end = 0;
    while end < bytes.len() {
        end += piece(bytes.len() - end);
        loop {
            match resp::decode(&bytes[start..end]) {
                Ok(None) => break,
                Ok(Some((reply, length))) => {
                    assert!(
                        (1..=end - start).contains(&length),
                        "{length} bytes consumed of {}",
                        end - start
                    );
                    decoded.replies.push((Tree::of(reply), length));
                    start += length;
                }
                Err(error) => {
                    decoded.end = Err(error);
                    return decoded;
                }
            }
        }
    }
    decoded
}
