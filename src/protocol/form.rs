//! The forms that an operation on a lock is sent in, and what a reply to it means.
//!
//! An operation goes by the script of the lock's kind: by its hash on a connection on which the
//! server has run it, by its text otherwise. Only an acquisition can do without a script. A node
//! that does not run one form is asked in the next, within the same call (rule 7.6):
//!
//! ```text
//!    Hash ── not known, or not permitted ──► Text ── no scripts ──► Set, for a take that needs no queue
//!                                                                   a fault, for all others
//! ```

use crate::algorithm::fence::FencingToken;
use crate::algorithm::queue::QueueReply;
use crate::algorithm::vote::Vote;
use crate::fault::{Cause, Fault, Phase};
use std::time::Duration;

/// The form that an operation is sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `EVALSHA` of a [`script`](super::script), on a connection on which the server has run it: it
    /// saves the server a fifth of the work.
    Hash,
    /// `EVAL` of the same script.
    Text,
    /// `SET key token NX PX ttl`, for a set once for each key.
    Set,
}

/// The meaning of a reply to an operation in one form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The key is ours, with this fencing token.
    Fence(FencingToken),
    /// Another token holds the key, for this long at most, counted from now.
    Held(Duration),
    /// For a set: these of its keys have other tokens, a bit for each.
    RefusedFor(Vote, u64),
    /// It is not granted, and the call's entry in the queue is this. Apart, because it is wide and
    /// the others are not.
    Queued(Box<QueueReply>),
    /// Yes, no, or an error that another form would meet as well.
    Vote(Vote),
    /// The node does not run it in this form, and there is another one.
    WrongForm,
}

impl Answer {
    /// The node answers with an error.
    pub(super) fn fault(cause: Cause) -> Answer {
        Answer::Vote(Vote::Fault(Fault::new(Phase::Reply, cause)))
    }
}
