//! What is particular to a kind of lock on the wire, as data: each kind has one [`Wire`].

use super::key_kind::KeyKind;
use crate::algorithm::fence::FencingToken;
use crate::algorithm::lease::OwnerToken;
use crate::fault::protocol_error::ProtocolError;
use crate::protocol::form::Answer;
use crate::protocol::operation::Operation;
use crate::protocol::resp::{self, Reply};
use crate::protocol::script::Script;
use std::fmt;

/// What is particular to a kind.
#[derive(Clone, Copy)]
pub(in crate::protocol) struct Wire {
    pub(in crate::protocol) keys: &'static KeyKind,
    pub(in crate::protocol) script: Script,
    /// Whether its key holds nothing but a signature: any library understands it. It is acquired by
    /// `SET`, and extended by a script of its own.
    pub(in crate::protocol) is_token_only: bool,
    /// Whether the label is sent together with the token.
    pub(in crate::protocol) has_label: bool,
    /// The commands that a user needs to acquire it, to extend it or raise its number, and to
    /// release it, for messages.
    pub(in crate::protocol) needs: [&'static str; 3],
    /// The verb that ends a hold after some time.
    pub(in crate::protocol) keep: &'static [u8],
    /// The verb that raises the number.
    pub(in crate::protocol) raise: &'static [u8],
    /// Appends what each verb has behind the words that all kinds have.
    pub(in crate::protocol) write_tail: fn(&mut Words<'_>, &Operation),
    /// The meaning of a reply that grants, extends or raises, or of one that does not.
    pub(in crate::protocol) meaning:
        fn(AskedVerb, Option<FencingToken>, Reply<'_>) -> Result<Answer, ProtocolError>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire")
            .field("script", &self.script.sha1)
            .finish_non_exhaustive()
    }
}

/// A verb, as far as the meaning of a reply depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) enum AskedVerb {
    Acquire,
    Extend,
    Leave,
    Raise,
    Release,
    Take {
        stores_only: bool,
        /// Whether it is a fault that the node has no queue for the call.
        needs_queue: bool,
        /// Whether it can be asked by `SET` where there are no scripts. Without scripts there is no
        /// queue.
        may_go_by_set: bool,
    },
}

/// Words of the longest request, behind the key.
const MOST_WORDS: usize = 12;

/// A word of a request.
#[derive(Clone, Copy)]
pub(in crate::protocol) enum Word<'w> {
    Text(&'w [u8]),
    Number(u64),
    /// The token's digits.
    Token(&'w OwnerToken),
    /// The same, with the label if there is one.
    Value(&'w OwnerToken),
}

/// The words of one request, behind the key.
pub(in crate::protocol) struct Words<'w> {
    words: [Word<'w>; MOST_WORDS],
    count: usize,
}

impl<'w> Words<'w> {
    pub(in crate::protocol) fn new() -> Words<'w> {
        Words {
            words: [Word::Number(0); MOST_WORDS],
            count: 0,
        }
    }

    pub(in crate::protocol) fn extend(&mut self, more: &[Word<'w>]) {
        self.words[self.count..][..more.len()].copy_from_slice(more);
        self.count += more.len();
    }

    /// Leaves out empty words at the end.
    pub(in crate::protocol) fn trim(&mut self) {
        while let Some(Word::Text([])) = self.as_slice().last() {
            self.count -= 1;
        }
    }

    pub(in crate::protocol) fn as_slice(&self) -> &[Word<'w>] {
        &self.words[..self.count]
    }
}

impl Word<'_> {
    pub(in crate::protocol) fn push(self, out: &mut Vec<u8>) {
        match self {
            Word::Text(text) => resp::push(out, text),
            Word::Number(number) => resp::push(out, resp::decimal(number, &mut [0; 20])),
            Word::Token(token) => resp::push(out, &token.digits()),
            Word::Value(token) => push_value(out, token),
        }
    }
}

/// Appends the value that signs a key: the token's digits, and behind a space the label, if there
/// is one.
pub(super) fn push_value(out: &mut Vec<u8>, token: &OwnerToken) {
    match token.label().as_bytes() {
        [] => resp::push(out, &token.digits()),
        label => resp::push_joined(out, &[&token.digits(), b" ", label]),
    }
}
