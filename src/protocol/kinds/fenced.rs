//! What a node is asked about the key of a fenced lock, and what its reply means (rules, section
//! 6).
//!
//! ```text
//!    the key is             acquire          extend           raise            its reply is
//!    free, or has ended     Fence            Absent           Refused          the fence; :0
//!    ours                   Fence            Granted          Granted          the fence; :1
//!    another token's        Held             Refused          Refused          :-4 - n; :-1
//!    not a fenced lock      UnexpectedValue  UnexpectedValue  UnexpectedValue  :-2
//!    free, its fence ahead  FenceAhead       -                -                :-3
//!    ours, raised too far   -                -                FenceAhead       :-3
//! ```
//!
//! `:-4 - n` reports that the lock is held for n milliseconds more. At `:-2` and `:-3` the node
//! does not touch what the key holds. To take the lock in turn, and to release it, is asked as of
//! any lock: [`queue`](crate::protocol::queue).
//!
//! All is one script, [`SCRIPT`], because no command does it. A server that has executed it once on
//! a connection is called by the script's hash from then on, unless it keeps forgetting. A node
//! without scripts, or one that does not let our user run them, cannot hold fenced locks:
//! [`Cause::NoScripts`].
//!
//! ```text
//!    value    FENCE DEADLINE [TOKEN [LABEL [MORE]]]    milliseconds of the node's clock, the last one included
//! ```

use super::key_kind::{Hold, KeyKind, StoredLock};
use super::number::{number, positive};
use super::plain::Signature;
use super::wire::{AskedVerb, Wire, Word, Words};
use crate::algorithm::fence::FencingToken;
use crate::algorithm::vote::Vote;
use crate::fault::Cause;
use crate::fault::protocol_error::ProtocolError;
use crate::protocol::form::Answer;
use crate::protocol::operation::{Operation, Verb};
use crate::protocol::resp::Reply;
use crate::protocol::script::{Script, script};
use std::time::Duration;

/// `EVAL SCRIPT 1 key verb token …`.
pub const SCRIPT: Script = Script {
    text: script!(
        "../lua/fence_key.lua",
        "../lua/fenced.lua",
        "../lua/mutex.lua",
        "../lua/queue.lua"
    ),
    sha1: "f005eeb800a49affcd720e1069a2f30021858943",
    index: 0,
};

/// Its key outlives the lock, to keep the fence.
pub static KEYS: KeyKind = KeyKind {
    marker: "quorumlock-fence:",
    title: "fenced lock",
    word: "fenced",
    script: SCRIPT,
    parse,
    trial: &[
        "TIME",
        "EVAL SCRIPT 1 KEY acquire TOKEN TTL TTL 1",
        "EVAL SCRIPT 1 KEY release TOKEN NONE NONE TTL",
    ],
};

pub(super) static WIRE: Wire = Wire {
    keys: &KEYS,
    script: SCRIPT,
    is_token_only: false,
    has_label: true,
    needs: ["EVAL with GET, SET and TIME"; 3],
    keep: b"extend",
    raise: b"raise",
    write_tail,
    meaning,
};

fn write_tail(words: &mut Words<'_>, operation: &Operation) {
    let retention = Word::Number(operation.retention_millis);
    let least = Word::Number(operation.kind.fence().map_or(0, FencingToken::get));
    match operation.verb {
        Verb::Acquire { .. } | Verb::Take { .. } => words.extend(&[retention, least]),
        Verb::Extend { .. } | Verb::Keep { .. } | Verb::Release(_) => words.extend(&[retention]),
        Verb::Raise => words.extend(&[least, retention]),
        Verb::Leave(_) => {}
    }
}

/// The meaning of a reply about a lock with numbers: also of the writer of a read-write lock.
pub(super) fn meaning(
    verb: AskedVerb,
    least: Option<FencingToken>,
    reply: Reply<'_>,
) -> Result<Answer, ProtocolError> {
    use AskedVerb::{Acquire, Extend, Raise, Take};
    Ok(match (verb, least, reply) {
        (Acquire | Take { .. }, Some(least), Reply::Bulk(Some(digits))) => answer(least, digits),
        (Acquire | Take { .. } | Raise, _, Reply::Integer(-3)) => Answer::fault(Cause::FenceAhead),
        // It is refused through the last millisecond.
        (Acquire, _, Reply::Integer(left @ ..=-4)) => {
            Answer::Held(Duration::from_millis(left.unsigned_abs() - 3))
        }
        (Extend | Raise, _, Reply::Integer(1)) => Answer::Vote(Vote::Granted),
        (Extend, _, Reply::Integer(0)) => Answer::Vote(Vote::Absent),
        (Extend, _, Reply::Integer(-1)) | (Raise, _, Reply::Integer(0 | -1)) => {
            Answer::Vote(Vote::Refused)
        }
        _ => return Err(ProtocolError::UnexpectedReply),
    })
}

/// The answer in the digits of a fence, to an attempt that wants this one at least.
fn answer(least: FencingToken, digits: &[u8]) -> Answer {
    match FencingToken::from_digits(digits) {
        // The node's own clock and value agree, and this machine's clock disagrees. If the fence
        // counted, the other nodes would be raised to it.
        Some(fence) if fence.is_ahead_of(least) => Answer::fault(Cause::FenceAhead),
        Some(fence) => Answer::Fence(fence),
        // It is made of what is stored under the key: damage there is no fault of the connection.
        None => Answer::fault(Cause::UnexpectedValue),
    }
}

fn parse(value: &[u8]) -> Option<StoredLock> {
    let FencedValue {
        fence,
        deadline,
        owner,
    } = FencedValue::parse(value)?;
    let hold = owner.is_held().then(|| Hold {
        deadline,
        signature: owner.text(),
    });
    let holds = hold.into_iter().collect();
    Some(StoredLock {
        holds,
        label: owner.label(),
        is_read: false,
        fence,
        kept: u64::MAX,
    })
}

/// What is stored under the key of a fenced lock.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FencedValue {
    /// The last fence that the node has given out.
    pub fence: u64,
    /// Until when it is held, in milliseconds of the node's clock.
    pub deadline: u64,
    /// Which client holds it, if one does.
    pub owner: Signature,
}

impl FencedValue {
    /// None for a value that no fenced lock has.
    pub fn parse(value: &[u8]) -> Option<FencedValue> {
        let mut fields = value.splitn(3, |&byte| byte == b' ');
        let fence = positive(fields.next()?)?;
        let deadline = number(fields.next()?)?;
        Some(FencedValue {
            fence,
            deadline,
            owner: Signature::parse_any(fields.next()?)?,
        })
    }

    /// The text, as it is stored.
    pub fn text(&self) -> Vec<u8> {
        [
            format!("{} {} ", self.fence, self.deadline).into_bytes(),
            self.owner.text(),
        ]
        .concat()
    }

    /// For how many milliseconds it is held after this time of the node's clock: through the last
    /// one of its time.
    pub fn left(&self, now: u64) -> u64 {
        if self.owner.is_held() {
            self.deadline.saturating_add(1).saturating_sub(now)
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests;
