//! What a node is asked about the key of a read-write lock, and what its reply means (rules,
//! section 14).
//!
//! ```text
//!    the key has          acquire, read    acquire, write   extend           raise       its reply is
//!    no hold              Granted          Granted          Absent           Refused     :1; :0
//!    readers, not us      Granted          Held             Absent, Refused  Refused     :1; :-4 - n; :0, :-1
//!    64 readers, not us   Held             Held             Absent, Refused  Refused     :-4 - n; :0, :-1
//!    a writer, not us     Held             Held             Refused          Refused     :-4 - n; :-1; :0
//!    us, as a reader      Granted          Held             Granted as such  Refused     :1; :-1
//!    us, as the writer    Granted          Granted          Granted          Granted     :1
//!    no read-write lock   UnexpectedValue  UnexpectedValue  UnexpectedValue  as before   :-2
//!    a number ahead       as above         FenceAhead       as above         FenceAhead  :-3
//! ```
//!
//! A writer that asks for a number is answered that, in place of `:1`; one that does not is never
//! answered `:-3`. An extension that asks for a writer's hold is refused for one that is a
//! reader's: it was sent before the downgrade. A raise is such an extension, by no time and to a
//! number. `:-4 - n` reports that the node refuses for n milliseconds more. Calls take the lock in
//! turn, by [`queue`](crate::protocol::queue): what is granted is the same, where no entry is in
//! front that excludes it. Only a repair acquires, whichever calls wait.
//!
//! ```text
//!    value    [f FENCE DEADLINE] w DEADLINE TOKEN          a writer has the lock
//!             [f FENCE DEADLINE] r DEADLINE:TOKEN …        readers have it
//!             f FENCE DEADLINE                             no client has it, and the number is kept
//!             … +MORE                                      what a later version adds
//! ```
//!
//! A deadline is the last millisecond of the node's clock that counts.
//!
//! # Why a writer is alone
//!
//! 1. A client is inside its lease only while a quorum of nodes has an entry of it that has not
//!    ended: a node counts an entry's time from when it runs the command, which is after the client
//!    has begun to count, and clocks differ by no more than the drift that was taken off.
//! 2. Two quorums have a node in common. Let a writer and another client be inside at once. Some
//!    node then has granted both, and it has run one command after the other.
//! 3. If the writer came second, the entry of the other one was there and had not ended: the node
//!    refuses. If the writer came first, its entry was there and had not ended: the node refuses a
//!    reader and a writer alike.
//! 4. An entry that is there is changed by commands with its own token alone. An extension acts on
//!    an entry that has not ended, and never on one that is gone: a node that has granted a writer
//!    since has no entry of ours. It makes no entry shorter, so one that arrives late takes nothing
//!    away. It makes no reader a writer, so an entry that others were let in beside stays a
//!    reader's.
//! 5. A downgraded writer counts as a reader from when it asks for that. A node that has not done
//!    it yet has a writer's entry, which refuses more.
//! 6. A node that has lost its entries does not vote until the leases that it knew have ended (rule
//!    7.4).
//!
//! `tests/proofs/readers_writers.smt2` proves points 3 and 4 of any number of clients, and has a
//! trace against each weaker rule: a node that ignores readers or a writer, an extension that
//! shortens an entry, sets again what has ended or makes a reader a writer, and a release of
//! another's entry. `exclusion.smt2` proves points 1 and 2, `wait.smt2` point 6.
//!
//! # Why the numbers of writers grow
//!
//! As for fenced locks, by the same exchange and the same proof:
//! [`fence`](crate::algorithm::fence). That asks for two things of a node.
//!
//! 1. Its number never falls while the key lasts: readers, writers without a number, releases and
//!    downgrades write it unchanged. What is not kept any more, or was lost, the floor makes up
//!    for.
//! 2. While it has a writer's entry of ours, no other client changes the number. A number is given
//!    out together with an entry, which no node grants beside ours. A raise asks for its own
//!    writer's entry. So before a node returns a number to the next writer, our entry has gone, or
//!    is a reader's that will have gone by then: from there on no raise of ours is run. Readers in
//!    between change nothing in that.

use super::fenced;
use super::key_kind::{Hold, KeyKind, StoredLock};
use super::number::{number, positive};
use super::wire::{AskedVerb, Wire, Word, Words};
use crate::algorithm::fence::FencingToken;
use crate::algorithm::kind::Kind;
use crate::algorithm::label::HolderLabel;
use crate::algorithm::lease::OwnerToken;
use crate::algorithm::vote::Vote;
use crate::fault::protocol_error::ProtocolError;
use crate::protocol::form::Answer;
use crate::protocol::operation::{Operation, Verb};
use crate::protocol::resp::Reply;
use crate::protocol::script::{Script, script};

/// `EVAL SCRIPT 1 key verb token …`.
pub const SCRIPT: Script = Script {
    text: script!("../lua/read_write.lua", "../lua/queue.lua"),
    sha1: "ea927fbd4286d17e804eaf417f831bb223544c47",
    index: 3,
};

/// Readers and writers have one key.
pub static KEYS: KeyKind = KeyKind {
    marker: "quorumlock-rw:",
    title: "read-write lock",
    word: "rw",
    script: SCRIPT,
    parse,
    trial: &[
        "TIME",
        "GET KEY",
        "DEL KEY",
        "PEXPIRE KEY TTL",
        "EVAL NOTHING 1 KEY",
    ],
};

pub(super) static WIRE: Wire = Wire {
    keys: &KEYS,
    script: SCRIPT,
    is_token_only: false,
    // It would count against the room of the key.
    has_label: false,
    needs: ["EVAL with GET, SET, DEL, PEXPIRE and TIME"; 3],
    keep: b"keep",
    raise: b"extend",
    write_tail,
    meaning,
};

fn write_tail(words: &mut Words<'_>, operation: &Operation) {
    if matches!(operation.verb, Verb::Leave(_) | Verb::Release(_)) {
        return;
    }
    if operation.verb == Verb::Raise {
        // It adds no time.
        words.extend(&[Word::Number(0)]);
    }
    words.extend(&[Word::Text(if operation.kind == Kind::Read {
        b"r"
    } else {
        b"w"
    })]);
    let Some(least) = operation.kind.fence() else {
        return;
    };
    words.extend(&[Word::Number(operation.retention_millis)]);
    if !matches!(operation.verb, Verb::Extend { .. } | Verb::Keep { .. }) {
        words.extend(&[Word::Number(least.get())]);
    }
}

fn meaning(
    verb: AskedVerb,
    least: Option<FencingToken>,
    reply: Reply<'_>,
) -> Result<Answer, ProtocolError> {
    match (verb, least, reply) {
        (AskedVerb::Acquire | AskedVerb::Take { .. }, None, Reply::Integer(1)) => {
            Ok(Answer::Vote(Vote::Granted))
        }
        (AskedVerb::Acquire | AskedVerb::Take { .. }, None, Reply::Integer(-3)) => {
            Err(ProtocolError::UnexpectedReply)
        }
        _ => fenced::meaning(verb, least, reply),
    }
}

fn parse(value: &[u8]) -> Option<StoredLock> {
    let ReadWriteValue {
        is_write,
        holds,
        fence,
        kept,
    } = ReadWriteValue::parse(value)?;
    Some(StoredLock {
        holds,
        label: HolderLabel::NONE,
        is_read: !is_write,
        fence,
        kept,
    })
}

/// What is stored under the key of a read-write lock.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ReadWriteValue {
    /// Whether a writer has the lock.
    pub is_write: bool,
    /// The writer, or the readers.
    pub holds: Vec<Hold>,
    /// The last number that a writer was given; 0 if there is none.
    pub fence: u64,
    /// Until when that is kept, in milliseconds of the node's clock.
    pub kept: u64,
}

impl ReadWriteValue {
    /// None for a value that no read-write lock has.
    pub fn parse(bytes: &[u8]) -> Option<ReadWriteValue> {
        if bytes.is_empty() {
            return None;
        }
        let bytes = without_more(bytes);
        if bytes.is_empty() {
            return Some(ReadWriteValue::default());
        }
        let mut words: Vec<&[u8]> = bytes.split(|&byte| byte == b' ').collect();
        let [mut fence, mut kept] = [0; 2];
        if let [b"f", last, deadline, ..] = words[..] {
            fence = positive(last)?;
            kept = number(deadline)?;
            words.drain(..3);
        }
        let hold = |deadline: &[u8], token: &[u8]| {
            OwnerToken::from_digits(token)?;
            Some(Hold {
                deadline: number(deadline)?,
                signature: token.to_vec(),
            })
        };
        let (is_write, holds) = match words[..] {
            [] => (false, Vec::new()),
            [b"w", deadline, token] => (true, vec![hold(deadline, token)?]),
            [b"r", ref readers @ ..] if !readers.is_empty() => {
                let read = |word: &&[u8]| {
                    let colon = word.iter().position(|&byte| byte == b':')?;
                    hold(&word[..colon], &word[colon + 1..])
                };
                (false, readers.iter().map(read).collect::<Option<_>>()?)
            }
            _ => return None,
        };
        Some(ReadWriteValue {
            is_write,
            holds,
            fence,
            kept,
        })
    }

    /// The text, as it is stored.
    pub fn text(&self) -> Vec<u8> {
        let mut words = Vec::new();
        let separator = if self.is_write { ' ' } else { ':' };
        if self.fence > 0 {
            words.push(format!("f {} {}", self.fence, self.kept));
        }
        if !self.holds.is_empty() {
            words.push(if self.is_write { "w" } else { "r" }.to_owned());
        }
        for Hold {
            deadline,
            signature,
        } in &self.holds
        {
            words.push(format!(
                "{deadline}{separator}{}",
                String::from_utf8_lossy(signature)
            ));
        }
        words.join(" ").into_bytes()
    }

    /// Drops what has ended.
    pub fn expire(&mut self, now: u64) {
        self.holds.retain(|hold| hold.deadline >= now);
        self.is_write &= !self.holds.is_empty();
        if self.kept < now {
            self.fence = 0;
            self.kept = 0;
        }
    }

    /// The end of what lasts longest, or zero.
    pub fn latest(&self) -> u64 {
        self.ends().chain([self.kept]).max().unwrap_or(0)
    }

    /// When each hold ends.
    pub fn ends(&self) -> impl Iterator<Item = u64> {
        self.holds.iter().map(|hold| hold.deadline)
    }
}

/// Without what a later version adds.
fn without_more(bytes: &[u8]) -> &[u8] {
    if bytes.starts_with(b"+") {
        return b"";
    }
    let more = bytes.windows(2).position(|pair| pair == b" +");
    &bytes[..more.unwrap_or(bytes.len())]
}

#[cfg(test)]
mod tests;
