//! The commands that an operation can be sent as, and which of them a node has been asked in.
//!
//! Servers differ in how they compare a key with a token and act on it. A node that does not know a command, or does
//! not permit it to our user, is asked in the next dialect, within the same call (rule 7.6):
//!
//! ```text
//!    preferred ── unsupported ──► the likeliest untried ── … ──► none left: a fault
//!        └── supported ──► a vote          └── supported ──► a vote, and preferred from now on
//! ```

use crate::algorithm::detail::Detail;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::fence::FencingToken;
use crate::algorithm::queue::QueueReply;
use crate::algorithm::vote::Vote;
use std::time::Duration;

/// The command that an operation is sent as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `DELEX key IFEQ token`: Redis 8.4 and later.
    Delex,
    /// `DELIFEQ key token`: Valkey 9.0 and later.
    Delifeq,
    /// `EVAL` of a [`script`](super::script): wherever scripts are.
    Eval,
    /// `EVALSHA` of the same script, on a connection on which the server has run it: it saves the server a fifth of the
    /// work. Never preferred: each request that goes by the hash may have to go by the text.
    Evalsha,
    /// `MSETEX count key token … NX PX ttl`, of a set: Redis 8.4 and later, Valkey 9.1 and later. Never the only one.
    Msetex,
    /// `SET key token NX PX ttl`, for a set once for each key.
    Set,
    /// `SET key token IFEQ token PX ttl`: Valkey 8.1 and later, Redis 8.4 and later.
    SetIfeq,
}

impl Dialect {
    /// The dialects of an extension, the better first.
    pub const FOR_EXTENSION: [Dialect; 2] = [Dialect::Eval, Dialect::SetIfeq];
    /// The dialects of a release, the likeliest first.
    pub const FOR_RELEASE: [Dialect; 3] = [Dialect::Eval, Dialect::Delifeq, Dialect::Delex];
    /// The dialects of an attempt that is made in turn: without scripts there is no queue.
    pub const FOR_TAKE: [Dialect; 2] = [Dialect::Eval, Dialect::Set];
}

/// The meaning of a reply to an operation in one dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The key is ours, with this fencing token.
    Fence(FencingToken),
    /// Another token holds the key, for this long at most, counted from now.
    Held(Duration),
    /// Of a set: other tokens hold these of its keys, a bit for each.
    RefusedFor(Vote, u64),
    /// It is not granted, and the call's entry in the queue is this.
    Queued(QueueReply),
    /// Yes, no, or an error that another dialect would meet as well.
    Vote(Vote),
    /// The node does not know this dialect, or does not permit it to the user: worth another one.
    WrongDialect(Cause),
}

/// The dialects that an operation has been sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TriedDialects {
    last: Dialect,
    /// A bit for each.
    set: u8,
    /// Whether one of them is known and not permitted.
    denied: bool,
}

impl TriedDialects {
    /// An operation that is sent for the first time.
    pub(super) fn first(dialect: Dialect) -> TriedDialects {
        TriedDialects { last: dialect, set: 1 << dialect as u8, denied: false }
    }

    /// The dialect that it was sent in last.
    pub(super) fn last(self) -> Dialect {
        self.last
    }

    /// The same operation, to be sent in a dialect that it has not been sent in: `preferred`, or else the likeliest.
    pub(super) fn again(self, preferred: Dialect, dialects: &[Dialect]) -> TriedDialects {
        let last = self.next(preferred, dialects).unwrap_or(preferred);
        TriedDialects { last, set: self.set | 1 << last as u8, ..self }
    }

    /// The node does not support the dialect that it was sent in last: the fault, unless it is worth another dialect.
    /// `commands` is what the user needs for one of them.
    pub(super) fn refused(&mut self, cause: Cause, dialects: &[Dialect], commands: &'static str) -> Option<Fault> {
        self.denied |= cause == Cause::NoPermission;
        if self.next(self.last, dialects).is_some() {
            return None;
        }
        // Of all the reasons, permission is the one that an operator can change.
        let cause = if self.denied { Cause::NoPermission } else { cause };
        Some(Fault::new(Phase::Reply, cause).with(Detail::Command(commands)))
    }

    fn next(self, preferred: Dialect, dialects: &[Dialect]) -> Option<Dialect> {
        let mut all = std::iter::once(preferred).chain(dialects.iter().copied());
        all.find(|&dialect| self.set & (1 << dialect as u8) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::Dialect::{Delex, Delifeq, Eval, Evalsha};
    use super::*;

    const UNKNOWN: Cause = Cause::Server("ERR");
    const DENIED: Cause = Cause::NoPermission;

    /// The dialects that a node is asked in when it refuses so many for these causes, and the fault that comes of it.
    fn asked(first: Dialect, preferred: &mut Dialect, refusals: &[Cause]) -> (Vec<Dialect>, Option<Fault>) {
        let (mut tried, mut dialects) = (TriedDialects::first(first), vec![first]);
        for &cause in refusals {
            if let Some(fault) = tried.refused(cause, &Dialect::FOR_RELEASE, "THIS or THAT") {
                return (dialects, Some(fault));
            }
            tried = tried.again(*preferred, &Dialect::FOR_RELEASE);
            *preferred = tried.last();
            dialects.push(tried.last());
        }
        (dialects, None)
    }

    #[test]
    fn each_dialect_is_tried_once_and_what_was_understood_is_preferred() {
        let mut preferred = Delifeq;
        assert_eq!(asked(Delifeq, &mut preferred, &[]), (vec![Delifeq], None));
        assert_eq!(asked(Delifeq, &mut preferred, &[UNKNOWN, DENIED]), (vec![Delifeq, Eval, Delex], None));
        assert_eq!(preferred, Delex);
        assert_eq!(asked(Delex, &mut preferred, &[UNKNOWN]), (vec![Delex, Eval], None));
    }

    #[test]
    fn a_hash_that_is_refused_leaves_the_text_to_be_tried() {
        let mut preferred = Eval;
        assert_eq!(asked(Evalsha, &mut preferred, &[UNKNOWN]), (vec![Evalsha, Eval], None));
    }

    #[test]
    fn when_no_dialect_is_left_permission_is_the_reason_to_report() {
        let fault = |cause| Some(Fault::new(Phase::Reply, cause));
        assert_eq!(asked(Eval, &mut Eval.clone(), &[UNKNOWN; 3]).1, fault(Cause::Server("ERR")));
        assert_eq!(asked(Eval, &mut Eval.clone(), &[UNKNOWN, DENIED, UNKNOWN]).1, fault(Cause::NoPermission));
    }

    #[test]
    fn requests_under_way_together_settle_on_one_dialect() {
        let [mut first, mut second] = [TriedDialects::first(Eval); 2];
        let refused = |tried: &mut TriedDialects| tried.refused(UNKNOWN, &Dialect::FOR_RELEASE, "");
        assert_eq!((refused(&mut first), refused(&mut second)), (None, None));
        let preferred = first.again(Eval, &Dialect::FOR_RELEASE).last();
        assert_eq!(preferred, Delifeq);
        assert_eq!(second.again(preferred, &Dialect::FOR_RELEASE).last(), Delifeq);
    }
}
