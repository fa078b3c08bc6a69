//! A lock whose key holds its signature alone: a plain lock, and a [slot of a
//! semaphore](super::permit).
//!
//! ```text
//!    value    TOKEN           40 digits
//!             TOKEN LABEL     1 to 64 visible ASCII characters
//!             TOKEN [LABEL] MORE    what a later version adds, behind a space of its own
//!
//!    the key is        the reply to SET    to EXTEND            the vote
//!    free              +OK                 :0                   Granted; Absent
//!    ours              null                :1                   Refused; Granted
//!    another token's   null                :-1, -WRONGTYPE      Refused
//! ```
//!
//! It is acquired by `SET key token NX PX ttl`, and otherwise asked by its script:
//! [`queue`](crate::protocol::queue) has the replies.
//!
//! [`EXTEND`] extends with `PEXPIRE`: a server whose memory is full refuses `SET` and would let a
//! lock run out that it holds. It creates no key, so an extension that runs late, after the release
//! of its lock, does nothing. But it sets the time to live to what it was asked for, even if that
//! is less than was left. A holder that asks for less must rely on the shorter lease from then on,
//! even if too few nodes answer: those that did not may have done it.

use super::key_kind::{Hold, KeyKind, StoredLock};
use super::wire::{AskedVerb, Wire, push_value};
use crate::algorithm::fence::FencingToken;
use crate::algorithm::label::HolderLabel;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::vote::Vote;
use crate::fault::protocol_error::ProtocolError;
use crate::protocol::error_reply::ErrorReply;
use crate::protocol::form::Answer;
use crate::protocol::resp::{self, Reply};
use crate::protocol::script::{Script, script};

/// Compare and extend: `EVAL EXTEND 1 key token ttl_ms` → `:1` extended, `:0` no such key, `:-1`
/// another token.
pub const EXTEND: &str = script!("../lua/extend.lua");

/// All but `SET NX PX` and [`EXTEND`]: `EVAL SCRIPT 1 key verb token …`.
pub const SCRIPT: Script = Script {
    text: script!(
        "../lua/plain_names.lua",
        "../lua/token_key.lua",
        "../lua/plain.lua",
        "../lua/mutex.lua",
        "../lua/queue.lua"
    ),
    sha1: "ee94a30c2be48e8602b8d2cd629c49c9dd7fdf00",
    index: 2,
};

/// Its key is its full name: also for a slot of a semaphore, for a lock of a set, and for a fair
/// lock.
pub static KEYS: KeyKind = KeyKind {
    marker: "",
    title: "lock",
    word: "plain",
    script: SCRIPT,
    parse,
    trial: &[],
};

pub(super) static WIRE: Wire = Wire {
    keys: &KEYS,
    script: SCRIPT,
    is_token_only: true,
    has_label: true,
    needs: ["SET", "EVAL with GET and PEXPIRE", "EVAL with GET and DEL"],
    keep: b"extend",
    raise: b"",
    write_tail: |_, _| {},
    meaning,
};

/// Asks for the lock: `SET key token NX PX ttl`.
pub fn acquire(out: &mut Vec<u8>, key: &[u8], token: &OwnerToken, ttl_millis: u64) {
    // What is the same each time is not encoded each time.
    out.extend_from_slice(b"*6\r\n$3\r\nSET\r\n");
    resp::push(out, key);
    push_value(out, token);
    out.extend_from_slice(b"$2\r\nNX\r\n$2\r\nPX\r\n");
    resp::push(out, resp::decimal(ttl_millis, &mut [0; 20]));
}

/// The vote in a reply to [`acquire`]. Only `+OK` is a grant, only the null string a refusal (rule
/// 2.3).
///
/// # Errors
/// A reply that `SET` never returns.
#[inline]
pub fn acquire_vote(reply: Reply<'_>) -> Result<Vote, ProtocolError> {
    match reply {
        Reply::Simple(b"OK") => Ok(Vote::Granted),
        Reply::Bulk(None) => Ok(Vote::Refused),
        Reply::Error(text) => Ok(Vote::Fault(ErrorReply::read(text).fault("SET"))),
        _ => Err(ProtocolError::UnexpectedReply),
    }
}

/// Lets the key live for `ttl_millis` from now on if it is ours.
pub fn extend(out: &mut Vec<u8>, key: &[u8], token: &OwnerToken, ttl_millis: u64) {
    resp::begin(out, 6);
    for word in [b"EVAL", EXTEND.as_bytes(), b"1", key] {
        resp::push(out, word);
    }
    push_value(out, token);
    let mut digits = [0; 20];
    resp::push(out, resp::decimal(ttl_millis, &mut digits));
}

fn meaning(
    verb: AskedVerb,
    _: Option<FencingToken>,
    reply: Reply<'_>,
) -> Result<Answer, ProtocolError> {
    Ok(Answer::Vote(match (verb, reply) {
        (AskedVerb::Take { .. } | AskedVerb::Extend, Reply::Integer(1)) => Vote::Granted,
        (AskedVerb::Extend, Reply::Integer(0)) => Vote::Absent,
        (AskedVerb::Extend, Reply::Integer(-1)) => Vote::Refused,
        _ => return Err(ProtocolError::UnexpectedReply),
    }))
}

fn parse(value: &[u8]) -> Option<StoredLock> {
    let signature = Signature::parse(value)?;
    let holds = vec![Hold {
        deadline: Hold::KEY_END,
        signature: value.to_vec(),
    }];
    Some(StoredLock {
        holds,
        label: signature.label(),
        is_read: false,
        fence: 0,
        kept: 0,
    })
}

/// Bytes of the longest label with what a later version adds and the spaces: what is longer is
/// damage.
const LONGEST_LABEL: usize = 256;

/// What names the holder in the value of a key: an owner token, and the label of its client.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Signature {
    /// 40 digits, which release the lock. Empty: no client holds it.
    pub token: Vec<u8>,
    /// Empty, or a space and the label, and behind another space what a later version adds.
    label: Vec<u8>,
}

impl Signature {
    /// What a plain lock has as its value. None for a value that this library does not write.
    pub fn parse(value: &[u8]) -> Option<Signature> {
        Signature::parse_any(value).filter(Signature::is_held)
    }

    /// The same for a key that also exists while no client holds the lock.
    pub(super) fn parse_any(text: &[u8]) -> Option<Signature> {
        let signature = Signature::split(
            text,
            text.iter()
                .position(|&byte| byte == b' ')
                .unwrap_or(text.len()),
        );
        let is_token = !signature.is_held() || OwnerToken::from_digits(&signature.token).is_some();
        let is_visible = |byte: &u8| matches!(byte, b' '..=b'~');
        let is_label = match signature.label.len() {
            0 => true,
            length => {
                (2..=LONGEST_LABEL).contains(&length) && signature.label.iter().all(is_visible)
            }
        };
        (is_token && is_label).then_some(signature)
    }

    /// What a client signs with, as it sends that.
    pub fn of_request(text: &[u8]) -> Signature {
        Signature::split(text, text.len().min(OwnerToken::LENGTH))
    }

    fn split(text: &[u8], length: usize) -> Signature {
        let (token, label) = text.split_at(length);
        Signature {
            token: token.to_vec(),
            label: label.to_vec(),
        }
    }

    /// Whether a client holds the lock.
    pub fn is_held(&self) -> bool {
        !self.token.is_empty()
    }

    /// The label of the holder.
    pub fn label(&self) -> HolderLabel {
        let label = self.label.split(|&byte| byte == b' ').nth(1);
        label
            .and_then(HolderLabel::new)
            .unwrap_or(HolderLabel::NONE)
    }

    /// The text, as it is stored.
    pub fn text(&self) -> Vec<u8> {
        [&self.token[..], &self.label].concat()
    }
}

#[cfg(test)]
mod tests;
